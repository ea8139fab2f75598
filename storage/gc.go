package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// DefaultGrace is how long GC leaves what no snapshot names. It must be longer than the longest time between the last
// object of a segment and the commit that adds it.
const DefaultGrace = 24 * time.Hour

// GCOptions: the zero value works.
type GCOptions struct {
	DryRun bool          // report only
	Grace  time.Duration // default DefaultGrace
	NoWait bool          // Grace of 0 means 0: only when nobody writes
}

// A GCReport says what GC removed, or would remove.
type GCReport struct {
	DryRun     bool
	Removed    []object.Info // objects that no snapshot names, and temporary files
	Bytes      uint64        // of Removed
	Young      uint64        // unreferenced objects left because they are within the grace period
	Referenced uint64        // objects that a snapshot's segments and runs own
	Unknown    uint64        // objects whose names are not ours: left alone
	YoungBytes uint64        // of Young
	Tables     uint64
	Snapshots  uint64 // looked at
}

// GC removes the objects that no snapshot of any table names, and the temporary files, when the newest object of their
// segment or run is older than the grace period.
//
// It never removes what a snapshot names: it lists the objects first and reads the snapshots after, so that what was
// committed before that is known, and what is committed later was written within the grace period. A damaged or
// missing snapshot ends it before anything is removed, and so does a store that holds old objects and not one table. Several
// may run at once. Ages count by the clock that dates the objects; one dated in the future stays.
func GC(ctx context.Context, s *Store, opts GCOptions) (*GCReport, error) {
	grace := opts.Grace
	if grace < 0 {
		return nil, fmt.Errorf("gc: grace of %v: want none negative", grace)
	}
	if grace == 0 && !opts.NoWait {
		grace = DefaultGrace
	}
	now := s.now()
	if grace > 0 {
		var err error
		if now, err = s.clock(ctx); err != nil && !opts.DryRun { // which may look at a store that it cannot write to
			return nil, fmt.Errorf("gc: %w", err)
		}
	}
	cutoff := now.Add(-grace).UnixNano()
	r := &GCReport{DryRun: opts.DryRun}
	groups, err := s.listData(ctx, r)
	if err != nil {
		return nil, err
	}
	referenced, err := s.referenced(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("gc: %w", err)
	}
	local := object.AsLocal(s.blobs)
	for _, g := range groups {
		switch {
		case referenced[g.id]:
			r.Referenced += uint64(len(g.objects))
			continue
		case g.newest > cutoff:
			r.Young += uint64(len(g.objects))
			for _, o := range g.objects {
				r.YoungBytes += uint64(o.Size)
			}
			continue
		case r.Tables == 0:
			return nil, fmt.Errorf("gc: %s holds old objects and no table: nothing says what is garbage", s.blobs.URI())
		}
		for _, o := range g.objects {
			if !opts.DryRun {
				if err := s.blobs.Delete(ctx, o.Name); err != nil && !errors.Is(err, object.ErrNotFound) {
					return r, fmt.Errorf("gc: %w", err)
				}
			}
			r.removed(o)
		}
		if local != nil && !opts.DryRun {
			if err := local.RemoveEmptyDir(ctx, strings.TrimSuffix(g.id.dir(), "/")); err != nil {
				return r, fmt.Errorf("gc: %w", err)
			}
		}
	}
	if local == nil {
		return r, nil
	}
	tmp, err := local.Temporary(ctx)
	if err != nil {
		return r, fmt.Errorf("gc: %w", err)
	}
	for _, o := range tmp {
		if o.ModTime > cutoff {
			r.Young++
			r.YoungBytes += uint64(o.Size)
			continue
		}
		if !opts.DryRun {
			if err := local.RemoveTemporary(o.Name); err != nil {
				return r, fmt.Errorf("gc: %w", err)
			}
		}
		r.removed(o)
	}
	return r, nil
}

