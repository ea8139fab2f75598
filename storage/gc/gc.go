package gc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// DefaultGrace is how long GC leaves what no snapshot names. It should be longer than the longest time between the
// first object of a segment and the commit that adds it: a commit that comes later is refused.
const DefaultGrace = 24 * time.Hour

// Operation is the operation of the snapshots that gc makes. They have what those before them have.
const Operation = commit.Fence

// Options: the zero value works.
type Options struct {
	DryRun bool          // report only
	Grace  time.Duration // default DefaultGrace
	NoWait bool          // Grace of 0 means 0: only when nobody writes or reads
}

// A Report says what GC removed, or would remove.
type Report struct {
	DryRun     bool
	Removed    []object.Info // objects that no snapshot names, and temporary files, in the order of their names
	Bytes      uint64        // of Removed
	Young      uint64        // unreferenced objects left because they are within the grace period
	Referenced uint64        // objects that a snapshot's segments and runs own
	Unknown    uint64        // objects whose names are not ours: left alone
	YoungBytes uint64        // of Young
	// Unnamed are objects of segments and runs that no snapshot names, and temporary files, removed or within the grace
	// period.
	Unnamed, UnnamedBytes uint64
	Tables                uint64
	Snapshots             uint64 // looked at: those that have not expired, and those held
	Expired               uint64 // snapshots removed
	Waiting               uint64 // snapshots that only the grace period keeps: they have expired, and nobody holds them
	// Held says which expired snapshots stay, and for whom.
	Held []Hold
	// Left are the ids that expired snapshots name, of which a purge has removed nothing: snapshots that stay, or are
	// held, name them too.
	Left []names.ID
	// Versions and VersionBytes are what a store had kept of objects that were deleted and replaced, and a purge has
	// removed.
	Versions, VersionBytes uint64
	// Skipped says what could not be looked at, and was left alone.
	Skipped []Skip
}

// A Hold keeps an expired snapshot of a table.
type Hold struct {
	Table    string
	Snapshot uint64
	By       string // "branch b", or "lease i of o until t"
}

// A Skip is a part of a store that gc left alone because it could not be looked at.
type Skip struct {
	Table string // empty: not one table's
	Err   error
}

// Run removes the snapshots that expired longer ago than the grace period, the objects that no other snapshot of any
// table names, leases that have run out, and temporary files; each only when it, or the newest object of its segment or
// run, is older than the grace period. A snapshot that a branch of the newest snapshot pins, or a lease, stays with all
// it names. Ages are told by the clock that dates the objects, and by no other.
//
// It never removes what a committed snapshot that stays names, however slow its writer was: PROTOCOL.md says why. A
// commit of what it is about to remove is refused. Several may run at once, beside everything else. A table that is
// damaged is skipped, with all its objects, and so is what cannot be listed: the report says so. A store that holds old
// objects and not one table is an error.
func Run(ctx context.Context, s *snapshot.Store, opts Options) (*Report, error) {
	grace := opts.Grace
	if grace < 0 {
		return nil, fmt.Errorf("gc: grace of %v: want none negative", grace)
	}
	if grace == 0 && !opts.NoWait {
		grace = DefaultGrace
	}
	now, err := s.Time(ctx)
	if err != nil && !opts.DryRun { // which may look at a store that it cannot write to
		return nil, fmt.Errorf("gc: %w", err)
	}
	cutoff := now.Add(-grace).UnixNano()
	if grace > 0 {
		cutoff -= object.Margin(s.Blobs).Nanoseconds()
	}
	c := &collector{s: s, marker: names.RandomID(), r: &Report{DryRun: opts.DryRun}}
	// The objects are listed before the tables: what belongs to a table was made after the table's root.
	groups, err := c.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("gc: %w", err)
	}
	tables, err := c.tables(ctx, func(t *snapshot.Log) *tablePlan {
		return &tablePlan{t: t, now: now, cutoff: cutoff, noGrace: grace == 0, dryRun: opts.DryRun}
	})
	if err != nil {
		return nil, fmt.Errorf("gc: %w", err)
	}
	old := c.unnamed(groups, tables, cutoff)
	if len(old) > 0 && len(tables.plans) == 0 && len(c.r.Skipped) == 0 {
		return nil, fmt.Errorf("gc: %s holds old objects and no table: nothing says what is garbage", s.Blobs.URI())
	}
	// Snapshots go before what they name, so that who opens one finds all of it.
	for _, p := range tables.plans {
		if err := p.run(ctx, c.r); errors.Is(err, object.ErrChanged) { // the table was removed, and made anew
			c.skip(p.t.Table, err)
			tables.damaged[p.t.ID()] = true
		} else if err != nil {
			return c.r, fmt.Errorf("gc: table %s: %w", p.t.Table, err)
		}
	}
	if opts.DryRun {
		for _, g := range old {
			c.r.removed(g.objects...)
		}
	} else if err := c.collect(ctx, old, tables); err != nil {
		return c.r, fmt.Errorf("gc: %w", err)
	}
	if err := c.temporary(ctx, cutoff); err != nil {
		return c.r, fmt.Errorf("gc: %w", err)
	}
	c.r.sort()
	return c.r, nil
}

