package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/wire"
)

// Options: the zero value works.
type Options struct {
	Limits format.Limits    // what stored metadata may claim; default format's
	Now    func() time.Time // the time that commits are dated with; default time.Now
	// Clock, unless nil, is the time of the store's clock, by which all ages count: tests set it. Default: what the store dates an object
	// with that is made to find out.
	Clock func() time.Time
	// MemtableBytes is how large the part of a listing or schema gets, within a snapshot, before it is an object of its own, and InlineBitmapBytes a set of
	// rows; defaults 32 KiB and 4 KiB. Tests make them small.
	MemtableBytes, InlineBitmapBytes int
	// MinKeyTableRows is how many rows a segment has at least to get a table of keys; default 4,096. Tests make it small.
	MinKeyTableRows uint64
	// Init lets Create make a store of a root that is not empty.
	Init bool
}

// A Store is a root that holds tables. Safe for concurrent use.
type Store struct {
	blobs    object.Store
	opts     Options
	trees    *lsm.Store
	segments *segment.Store
	bitmaps  *bitmap.Store

	marked    atomic.Bool // the marker was read
	creating  bool        // of Create: the first table makes the store
	conflicts struct{ retried, refused atomic.Uint64 }

	mu      sync.Mutex
	closing map[uint64]func() // what Close calls, by when it was asked to; guarded by mu
	asked   uint64            // the last key of closing; guarded by mu
}

// Conflicts are commits through a Store that met others.
type Conflicts struct {
	Retried uint64 // another took the snapshot's number, and the commit was tried on top of it
	Refused uint64 // ErrConflict was returned
}

// Conflicts returns how many there have been.
func (s *Store) Conflicts() Conflicts {
	return Conflicts{s.conflicts.retried.Load(), s.conflicts.refused.Load()}
}

// RunCacheStats returns how often a run of an index was asked for that the Store had open, and how often one that it had to open.
func (s *Store) RunCacheStats() (hits, misses uint64) {
	return s.trees.CacheStats()
}

// Open opens the store at the root that blobs stand for. It reads nothing and takes no lock. Where there is no store, the methods that find tables return ErrNoStore.
func Open(ctx context.Context, blobs object.Store, opts Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opts.MemtableBytes < 0 || opts.InlineBitmapBytes < 0 || opts.InlineBitmapBytes > bitmap.MaxInline {
		return nil, fmt.Errorf("store: a tail of %d bytes, sets of rows of %d within an entry: want none negative, and sets of at most %d",
			opts.MemtableBytes, opts.InlineBitmapBytes, bitmap.MaxInline)
	}
	return &Store{
		blobs: blobs, opts: opts, trees: lsm.NewStore(blobs, opts.MemtableBytes),
		segments: segment.NewStore(blobs, opts.Limits, opts.MinKeyTableRows),
		bitmaps:  &bitmap.Store{Blobs: blobs, InlineBytes: cmp.Or(opts.InlineBitmapBytes, bitmap.MaxInline)},
	}, nil
}

// now returns the time by which commits are dated, within the years 1678 to 2261, which nanoseconds since 1970 can tell.
func (s *Store) now() time.Time {
	now := time.Now()
	if s.opts.Now != nil {
		now = s.opts.Now()
	}
	switch y := now.UTC().Year(); {
	case y < 1678:
		now = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	case y > 2261:
		now = time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	return now.UTC()
}

// Blobs returns the store's objects.
func (s *Store) Blobs() object.Store { return s.blobs }

// Segments returns what opens and writes the store's segments.
func (s *Store) Segments() *segment.Store { return s.segments }

// Bitmaps returns what reads and writes the store's sets of rows.
func (s *Store) Bitmaps() *bitmap.Store { return s.bitmaps }

// BeforeClose makes Close call f first, unless forget is called before. It is for what is written to the store in the background.
func (s *Store) BeforeClose(f func()) (forget func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	key := s.asked
	if s.closing == nil {
		s.closing = map[uint64]func(){}
	}
	s.closing[key] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.closing, key)
	}
}

// Close calls what BeforeClose was given, which waits 2 seconds at the most for a store that does not answer, and drops what the store
// holds in memory. It must not be used after.
func (s *Store) Close() error {
	s.mu.Lock()
	closing := s.closing
	s.closing = nil
	s.mu.Unlock()
	for _, f := range closing {
		f()
	}
	s.trees.Close()
	s.segments.Close()
	return nil
}

// Tables returns the names of all tables, in the order of their object names. Its cost is a listing a table, two of one that has usage records.
func (s *Store) Tables(ctx context.Context) ([]string, error) { return s.tableNames(ctx, false) }

