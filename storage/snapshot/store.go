package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Store is what the tables of a store share. Safe for concurrent use.
type Store struct {
	Blobs    object.Store
	Trees    *lsm.Store
	Segments *segment.Store
	Bitmaps  *bitmap.Store
	// Now is the time that commits are dated with, and Clock that of the store's clock, by which all ages count. Nil:
	// see CommitTime and Time.
	Now, Clock func() time.Time
	// Make, unless nil, is called before the first object of a table is put.
	Make func(ctx context.Context) error
	// Commits that were tried again because another took their number, and those that were refused with ErrConflict.
	Retried, Refused atomic.Uint64
}

// Log returns the snapshots of a table, none of which was read.
func (s *Store) Log(table string) *Log { return &Log{Store: s, Table: table} }

// Tables returns the names of all tables, in the order of their object names. roots: with those that have not had a
// commit yet, and only have their root.
func (s *Store) Tables(ctx context.Context, roots bool) ([]string, error) {
	var out []string
	after, leased := "", ""
	for {
		first, ok, err := object.First(ctx, s.Blobs, names.TablesPrefix, after)
		if err != nil {
			return nil, err
		}
		if !ok {
			return out, nil
		}
		found := first.Name
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
		if records := names.TableDir(table) + names.UsageDir; strings.HasPrefix(found, records) {
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

// CommitTime returns the time by which commits are dated, within the years 1678 to 2261, which nanoseconds since 1970
// can tell.
func (s *Store) CommitTime() time.Time {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	switch y := now.UTC().Year(); {
	case y < 1678:
		now = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	case y > 2261:
		now = time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	return now.UTC()
}

// Time returns the time of the clock that dates the store's objects, by which all ages in it are told. It makes an
// object to find out, and removes it. An error comes with this machine's time.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	if s.Clock != nil {
		return s.Clock().UTC(), nil
	}
	i := names.RandomID()
	// One that stays behind, gc takes.
	name := i.Dir() + names.ClockFile
	if err := s.Blobs.PutIfAbsent(ctx, name, nil); err != nil && !errors.Is(err, object.ErrExists) {
		return s.CommitTime(), err
	}
	info, err := s.Blobs.Stat(ctx, name)
	if err := errors.Join(err, s.DeleteAll(context.WithoutCancel(ctx), i, name)); err != nil {
		return s.CommitTime(), err
	}
	return time.Unix(0, info.ModTime).UTC(), nil
}

// DeleteAll deletes objects of an id, and of a local store their directory when it is empty then.
func (s *Store) DeleteAll(ctx context.Context, i names.ID, names ...string) error {
	err := object.DeleteAll(ctx, s.Blobs, names)
	if local := object.AsLocal(s.Blobs); local != nil && err == nil {
		err = local.RemoveEmptyDir(ctx, strings.TrimSuffix(i.Dir(), "/"))
	}
	return err
}

// NoTable returns the error of a table that has no snapshot.
func (s *Store) NoTable(ctx context.Context, name string) error {
	tables, err := s.Tables(ctx, false)
	if err != nil {
		return err
	}
	if slices.Contains(tables, name) {
		// Someone has just made it, or has taken its snapshots away.
		if n, err := s.Log(name).Newest(ctx); err != nil {
			return err
		} else if n.Number == 0 {
			return wire.Corrupt(names.TableDir(name)+names.SnapshotsDir, "the table has no snapshot")
		}
		return fmt.Errorf("table %q: %w: it was just made", name, catalog.ErrNotFound)
	}
	if len(tables) == 0 {
		return fmt.Errorf("table %q: %w: %s holds no tables", name, catalog.ErrNotFound, s.Blobs.URI())
	}
	return catalog.NotFound("table", name, tables)
}
