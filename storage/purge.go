package storage

import (
	"context"
	"fmt"
	"slices"
)

// Purge removes the data that only expired snapshots of the table name, whatever its age: segments, layers and sets of rows. Whoever reads an
// expired snapshot without a lease finds it gone. The snapshots themselves, with the runs of their trees, are left to GC, and so is what no
// snapshot names; other tables are not looked at. What a branch of the newest snapshot, or a lease, holds stays. The report has what was removed,
// and who holds what.
func (t *Table) Purge(ctx context.Context) (*GCReport, error) {
	r, err := t.purge(ctx)
	if err != nil {
		return r, fmt.Errorf("purge of table %s: %w", t.name, err)
	}
	return r, nil
}

func (t *Table) purge(ctx context.Context) (*GCReport, error) {
	now, err := t.s.Clock(ctx)
	if err != nil {
		return nil, err
	}
	c := &collector{s: t.s, marker: randomID(), r: &GCReport{Tables: 1}}
	// A table of its own, so that nothing known from before is trusted.
	p := &tablePlan{t: &Table{s: t.s, name: t.name}, now: now, purge: true}
	if err := p.look(ctx, c.r); err != nil {
		return c.r, err
	}
	if p.newest == 0 {
		return c.r, t.s.noTable(ctx, t.name)
	}
	of := p.t.bound()
	var groups []*dataGroup
	for i := range p.named.expired {
		// A segment of another table, which no commit takes, would be that table's.
		if !p.named.staying[i] && i.table() == of {
			groups = append(groups, &dataGroup{id: i})
		}
	}
	slices.SortFunc(groups, func(a, b *dataGroup) int { return slices.Compare(a.id[:], b.id[:]) })
	if len(groups) == 0 {
		return c.r, nil
	}
	err = c.collect(ctx, groups, tablePlans{plans: []*tablePlan{p}, of: map[tableID]*tablePlan{of: p}, damaged: map[tableID]bool{}})
	c.r.sort()
	if err == nil && len(c.r.Skipped) > 0 {
		err = c.r.Skipped[0].Err
	}
	return c.r, err
}