// clock returns the time by which the ages of objects count: with Options.Now that one, else the earlier of this machine's and
// the store's, which dates the objects. By a clock that is ahead of the store's everything would look old, what other
// machines are just writing too. An error comes with this machine's time.
func (s *Store) clock(ctx context.Context) (time.Time, error) {
	now := s.now()
	if s.opts.Now != nil {
		return now, nil
	}
	i := newID()
	// One that stays behind, the next gc takes for a segment that was never committed.
	name := i.dir() + clockFile
	if err := s.blobs.PutIfAbsent(ctx, name, nil); err != nil {
		return now, err
	}
	info, err := s.blobs.Stat(ctx, name)
	if err := errors.Join(err, s.blobs.Delete(context.WithoutCancel(ctx), name)); err != nil {
		return now, err
	}
	if local := object.AsLocal(s.blobs); local != nil {
		if err := local.RemoveEmptyDir(ctx, strings.TrimSuffix(i.dir(), "/")); err != nil {
			return now, err
		}
	}
	if info.ModTime < now.UnixNano() {
		now = time.Unix(0, info.ModTime)
	}
	return now, nil
}

func (r *GCReport) removed(o object.Info) {
	r.Removed = append(r.Removed, o)
	r.Bytes += uint64(o.Size)
}

// A dataGroup is the objects of one segment or run.
type dataGroup struct {
	id      id
	objects []object.Info
	newest  int64 // modification time
}

// listData lists all data objects, by segment and run.
func (s *Store) listData(ctx context.Context, r *GCReport) ([]*dataGroup, error) {
	var out []*dataGroup
	after := ""
	for {
		again := false
		for info, err := range s.blobs.List(ctx, "", after) {
			if err != nil {
				return nil, fmt.Errorf("gc: %w", err)
			}
			if strings.HasPrefix(info.Name, tablesPrefix) {
				// Snapshots and hints are never garbage; whatever sorts after them is looked at too.
				after, again = tablesPrefix[:len(tablesPrefix)-1]+"0", true
				break
			}
			i, ok := parseDataName(info.Name)
			if !ok {
				r.Unknown++
				continue
			}
			if n := len(out); n == 0 || out[n-1].id != i {
				out = append(out, &dataGroup{id: i})
			}
			g := out[len(out)-1]
			g.objects = append(g.objects, info)
			if info.Name == i.indexName() {
				// A segment's index goes first, so that what an interrupted gc left of it looks like no segment.
				last := len(g.objects) - 1
				g.objects[0], g.objects[last] = g.objects[last], g.objects[0]
			}
			g.newest = max(g.newest, info.ModTime)
		}
		if !again {
			return out, nil
		}
	}
}

// referenced returns the segments and runs that any snapshot names.
func (s *Store) referenced(ctx context.Context, r *GCReport) (map[id]bool, error) {
	tables, err := s.Tables(ctx)
	if err != nil {
		return nil, err
	}
	out := map[id]bool{}
	for _, name := range tables {
		// A table of its own, so that nothing known from before is trusted.
		t := &Table{s: s, name: name}
		numbers, err := t.numbers(ctx)
		if err != nil {
			return nil, err
		}
		n := uint64(len(numbers))
		for i, number := range numbers {
			// What only a snapshot that is missing names would look like garbage.
			if want := uint64(i) + 1; number != want {
				return nil, t.gap(want, number)
			}
		}
		if n == 0 {
			return nil, corrupt(snapshotName(name, 1), "object is missing: the table has no snapshot")
		}
		r.Tables++
		r.Snapshots += n
		h := history{t: t,
			snapshot: func(m manifest) error {
				for _, tr := range [...]tree{m.listing, m.schema} {
					for _, ref := range tr.runs {
						out[ref.id] = true
					}
				}
				return nil
			},
			entry: func(obj string, kind treeKind, key, _ []byte) error {
				if kind != listingTree || len(key) == 0 || key[0] != segmentSpace {
					return nil
				}
				if len(key) != 17 {
					return corrupt(obj, "segment key is malformed")
				}
				out[id(key[1:])] = true
				return nil
			},
		}
		if err := h.walk(ctx, 1, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}
