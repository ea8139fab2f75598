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
	// Unnamed are objects of segments and runs that no snapshot names, removed or within the grace period.
	Unnamed, UnnamedBytes uint64
	Tables                uint64
	Snapshots             uint64 // looked at: those that have not expired, and those held
	Expired               uint64 // snapshots removed
	// Held says which expired snapshots stay, and for whom.
	Held []Hold
}

// A Hold keeps an expired snapshot of a table.
type Hold struct {
	Table    string
	Snapshot uint64
	By       string // "branch b", or "lease i of o until t"
}

// GC removes the snapshots that expired longer ago than the grace period, the objects that no other snapshot of any table names,
// leases that have run out, and temporary files; each only when it, or the newest object of its segment or run, is older than the
// grace period. A snapshot that a branch of the newest snapshot pins, or a lease, stays with all it names.
//
// It never removes what a snapshot that stays names: it lists the objects first and reads the snapshots after, so that what was
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
		if now, err = s.Clock(ctx); err != nil && !opts.DryRun { // which may look at a store that it cannot write to
			return nil, fmt.Errorf("gc: %w", err)
		}
	}
	cutoff := now.Add(-grace).UnixNano()
	r := &GCReport{DryRun: opts.DryRun}
	groups, err := s.listData(ctx, r)
	if err != nil {
		return nil, err
	}
	named, plans, err := s.referenced(ctx, now, cutoff, grace == 0, r)
	if err != nil {
		return nil, fmt.Errorf("gc: %w", err)
	}
	for _, p := range plans {
		if err := p.run(ctx, r); err != nil {
			return r, fmt.Errorf("gc: table %s: %w", p.t.name, err)
		}
	}
	local := object.AsLocal(s.blobs)
	for _, g := range groups {
		switch {
		case named[g.id]:
			r.Referenced += uint64(len(g.objects))
			continue
		}
		r.Unnamed += uint64(len(g.objects))
		for _, o := range g.objects {
			r.UnnamedBytes += uint64(o.Size)
		}
		switch {
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

// Clock returns the time by which the ages of objects count: with Options.Now that one, else the earlier of this machine's and
// the store's, which dates the objects. By a clock that is ahead of the store's everything would look old, what other
// machines are just writing too. An error comes with this machine's time.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
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
