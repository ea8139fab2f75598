package gc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// Purge removes the data that only expired snapshots of the table name, whatever its age: segments, layers
// and row bitmaps. A reader of an expired snapshot without a lease finds it gone. The snapshots themselves, with the
// runs of their trees, are left to GC, and so is what no snapshot names; other tables are not looked at. What a branch
// of the newest snapshot, or a lease, holds stays; what one held only before, so that gc left a copy of its snapshot,
// goes. Where the store keeps what is deleted, all that it has kept of the table is removed too. The report has what
// was removed, and who holds what.
//
// also are ids that an earlier purge has left: their data goes too, unless a snapshot that stays names it. The expired
// snapshots that named it may be gone meanwhile.
func Purge(ctx context.Context, t *snapshot.Log, also ...names.ID) (*Report, error) {
	r, err := purge(ctx, t, also)
	if err != nil {
		return r, fmt.Errorf("purge of table %s: %w", t.Table, err)
	}
	return r, nil
}

func purge(ctx context.Context, t *snapshot.Log, also []names.ID) (*Report, error) {
	r, err := purgeExpired(ctx, t, also)
	if err != nil {
		return r, err
	}
	return r, removeVersions(ctx, t, r)
}

// removeVersions removes for good what the store has kept of what was deleted of the table, by anyone, and of its
// snapshots that were truncated. A purge that was interrupted has deleted, and others before did.
func removeVersions(ctx context.Context, t *snapshot.Log, r *Report) error {
	v, ok := object.As[object.Versioned](t.Store.Blobs)
	if !ok {
		return nil
	}
	if keeps, err := v.KeepsVersions(ctx); err != nil || !keeps {
		return err
	}
	of, err := t.ReadRoot(ctx)
	if err != nil {
		return err
	}
	data := func(name string) bool {
		i, ok := names.ParseDataName(name)
		return ok && i.Table() == of
	}
	prefixes := append(strings.Split(hexDigits, ""), names.TableDir(t.Table)+"/")
	var removed, bytes atomic.Int64
	err = object.Parallel(ctx, object.RequestsAtOnce, len(prefixes), func(ctx context.Context, k int) error {
		match := data
		if k == len(hexDigits) {
			match = func(string) bool { return true }
		}
		n, size, err := v.RemoveVersions(ctx, prefixes[k], match)
		removed.Add(n)
		bytes.Add(size)
		return err
	})
	r.Versions, r.VersionBytes = uint64(removed.Load()), uint64(bytes.Load())
	return err
}

func purgeExpired(ctx context.Context, t *snapshot.Log, also []names.ID) (*Report, error) {
	now, err := t.Store.Time(ctx)
	if err != nil {
		return nil, err
	}
	c := &collector{s: t.Store, marker: names.RandomID(), r: &Report{Tables: 1}}
	// A table of its own, so that nothing known from before is trusted.
	p := &tablePlan{t: t.Store.Log(t.Table), now: now, purge: true}
	if err := p.look(ctx, c.r); err != nil {
		return c.r, err
	}
	if p.newest == 0 {
		return c.r, t.Store.NoTable(ctx, t.Table)
	}
	of := p.t.ID()
	plans, err := sameTable(ctx, t.Store, t.Table, of, now)
	if err != nil {
		return c.r, err
	}
	plans = append(plans, p)
	for _, i := range also {
		p.named.expired[i] = true
	}
	var groups []*dataGroup
	for i := range p.named.expired {
		// A segment of another table, which no commit takes, would be that table's.
		switch {
		case i.Table() != of:
		case p.named.staying[i]:
			c.r.Left = append(c.r.Left, i)
		default:
			groups = append(groups, &dataGroup{id: i})
		}
	}
	slices.SortFunc(groups, func(a, b *dataGroup) int { return slices.Compare(a.id[:], b.id[:]) })
	// What an earlier purge has taken is named by the same expired snapshots.
	err = object.Parallel(ctx, object.RequestsAtOnce, len(groups), func(ctx context.Context, i int) error {
		there, _, err := listData(ctx, t.Store.Blobs, groups[i].id.Dir())
		if err == nil && len(there) > 0 {
			groups[i] = there[0]
		}
		return err
	})
	if err != nil {
		return c.r, err
	}
	groups = slices.DeleteFunc(groups, func(g *dataGroup) bool { return len(g.objects) == 0 })
	if len(groups) == 0 {
		return c.r, nil
	}
	// What the others name is found when they are fenced.
	err = c.collect(ctx, groups, tablePlans{plans: plans, of: map[names.TableID][]*tablePlan{of: plans},
		damaged: map[names.TableID]bool{}})
	c.r.sort()
	if err == nil && len(c.r.Skipped) > 0 {
		err = c.r.Skipped[0].Err
	}
	return c.r, err
}

// sameTable looks at the tables of another name that have the same id: somebody has copied the objects of one. What
// they name stays.
func sameTable(ctx context.Context, s *snapshot.Store, name string, of names.TableID,
	now time.Time) ([]*tablePlan, error) {
	names, err := s.Tables(ctx, true)
	if err != nil {
		return nil, err
	}
	plans := make([]*tablePlan, len(names))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(names), func(ctx context.Context, i int) error {
		t := s.Log(names[i])
		if id, err := t.ReadRoot(ctx); names[i] == name || err != nil || id != of {
			return nil // what is damaged is no reason: its id is another with all likelihood
		}
		plans[i] = &tablePlan{t: t, now: now, cutoff: math.MinInt64, dryRun: true}
		return plans[i].look(ctx, &Report{})
	})
	return slices.DeleteFunc(plans, func(p *tablePlan) bool { return p == nil }), err
}
