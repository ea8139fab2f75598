package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// Options: the zero value works.
type Options struct {
	Limits format.Limits    // what stored metadata may claim; default format's
	Now    func() time.Time // the time that commits are dated with; default time.Now
	// Clock, unless nil, is the time of the store's clock, by which all ages count: tests set it. Default: what the
	// store dates an object with that is made to find out.
	Clock func() time.Time
	// MemtableBytes is how large the part of a listing or schema gets, within a snapshot, before it is an object of its
	// own, and InlineBitmapBytes a row bitmap; defaults 32 KiB and 4 KiB. Tests make them small.
	MemtableBytes, InlineBitmapBytes int
	// MinKeyTableRows is how many rows a segment has at least to get a key table; default 4,096. Tests make it
	// small.
	MinKeyTableRows uint64
	// Init lets Create make a store of a root that is not empty.
	Init bool
}

// A Store is a root that holds tables. Safe for concurrent use.
type Store struct {
	core *snapshot.Store

	marked   atomic.Bool // the marker was read
	creating bool        // of Create: the first table makes the store

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
	return Conflicts{s.core.Retried.Load(), s.core.Refused.Load()}
}

// RunCacheStats returns how often a run of an index was asked for that the Store had open, and how often one that it
// had to open.
func (s *Store) RunCacheStats() (hits, misses uint64) {
	return s.core.Trees.CacheStats()
}

// Open opens the store at the root that blobs stand for. It reads nothing and takes no lock. Where there is no store,
// the methods that find tables return ErrNoStore.
func Open(ctx context.Context, blobs object.Store, opts Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opts.MemtableBytes < 0 || opts.InlineBitmapBytes < 0 || opts.InlineBitmapBytes > bitmap.MaxInline {
		return nil, fmt.Errorf("store: a memtable of %d bytes, sets of rows of %d within an entry: "+
			"want none negative, and sets of at most %d", opts.MemtableBytes, opts.InlineBitmapBytes, bitmap.MaxInline)
	}
	s := &Store{core: &snapshot.Store{
		Blobs: blobs, Trees: lsm.NewStore(blobs, opts.MemtableBytes),
		Segments: segment.NewStore(blobs, opts.Limits, opts.MinKeyTableRows),
		Bitmaps:  &bitmap.Store{Blobs: blobs, InlineBytes: cmp.Or(opts.InlineBitmapBytes, bitmap.MaxInline)},
		Now:      opts.Now, Clock: opts.Clock,
	}}
	s.core.Make = s.make
	return s, nil
}

// Blobs returns the store's objects.
func (s *Store) Blobs() object.Store { return s.core.Blobs }

// Segments returns what opens and writes the store's segments.
func (s *Store) Segments() *segment.Store { return s.core.Segments }

// Bitmaps returns what reads and writes the store's row bitmaps.
func (s *Store) Bitmaps() *bitmap.Store { return s.core.Bitmaps }

// BeforeClose makes Close call f first, unless forget is called before. It is for what is written to the store in the
// background.
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

// Close calls what BeforeClose was given, which waits 2 seconds at the most for a store that does not answer, and drops
// what the store holds in memory. It must not be used after.
func (s *Store) Close() error {
	s.mu.Lock()
	closing := s.closing
	s.closing = nil
	s.mu.Unlock()
	for _, f := range closing {
		f()
	}
	s.core.Trees.Close()
	s.core.Segments.Close()
	return nil
}

// Tables returns the names of all tables, in the order of their object names. Its cost is a listing a table, two of one
// that has usage records.
func (s *Store) Tables(ctx context.Context) ([]string, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return s.core.Tables(ctx, false)
}

// Table returns a table that exists; the message of ErrNotFound suggests names.
func (s *Store) Table(ctx context.Context, name string) (*Table, error) {
	t, _, err := s.table(ctx, name)
	return t, err
}

// table is Table with the newest snapshot's object. It is one round trip.
func (s *Store) table(ctx context.Context, name string) (*Table, snapshot.Object, error) {
	if err := names.ValidateTable(name); err != nil {
		return nil, snapshot.Object{}, err
	}
	t := &Table{s: s, log: s.core.Log(name)}
	var n snapshot.Object
	err := s.whenReady(ctx, func() (err error) { n, err = t.log.Newest(ctx); return err })
	if err == nil && n.Number == 0 {
		err = s.core.NoTable(ctx, name)
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
	t := &Table{s: s, log: s.core.Log(name)}
	err := s.whenReady(ctx, func() (err error) { snap, err = t.At(ctx, number); return err })
	return snap, err
}

// Newest returns a table and its newest snapshot, in two round trips; errors as Table's.
func (s *Store) Newest(ctx context.Context, name string) (*Table, *Snapshot, error) {
	t, n, err := s.table(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	snap, err := t.log.ReadNewest(ctx, n)
	if errors.Is(err, object.ErrNotFound) { // it has expired since, and is gone
		snap, err = t.log.Latest(ctx)
	}
	made, err := t.snapshot(snap, err)
	return t, made, err
}

// NewTable returns a table that its first Commit creates, or the one that exists.
func (s *Store) NewTable(ctx context.Context, name string) (*Table, error) {
	if err := names.ValidateTable(name); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return &Table{s: s, log: s.core.Log(name)}, nil
}
