package ioplan

import (
	"slices"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expr"
)

// Statistics for pruning. Those of a feature are those of its file. Those of a merged feature are the union of its
// parts' statistics, which may cover rows that a part does not contribute. Pruning stays correct: what holds for all of
// these rows holds for fewer, too.

// StatsOf returns the statistics of a feature in the segment, which has so many rows.
func (g *Segment) StatsOf(feature int, rows uint64) expr.FieldStats {
	return g.unionStats(feature, rows, func(f *File) *format.Stats { return &f.Entry.Meta.Stats },
		func(*ItemPart) bool { return true })
}

// StripeStatsOf returns the statistics of a feature in stripe k.
func (g *Segment) StripeStatsOf(feature, k int) expr.FieldStats {
	return g.unionStats(feature, uint64(g.StoredRows(k)),
		func(f *File) *format.Stats { return &f.Entry.Meta.Stripes[k].Stats },
		func(p *ItemPart) bool { return p.Stripes.Get(k) })
}

func (g *Segment) unionStats(feature int, rows uint64, stats func(*File) *format.Stats,
	has func(*ItemPart) bool) expr.FieldStats {
	out := expr.FieldStats{Rows: rows}
	it, x := g.merged(feature)
	if it == nil {
		if f := g.FeatureFile[feature]; f >= 0 {
			out.Type, out.Stats = g.Files[f].Entry.Meta.Type, stats(&g.Files[f])
		}
		return out
	}
	first, nulls := true, false
	for p := range it.Parts {
		part := &it.Parts[p]
		switch {
		case !has(part):
		case part.Files[x] < 0:
			nulls = true
		default:
			f := &g.Files[part.Files[x]]
			s := *stats(f)
			switch {
			case s.NullRows >= rows: // as if it had no file
				nulls = true
				continue
			case first:
				first, out.Type, out.Stats = false, f.Entry.Meta.Type, &s
			case f.Entry.Meta.Type != out.Type:
				return expr.FieldStats{Unknown: true}
			default:
				uniteStats(out.Stats, &s, out.Type)
			}
			nulls = nulls || s.NullRows > 0
		}
	}
	if out.Stats != nil {
		out.Stats.NullRows = 0
		if nulls { // some rows, not all; how many is not known
			out.Stats.NullRows = min(1, rows-1)
		}
	}
	return out
}

// uniteStats adds b to a. Both have rows that are not null.
func uniteStats(a, b *format.Stats, t vector.Type) {
	empty := func(s *format.Stats) bool { return t.IsList() && s.Elements == 0 }
	switch {
	case empty(b):
	case empty(a):
		a.HasMinMax, a.MinInt, a.MaxInt = b.HasMinMax, b.MinInt, b.MaxInt
		a.MinFloat, a.MaxFloat = b.MinFloat, b.MaxFloat
	case !b.HasMinMax:
		a.HasMinMax = false
	case a.HasMinMax:
		if t.Elem == vector.Uint64 {
			a.MinInt = int64(min(uint64(a.MinInt), uint64(b.MinInt)))
			a.MaxInt = int64(max(uint64(a.MaxInt), uint64(b.MaxInt)))
		} else {
			a.MinInt, a.MaxInt = min(a.MinInt, b.MinInt), max(a.MaxInt, b.MaxInt)
		}
		a.MinFloat, a.MaxFloat = min(a.MinFloat, b.MinFloat), max(a.MaxFloat, b.MaxFloat)
	}
	a.Elements += b.Elements
}

// merged returns the item of a feature that is merged, and the feature's position in it; nil: it is not.
func (g *Segment) merged(feature int) (it *Item, x int) {
	for _, i := range g.Merged {
		if x = slices.Index(g.Items[i].Features, int32(feature)); x >= 0 {
			return &g.Items[i], x
		}
	}
	return nil, 0
}

// mergedBytes estimates the memory for merging stripe i, without its parts' values: the inverse, and the part of each
// row.
func (g *Segment) mergedBytes(i int) uint64 {
	n := uint64(0)
	for _, k := range g.Merged {
		parts := 0
		for p := range g.Items[k].Parts {
			if g.Items[k].Parts[p].Stripes.Get(i) {
				parts++
			}
		}
		if parts > 1 {
			n += uint64(g.StoredRows(i)) * 6
		}
	}
	return n
}
