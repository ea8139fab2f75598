package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/storage"
)

// A unit is what one worker writes: a feature, or the features of a dedup group.
type unit struct {
	order    int // place in the packs; a group takes one place more than it has features, for its inverse
	features []*feature
	byRuns   bool
	memory   int64
}

// units returns what the segment is made of, in the order of the packs. A group stands where its first feature would.
func (j *segmentJob) units(ctx context.Context) ([]*unit, error) {
	groups, err := j.groups(ctx)
	if err != nil {
		return nil, err
	}
	groupOf := map[int]*dedup.Group{} // by place in j.order
	for i := range groups {
		g := &groups[i]
		slices.Sort(g.Members)
		for _, m := range g.Members {
			groupOf[m] = g
		}
	}
	var out []*unit
	order := 0
	for i, f := range j.order {
		u := &unit{order: order, features: []*feature{f}, memory: j.estimate(f)}
		if g := groupOf[i]; g != nil {
			if g.Members[0] != i {
				continue
			}
			u.byRuns = g.ByRuns
			for _, m := range g.Members[1:] {
				u.features = append(u.features, j.order[m])
				u.memory += j.estimate(j.order[m])
			}
			order++
		}
		order += len(u.features)
		out = append(out, u)
	}
	return out, nil
}

// groups finds the features that repeat together, from the segment's first stripe. Members are places in j.order.
func (j *segmentJob) groups(ctx context.Context) ([]dedup.Group, error) {
	if !j.dedup.takes(DedupGroups) {
		return nil, nil
	}
	m := j.makers.Get().(*stripeMaker)
	defer j.makers.Put(m)
	places := make([]int, len(j.order))
	for i := range places {
		places[i] = i
	}
	// Features with few nulls say best what repeats; in groups of them the others find their place.
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(j.order[b].rawBytes, j.order[a].rawBytes) })
	var g dedup.Grouper
	g.Reset(j.plan.stripes[0].rows, j.share)
	for _, i := range places {
		f := j.order[i]
		present, err := m.rows.open(f.number, f.typ, j.plan)
		if err == nil && present {
			if _, err = j.gather(ctx, m, f, 0); err == nil {
				g.Add(i, &m.col, j.estimate(f), j.share)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("feature %q: %w", f.name, err)
		}
	}
	return g.Groups(), nil
}

// writeGroup writes the features of a dedup group, stripe by stripe side by side.
func (j *segmentJob) writeGroup(ctx context.Context, u *unit) error {
	makers := make([]*stripeMaker, len(u.features))
	stored := make([]storage.Feature, len(u.features))
	for i, f := range u.features {
		m := j.makers.Get().(*stripeMaker)
		defer j.makers.Put(m)
		if _, err := m.rows.open(f.number, f.typ, j.plan); err != nil {
			return fmt.Errorf("feature %q: %w", f.name, err)
		}
		m.finder.Reset(f.typ, j.dedup.finder())
		makers[i], stored[i] = m, f.stored()
	}
	var union dedup.Union
	err := j.out.AddGroup(ctx, u.order, stored, func(files []stripeWriter) error {
		for i := range j.plan.stripes {
			union.Reset(j.plan.stripes[i].rows, u.byRuns)
			for k, m := range makers {
				c, err := j.gather(ctx, m, u.features[k], i)
				if err != nil {
					return fmt.Errorf("feature %q: %w", u.features[k].name, err)
				}
				union.Add(c)
			}
			if err := files[0].WriteStripe(union.Inverse()); err != nil {
				return err
			}
			for k, m := range makers {
				if err := files[k+1].WriteStripe(m.finder.FindIn(&m.col, &union)); err != nil {
					return fmt.Errorf("feature %q: %w", u.features[k].name, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("dedup group of feature %q: %w", u.features[0].name, err)
	}
	for range u.features {
		j.done()
	}
	return nil
}
