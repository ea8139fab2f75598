package reader

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/plan"
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