// tableNames is Tables; roots: with those that have not had a commit yet, and only have their root.
func (s *Store) tableNames(ctx context.Context, roots bool) ([]string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var out []string
	after, leased := "", ""
	for {
		found := ""
		for info, err := range s.blobs.List(ctx, names.TablesPrefix, after) {
			if err != nil {
				return nil, err
			}
			found = info.Name
			break
		}
		if found == "" {
			return out, nil
		}
		table, next, ok := names.ParseTable(found)
		if !ok {
			// Not ours: pass over it and whatever is under the same name.
			after = found
			if part, _, under := strings.Cut(found[len(names.TablesPrefix):], "/"); under {
				after = names.TablesPrefix + part + "0" // the byte after "/"
			}
			continue
		}
		// These make no table by themselves: a process that reads on writes them when the table was removed, too.
		if records := names.TableDir(table) + names.AccessDir; strings.HasPrefix(found, records) {
			after = pastDir(records)
			continue
		}
		if leases := names.TableDir(table) + names.LeasesDir; strings.HasPrefix(found, leases) {
			after, leased = pastDir(leases), table
			continue
		}
		named := found == names.TableBegun(table) || found == names.TableRoot(table) && (roots || leased == table)
		for _, dir := range [...]string{names.PinnedDir, names.SnapshotsDir} {
			named = named || strings.HasPrefix(found, names.TableDir(table)+dir)
		}
		if named {
			out = append(out, table)
		}
		after = next
	}
}

// pastDir returns what sorts after all names that begin with dir, which ends with "/".
func pastDir(dir string) string { return dir[:len(dir)-1] + "0" } // the byte after "/"

// Table returns a table that exists; ErrNotFound names the nearest.
func (s *Store) Table(ctx context.Context, name string) (*Table, error) {
	t, _, err := s.table(ctx, name)
	return t, err
}

// table is Table with the newest snapshot's object. It is one round trip.
func (s *Store) table(ctx context.Context, name string) (*Table, snapshotObject, error) {
	if err := names.ValidateTable(name); err != nil {
		return nil, snapshotObject{}, err
	}
	t := &Table{s: s, name: name}
	var n snapshotObject
	err := s.whenReady(ctx, func() (err error) { n, err = t.newest(ctx); return err })
	if err == nil && n.number == 0 {
		err = s.noTable(ctx, name)
	}
	if err != nil {
		return nil, n, err
	}
	return t, n, nil
}

// whenReady calls f, and makes sure meanwhile that there is a store: where there is none, whatever f returns says less.
func (s *Store) whenReady(ctx context.Context, f func() error) error {
	ready := make(chan error, 1)
	go func() { ready <- s.ready(ctx) }()
	err := f()
	return cmp.Or(<-ready, err)
}

// At returns a snapshot of a table by its number, in two round trips; errors as Table's and Table.At's.
func (s *Store) At(ctx context.Context, name string, number uint64) (*Snapshot, error) {
	if err := names.ValidateTable(name); err != nil {
		return nil, err
	}
	var snap *Snapshot
	err := s.whenReady(ctx, func() (err error) { snap, err = (&Table{s: s, name: name}).At(ctx, number); return err })
	return snap, err
}

// Newest returns a table and its newest snapshot, in two round trips; errors as Table's.
func (s *Store) Newest(ctx context.Context, name string) (*Table, *Snapshot, error) {
	t, n, err := s.table(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	snap, err := t.readNewest(ctx, n)
	if errors.Is(err, object.ErrNotFound) { // it has expired since, and is gone
		snap, err = t.Latest(ctx)
	}
	return t, snap, err
}

func (s *Store) noTable(ctx context.Context, name string) error {
	tables, err := s.Tables(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(tables, name) {
		// Someone has just made it, or has taken its snapshots away.
		if n, err := (&Table{s: s, name: name}).newest(ctx); err != nil {
			return err
		} else if n.number == 0 {
			return wire.Corrupt(names.TableDir(name)+names.SnapshotsDir, "the table has no snapshot")
		}
		return fmt.Errorf("table %q: %w: it was just made", name, ErrNotFound)
	}
	if len(tables) == 0 {
		return fmt.Errorf("table %q: %w: %s holds no tables", name, ErrNotFound, s.blobs.URI())
	}
	return fmt.Errorf("table %q: %w%s", name, ErrNotFound, suggest.Hint(name, tables))
}

// NewTable returns a table that its first Commit creates, or the one that exists.
func (s *Store) NewTable(ctx context.Context, name string) (*Table, error) {
	if err := names.ValidateTable(name); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return &Table{s: s, name: name}, nil
}
