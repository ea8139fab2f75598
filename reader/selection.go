package reader

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
)

// The rows of a segment that a plan reads are one bitmap, which is made before the order and the batches. These count
// selected rows only. So a row has two numbers:
//
//	row of the stripe    0 1 2 3 4 5 6 7 8 9        as stored; used by the pieces of batches
//	selected             x . . x x x . . . x
//	position             0     1 2 3       4        in the plan's order, from the stripe's first; used by runs,
//	                                                sessions and batches
//
// A stripe without a selected row is not fetched. If few rows of a stripe are selected, only those are decoded, as in a
// Taker, and its columns have a row for each position. If many scattered rows are selected, the stripe is decoded whole
// and its columns are then reduced to a row for each position: see package execution.

// restrict restricts the layout to the rows of the bitmaps, one for each segment; nil: every row. It drops segments
// without such rows. The bitmaps are borrowed and must not be changed afterwards.
func (l *Layout) restrict(selected []*roaring.Bitmap) error {
	segments, layers := l.segments[:0:0], l.layers[:0:0]
	l.selected = nil
	l.firstRow = []uint64{0}
	for i, d := range l.segments {
		rows := d.Rows
		if b := selected[i]; b != nil {
			if b.IsEmpty() { // of a segment of any size
				continue
			}
			if err := selectable(d); err != nil {
				return err
			}
			if uint64(b.Maximum()) >= d.Rows {
				return fmt.Errorf("segment %s: row %d is selected, but it has %d rows", d.ID, b.Maximum(), d.Rows)
			}
			rows = b.GetCardinality()
		}
		if rows == 0 {
			continue
		}
		segments = append(segments, d)
		if l.layers != nil {
			layers = append(layers, l.layers[i])
		}
		l.selected = append(l.selected, selected[i])
		l.firstRow = append(l.firstRow, l.firstRow[len(l.firstRow)-1]+rows)
	}
	l.segments, l.layers = segments, layers
	return nil
}

// selectable returns an error if a segment has more rows than a bitmap can hold: beyond 2^32 roaring panics.
func selectable(d catalog.SegmentDescriptor) error {
	if d.Rows > math.MaxUint32 {
		return fmt.Errorf("segment %s: %d rows are too many to select from: want at most %d", d.ID, d.Rows,
			uint32(math.MaxUint32))
	}
	return nil
}

// selectionOf returns the rows that are read of a segment; nil: all.
func (l *Layout) selectionOf(seg int) *roaring.Bitmap {
	if l.selected == nil {
		return nil
	}
	return l.selected[seg]
}

// storedSets returns, for each of the layout's segments, the rows that are in all of the plan's sample lists and not
// deleted. A nil element means every row; a nil result, every row of all segments.
func (l *Layout) storedSets(ctx context.Context, snap *storage.Snapshot, at snapshots) (sets []*roaring.Bitmap,
	err error) {
	deleted, err := snap.DeletionVectors(ctx, l.segments...)
	if err != nil {
		return nil, err
	}
	var listed [][]bitmap.Ref // of each list, by segment
	for _, list := range l.plan.Lists() {
		in, err := at(ctx, list.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("sample list %s: %w", list.Name, err)
		}
		if _, err := in.SampleList(ctx, list.Name); err != nil {
			return nil, err
		}
		rows, err := in.ListedRows(ctx, list.Name, l.segments...)
		if err != nil {
			return nil, err
		}
		listed = append(listed, rows)
	}
	sets = make([]*roaring.Bitmap, len(l.segments))
	store := snap.Table().Store()
	err = execution.Parallel(len(l.segments), segmentsAtOnce, func(i int) (err error) {
		var first *bitmap.Ref
		if len(listed) > 0 {
			first = &listed[0][i]
		}
		if sets[i], err = storedSet(ctx, store, l.segments[i], first, deleted[i]); err != nil || len(listed) < 2 {
			return err
		}
		second, err := store.Bitmaps().Read(ctx, listed[1][i])
		if err == nil {
			sets[i].And(second)
		}
		return err
	})
	if err != nil || !slices.ContainsFunc(sets, func(b *roaring.Bitmap) bool { return b != nil }) {
		return nil, err
	}
	return sets, nil
}

// storedSet returns the rows of a segment that are listed and not deleted; nil: every row. listed nil: all are listed.
func storedSet(ctx context.Context, store *storage.Store, d catalog.SegmentDescriptor, listed *bitmap.Ref,
	deleted bitmap.Ref) (set *roaring.Bitmap, err error) {
	if listed != nil {
		if set, err = store.Bitmaps().Read(ctx, *listed); err != nil {
			return nil, err
		}
	}
	if deleted.IsEmpty() {
		return set, nil
	}
	gone, err := store.Bitmaps().Read(ctx, deleted)
	if err != nil {
		return nil, err
	}
	if set == nil {
		if err := selectable(d); err != nil {
			return nil, err
		}
		set = roaring.New()
		set.AddRange(0, d.Rows)
	}
	set.AndNot(gone)
	return set, nil
}

// segmentsAtOnce is how many segments are examined concurrently to find the selected rows.
const segmentsAtOnce = 16

// intersect returns for each segment the rows that are in both a and b; nil: every row. It changes neither.
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

// downsample drops the rows of the class that are not kept, and sets weighted and weight.
func (l *Layout) downsample(ctx context.Context, t *plan.Downsampling, opts LayoutOptions) error {
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