func (r *Report) removed(objects ...object.Info) {
	r.Removed = append(r.Removed, objects...)
	for _, o := range objects {
		r.Bytes += uint64(o.Size)
	}
}

func (r *Report) sort() {
	slices.SortFunc(r.Removed, func(a, b object.Info) int { return cmp.Compare(a.Name, b.Name) })
}

// A collector is one run of GC or Purge.
type collector struct {
	s      *snapshot.Store
	marker names.ID   // of its markers: condemned-<marker>
	mu     sync.Mutex // guards r while requests are under way
	r      *Report
}

func (c *collector) skip(table string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r.Skipped = append(c.r.Skipped, Skip{table, err})
}

// A dataGroup is the objects of one id: of a segment, a run or a row bitmap.
type dataGroup struct {
	id      names.ID
	objects []object.Info
	newest  int64 // modification time
}

// empty reports whether the group has only markers, which an interrupted gc left: no commit takes an id without
// objects.
func (g *dataGroup) empty() bool {
	return len(g.objects) > 0 && !slices.ContainsFunc(g.objects,
		func(o object.Info) bool { return !g.id.IsCondemned(o.Name) })
}

// hexDigits begin the names of all data objects: as many listings find them all.
const hexDigits = "0123456789abcdef"

// list lists all data objects by their ids. What cannot be listed is skipped.
func (c *collector) list(ctx context.Context) ([]*dataGroup, error) {
	found := make([][]*dataGroup, len(hexDigits))
	err := object.Parallel(ctx, object.RequestsAtOnce, len(hexDigits), func(ctx context.Context, k int) error {
		groups, unknown, err := listData(ctx, c.s.Blobs, hexDigits[k:k+1])
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			c.skip("", err)
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		found[k] = groups
		c.r.Unknown += unknown
		return nil
	})
	return slices.Concat(found...), err
}

// listData lists the data objects whose names begin with prefix, by their ids, and counts those that are not ours.
func listData(ctx context.Context, blobs object.Store, prefix string) (out []*dataGroup, unknown uint64, err error) {
	for info, err := range blobs.List(ctx, prefix, "") {
		if err != nil {
			return nil, 0, err
		}
		i, ok := names.ParseDataName(info.Name)
		if !ok {
			if info.Name != names.Marker {
				unknown++
			}
			continue
		}
		if n := len(out); n == 0 || out[n-1].id != i {
			out = append(out, &dataGroup{id: i})
		}
		g := out[len(out)-1]
		g.objects = append(g.objects, info)
		g.newest = max(g.newest, info.ModTime)
	}
	return out, unknown, nil
}

