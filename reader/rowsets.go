package reader

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage"
)

// storedSets returns the rows of each of the layout's segments that the plan's sample list has, without those that are deleted; an entry is nil
// where that is every row, and there are no entries where it is so in each segment.
func (l *Layout) storedSets(ctx context.Context, snap *storage.Snapshot) (sets []*roaring.Bitmap, err error) {
	deleted, err := snap.DeletedRows(ctx, l.segments...)
	if err != nil {
		return nil, err
	}
	var listed []storage.RowSet
	if name := l.plan.SampleList; name != "" {
		if _, err := snap.SampleList(ctx, name); err != nil {
			return nil, err
		}
		if listed, err = snap.ListedRows(ctx, name, l.segments...); err != nil {
			return nil, err
		}
	}
	store, some := snap.Table().Store(), false
	sets = make([]*roaring.Bitmap, len(l.segments))
	for i, d := range l.segments {
		if listed != nil {
			if sets[i], err = store.ReadRows(ctx, listed[i]); err != nil {
				return nil, err
			}
		}
		if !deleted[i].IsEmpty() {
			gone, err := store.ReadRows(ctx, deleted[i])
			if err != nil {
				return nil, err
			}
			if sets[i] == nil {
				sets[i] = roaring.New()
				sets[i].AddRange(0, d.Rows)
			}
			sets[i].AndNot(gone)
		}
		some = some || sets[i] != nil
	}
	if !some {
		return nil, nil
	}
	return sets, nil
}

// intersect returns the rows that are in both of two entries a segment; nil: every row. Neither is written to.
func intersect(a, b []*roaring.Bitmap) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(a))
	for i := range a {
		switch {
		case a[i] == nil:
			out[i] = b[i]
		case b[i] == nil:
			out[i] = a[i]
		default:
			out[i] = roaring.And(a[i], b[i])
		}
	}
	return out
}
