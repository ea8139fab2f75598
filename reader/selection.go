package reader

import (
	"fmt"
	"math"

	"github.com/dsistore/dsistore/reader/plan"

	"github.com/RoaringBitmap/roaring/v2"

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
// then its columns have a row a place. They have so, too, where rows here and there are selected of a stripe that is decoded whole: see condense.go.

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

// selectedRows returns how many rows of each stripe are selected.
func selectedRows(stripeRows []uint32, selected *roaring.Bitmap) []uint32 {
	if selected == nil {
		return stripeRows
	}
	out := make([]uint32, len(stripeRows))
	end, before := uint32(0), uint64(0)
	for i, n := range stripeRows {
		end += n
		upTo := selected.Rank(end - 1)
		out[i] = uint32(upTo - before)
		before = upTo
	}
	return out
}

// startsOf returns the places at which stripes of so many rows start when the first starts at base, and the end.
func startsOf(base uint64, rows []uint32) []uint64 {
	starts := make([]uint64, 1, len(rows)+1)
	starts[0] = base
	for _, n := range rows {
		base += uint64(n)
		starts = append(starts, base)
	}
	return starts
}

// storedRows returns how many rows stripe i has as it is stored.
func (g *segment) storedRows(i int) int { return int(g.first[i+1] - g.first[i]) }

// hasRows reports whether a row of stripe i is selected.
func (g *segment) hasRows(i int) bool { return g.starts[i+1] > g.starts[i] }

// nextRun returns the first stripes [lo, hi) of [from, to) next to each other that have selected rows; lo is to without any.
func (g *segment) nextRun(from, to int) (lo, hi int) {
	for lo = from; lo < to && !g.hasRows(lo); lo++ {
	}
	for hi = lo; hi < to && g.hasRows(hi); hi++ {
	}
	return lo, hi
}

// countStripes returns how many of stripes [from, to) have selected rows.
func (g *segment) countStripes(from, to int) int {
	n := 0
	for i := from; i < to; i++ {
		if g.hasRows(i) {
			n++
		}
	}
	return n
}

// appendSelected appends the selected rows of stripe i, as rows of the stripe; nothing when they are all.
func (g *segment) appendSelected(dst []int32, i int) []int32 {
	first, end := uint32(g.first[i]), uint32(g.first[i+1])
	if g.selected == nil || g.starts[i+1]-g.starts[i] == uint64(end-first) {
		return dst
	}
	it := g.selected.Iterator()
	it.AdvanceIfNeeded(first)
	for it.HasNext() {
		row := it.Next()
		if row >= end {
			break
		}
		dst = append(dst, int32(row-first))
	}
	return dst
}

// selectBlock is how many rows are counted at once on the way to a place; fewer are gone through one by one.
const selectBlock = 128

// selectRows turns places in stripe i, which ascend, into rows of the stripe. Bitmap.Select would begin at the segment's first row for each, and
// in a container of runs add all of them up.
func (g *segment) selectRows(i int, places []int32) {
	if g.selected == nil {
		return
	}
	first, end := g.first[i], g.first[i+1]
	it := g.selected.Iterator()
	// The block from lo on has the places [from, to); it gives that at next.
	lo, from, to, at := first, 0, int(g.selected.CardinalityInRange(first, min(first+selectBlock, end))), 0
	it.AdvanceIfNeeded(uint32(first))
	for k, p := range places {
		for int(p) >= to {
			if lo += selectBlock; lo >= end {
				panic(fmt.Sprintf("reader: stripe %d of segment %s has no place %d", i, g.id, p)) // starts says that it is there
			}
			from, to = to, to+int(g.selected.CardinalityInRange(lo, min(lo+selectBlock, end)))
		}
		if at < from {
			it.AdvanceIfNeeded(uint32(lo))
			at = from
		}
		for ; at < int(p); at++ {
			it.Next()
		}
		places[k] = int32(uint64(it.Next()) - first)
		at++
	}
}

// at returns the row of s's columns at a place.
func (s *stripe) at(place int) int {
	if s.picked == nil || s.condensed {
		return place
	}
	return int(s.picked[place])
}

// decodedAt returns the row of s's columns at a place as they are decoded, before they are condensed.
func (s *stripe) decodedAt(place int) int {
	if s.picked == nil || s.sparse {
		return place
	}
	return int(s.picked[place])
}

// rowsAlone returns the rows that s is decoded for; nil: all.
func (s *stripe) rowsAlone() []int32 {
	if s.sparse {
		return s.picked
	}
	return nil
}

// decodeAlone makes s's columns have these of its rows alone. Borrowed.
func (s *stripe) decodeAlone(rows []int32) {
	s.rows, s.picked, s.sparse, s.condensed = len(rows), rows, true, true
}

// runAt returns the rows of s's columns from a place on, as far as they are next to each other and before the place end.
func (s *stripe) runAt(place, end int) (lo, hi int) {
	if s.picked == nil || s.condensed {
		return place, end
	}
	picked := s.picked[place:end]
	n := 1
	for n < len(picked) && picked[n] == picked[0]+int32(n) {
		n++
	}
	return int(picked[0]), int(picked[0]) + n
}

// columnRows returns how many rows s's columns have.
func (s *stripe) columnRows() int {
	if s.condensed {
		return s.rows
	}
	return s.stored
}

// decodedRows returns how many rows s's columns have as they are decoded.
func (s *stripe) decodedRows() int {
	if s.sparse {
		return s.rows
	}
	return s.stored
}

// sparseRows is Layout.sparseRows unless a test says otherwise: the share of a stripe's rows, one in so many, below which they are decoded
// alone. A whole stripe is decoded in runs that the processor foresees. Both take as long at about one row in 30 (go run ./bench/filter --select 0.03).
const sparseRows = 32

// decodesRows reports whether so many selected rows of a stripe are decoded alone. What repeats among them is then given row by row, so that
// what asks for slots has the whole stripe decoded.
func (x *executor) decodesRows(selected, stored int) bool {
	return selected*x.layout.sparseRows < stored && x.layout.plan.Dedup == plan.DedupKJT && !x.opts.Info
}