// tablePlans are the tables of a store as one gc sees them.
type tablePlans struct {
	plans []*tablePlan
	// of are those that are whole. Of one id there are several where somebody has copied the objects of a table under
	// another name.
	of map[names.TableID][]*tablePlan
	// damaged are tables that could not be looked at. unknown: of one of them not even the id can be read, so that what
	// is of no other table may be its.
	damaged map[names.TableID]bool
	unknown bool
	named   map[names.ID]bool // by snapshots that stay
}

// tables looks at every table, several at a time. One that is damaged is skipped.
func (c *collector) tables(ctx context.Context, plan func(*snapshot.Log) *tablePlan) (tablePlans, error) {
	out := tablePlans{of: map[names.TableID][]*tablePlan{}, damaged: map[names.TableID]bool{},
		named: map[names.ID]bool{}}
	tables, err := c.s.Tables(ctx, true)
	if err != nil {
		return out, err
	}
	plans, reports, errs := make([]*tablePlan, len(tables)), make([]Report, len(tables)), make([]error, len(tables))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(tables), func(ctx context.Context, i int) error {
		// A table of its own, so that nothing known from before is trusted.
		plans[i] = plan(c.s.Log(tables[i]))
		errs[i] = plans[i].look(ctx, &reports[i])
		return ctx.Err()
	})
	if err != nil {
		return out, err
	}
	for i, p := range plans {
		of := p.t.ID()
		if errs[i] != nil {
			c.skip(tables[i], errs[i])
			if of == (names.TableID{}) {
				if of, err = p.t.ReadRoot(ctx); err != nil {
					out.unknown = true
					continue
				}
			}
			out.damaged[of] = true
			continue
		}
		out.plans, out.of[of] = append(out.plans, p), append(out.of[of], p)
		maps.Copy(out.named, p.named.staying)
		c.r.Held = append(c.r.Held, reports[i].Held...)
		c.r.Snapshots += reports[i].Snapshots
		c.r.Waiting += reports[i].Waiting
		if p.newest > 0 {
			c.r.Tables++
		}
	}
	return out, nil
}

// unnamed returns the groups that no snapshot names and that are old enough to go.
func (c *collector) unnamed(groups []*dataGroup, tables tablePlans, cutoff int64) []*dataGroup {
	var out []*dataGroup
	for _, g := range groups {
		of := g.id.Table()
		switch whole := len(tables.of[of]) > 0; {
		case tables.damaged[of] || tables.unknown && !whole, tables.named[g.id]:
			c.r.Referenced += uint64(len(g.objects))
			continue
		}
		c.r.Unnamed += uint64(len(g.objects))
		for _, o := range g.objects {
			c.r.UnnamedBytes += uint64(o.Size)
		}
		if g.newest > cutoff {
			c.r.Young += uint64(len(g.objects))
			for _, o := range g.objects {
				c.r.YoungBytes += uint64(o.Size)
			}
			continue
		}
		out = append(out, g)
	}
	return out
}

