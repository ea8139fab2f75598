package reader

import (
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
)

// Which rows of a segment a plan reads is one bitmap, made before order and batches: what comes after counts selected rows alone. Rows have
// two numbers then:
//
//	row of the stripe    0 1 2 3 4 5 6 7 8 9        as they are stored; pieces of batches have these
//	selected             x . . x x x . . . x
//	place                0     1 2 3       4        in the plan's order, from the stripe's first; runs, sessions and batches are cut in these
//
// A stripe that has no selected row is not fetched. One of which few are selected is decoded for those rows alone, as a Taker does;
// then its columns have a row a place. They have so, too, where rows here and there are selected of a stripe that is decoded whole: see gather.go.

// restrict makes the layout one of the rows that are in the bitmaps, an entry a segment; nil: every row. Segments without any are left out. The
// bitmaps are not written to afterwards.
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
				return fmt.Errorf("segment %s: row %d is selected of %d", d.ID, b.Maximum(), d.Rows)
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

// selectable returns an error where a segment has more rows than a bitmap can tell apart: beyond 2^32 roaring panics.
func selectable(d storage.SegmentDescriptor) error {
	if d.Rows > math.MaxUint32 {
		return fmt.Errorf("segment %s: %d rows are too many to select from", d.ID, d.Rows)
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

// sparseRows is Layout.sparseRows unless a test says otherwise: the share of a stripe's rows, one in so many, below which they are decoded
// alone. A whole stripe is decoded in runs that the processor foresees. Both take as long at about one row in 30 (go run ./bench/filter --select 0.03).
const sparseRows = 32

// decodesRows reports whether so many selected rows of a stripe are decoded alone. What repeats among them is then given row by row, so that
// what asks for slots has the whole stripe decoded.
func (x *executor) decodesRows(selected, stored int) bool {
	return selected*x.layout.sparseRows < stored && x.layout.plan.Dedup == plan.DedupKJT && !x.opts.Info
}
