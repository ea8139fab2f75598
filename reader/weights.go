package reader

import (
	"context"

	"github.com/dsistore/dsistore/reader/plan"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
)

// thin leaves rows of the class out, and says which rows have the weight.
func (l *Layout) thin(ctx context.Context, t *plan.Thinning, opts LayoutOptions) error {
	class, _, err := l.evaluate(ctx, t.OfClass, t.Filtered(t.OfClass), opts)
	if err != nil {
		return err
	}
	stays, _, err := l.evaluate(ctx, t.OfStays, t.Filtered(t.OfStays), opts)
	if err != nil {
		return err
	}
	l.weight = t.Weight
	weighted := make(map[string]*roaring.Bitmap, len(l.segments))
	selected := make([]*roaring.Bitmap, len(l.segments))
	for i, d := range l.segments {
		all := l.selectionOf(i)
		if all == nil {
			if err := selectable(d); err != nil {
				return err
			}
			all = roaring.New()
			all.AddRange(0, d.Rows)
		}
		in := func(b *roaring.Bitmap) *roaring.Bitmap {
			if b == nil { // every row
				return all
			}
			return roaring.And(all, b)
		}
		weighted[d.ID] = in(stays[i])
		selected[i] = roaring.AndNot(all, roaring.AndNot(in(class[i]), weighted[d.ID]))
	}
	if err := l.restrict(selected); err != nil {
		return err
	}
	l.weighted = make([]*roaring.Bitmap, len(l.segments))
	for i, d := range l.segments {
		l.weighted[i] = weighted[d.ID]
	}
	return nil
}

// weigh makes d.column the weights of rows of a stripe that begins at row first of its segment: of those of picked, nil: of all.
func (d *decoded) weigh(weighted *roaring.Bitmap, weight float32, first uint64, rows int, picked []int32) {
	d.stored = vector.Column{Type: plan.WeightColumn().Type, Rows: rows, Slots: rows, Floats: vector.Resize(d.stored.Floats, rows)}
	d.column = &d.stored
	out := d.stored.Floats
	for i := range out {
		out[i] = 1
	}
	if picked != nil {
		for i, r := range picked {
			if weighted.Contains(uint32(first) + uint32(r)) {
				out[i] = weight
			}
		}
		return
	}
	it := weighted.Iterator()
	for it.AdvanceIfNeeded(uint32(first)); it.HasNext(); {
		r := uint64(it.Next())
		if r >= first+uint64(rows) {
			return
		}
		out[r-first] = weight
	}
}