// collect removes what no snapshot names, in this order, each step after the one before for all groups:
//
//	condemn   put a marker beside the objects of each group
//	fence     commit a snapshot to each table that a group is of
//	look      at the snapshots up to that one
//	delete    what they do not name, the markers last
//
// A commit looks for markers beside what it adds, and again when it finds a fence that was made since. So one that has
// not seen a marker either took its number before the fence, and the look finds it, or it loses it to the fence, and
// finds the marker.
func (c *collector) collect(ctx context.Context, groups []*dataGroup, tables tablePlans) error {
	var condemned []*dataGroup
	fenced := map[*tablePlan]bool{}
	for _, g := range groups {
		if plans := tables.of[g.id.Table()]; len(plans) > 0 && !g.empty() {
			condemned = append(condemned, g)
			for _, p := range plans {
				fenced[p] = true
			}
		}
	}
	err := object.Parallel(ctx, object.RequestsAtOnce, len(condemned), func(ctx context.Context, i int) error {
		g := condemned[i]
		err := c.s.Blobs.PutIfAbsent(ctx, g.id.CondemnedName(c.marker), nil)
		if errors.Is(err, object.ErrExists) { // ours, by an earlier try
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	plans := slices.SortedFunc(maps.Keys(fenced), func(a, b *tablePlan) int {
		return cmp.Compare(a.t.Table,
			b.t.Table)
	})
	failed := make([]error, len(plans))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(plans), func(ctx context.Context, i int) error {
		failed[i] = plans[i].fence(ctx)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	for i, p := range plans {
		if failed[i] != nil {
			c.skip(p.t.Table, failed[i])
			tables.damaged[p.t.ID()] = true
		}
	}
	for some := range slices.Chunk(groups, removedAtOnce) {
		if err = c.remove(ctx, some, tables); err != nil {
			break
		}
	}
	return errors.Join(err, syncRemoved(ctx, c.s.Blobs, groups))
}

// syncRemoved makes the removal of objects durable where a crash could take it back, in a local store: what Purge has
// removed, nobody reads again.
func syncRemoved(ctx context.Context, blobs object.Store, groups []*dataGroup) error {
	local := object.AsLocal(blobs)
	if local == nil {
		return nil
	}
	// Their directories are gone, or they stay with files of others.
	dirs := map[string]bool{}
	for _, g := range groups {
		dir := strings.TrimSuffix(g.id.Dir(), "/")
		dirs[dir], dirs[path.Dir(dir)] = true, true
	}
	all := slices.Sorted(maps.Keys(dirs))
	return object.Parallel(ctx, object.RequestsAtOnce, len(all),
		func(ctx context.Context, i int) error {
			return local.SyncDir(ctx, all[i])
		})
}

// removedAtOnce is how many ids are removed together: their objects go by few requests, where the store can.
const removedAtOnce = 256

// remove deletes all objects of ids that no snapshot names, the markers of gcs after the others. It takes its marker
// from the other ids.
func (c *collector) remove(ctx context.Context, groups []*dataGroup, tables tablePlans) error {
	found := make([]*dataGroup, len(groups))
	err := object.Parallel(ctx, object.RequestsAtOnce, len(groups), func(ctx context.Context, i int) error {
		g := groups[i]
		switch of := g.id.Table(); {
		case tables.damaged[of]:
			return nil // it stays condemned
		case slices.ContainsFunc(tables.of[of], func(p *tablePlan) bool { return p.named.staying[g.id] }):
			return c.s.DeleteAll(ctx, g.id, g.id.CondemnedName(c.marker))
		}
		there, _, err := listData(ctx, c.s.Blobs, g.id.Dir())
		if len(there) > 0 {
			found[i] = there[0]
		}
		return err
	})
	if err != nil {
		return err
	}
	var data, markers []string
	var gone []object.Info
	for _, g := range found {
		if g == nil {
			continue
		}
		for _, o := range g.objects {
			if g.id.IsCondemned(o.Name) {
				markers = append(markers, o.Name)
				continue
			}
			data, gone = append(data, o.Name), append(gone, o)
		}
	}
	for _, names := range [...][]string{data, markers} {
		if err := object.DeleteAll(ctx, c.s.Blobs, names); err != nil {
			return err
		}
	}
	c.r.removed(gone...)
	for _, g := range found {
		if g != nil {
			if err := c.s.DeleteAll(ctx, g.id); err != nil { // its directory, in a local store
				return err
			}
		}
	}
	return nil
}

// temporary removes what writers left behind: files of a local store, uploads of others.
func (c *collector) temporary(ctx context.Context, cutoff int64) error {
	unfinished, ok := object.As[object.Unfinished](c.s.Blobs)
	if !ok {
		return nil
	}
	tmp, err := unfinished.Temporary(ctx)
	if err != nil {
		return err
	}
	for _, o := range tmp {
		c.r.Unnamed++
		c.r.UnnamedBytes += uint64(o.Size)
		if o.ModTime > cutoff {
			c.r.Young++
			c.r.YoungBytes += uint64(o.Size)
			continue
		}
		if !c.r.DryRun {
			if err := unfinished.RemoveTemporary(ctx, o.Name); err != nil {
				return err
			}
		}
		c.r.removed(o)
	}
	return nil
}
