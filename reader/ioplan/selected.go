package ioplan

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// SelectedRows returns how many rows of each stripe are selected.
func SelectedRows(stripeRows []uint32, selected *roaring.Bitmap) []uint32 {
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

// StartsOf returns the start of each stripe and the end of the last, where the first starts at base.
func StartsOf(base uint64, rows []uint32) []uint64 {
	starts := make([]uint64, 1, len(rows)+1)
	starts[0] = base
	for _, n := range rows {
		base += uint64(n)
		starts = append(starts, base)
	}
	return starts
}

// StoredRows returns how many rows stripe i has, selected or not.
func (g *Segment) StoredRows(i int) int { return int(g.First[i+1] - g.First[i]) }

// hasRows reports whether a row of stripe i is selected.
func (g *Segment) hasRows(i int) bool { return g.Starts[i+1] > g.Starts[i] }

// NextRun returns the first run [lo, hi) of stripes of [from, to) that have selected rows; lo == to if there is none.
func (g *Segment) NextRun(from, to int) (lo, hi int) {
	for lo = from; lo < to && !g.hasRows(lo); lo++ {
	}
	for hi = lo; hi < to && g.hasRows(hi); hi++ {
	}
	return lo, hi
}

// CountStripes returns how many of stripes [from, to) have selected rows.
func (g *Segment) CountStripes(from, to int) int {
	n := 0
	for i := from; i < to; i++ {
		if g.hasRows(i) {
			n++
		}
	}
	return n
}

// AppendSelected appends the selected rows of stripe i, as rows of the stripe; nothing if all are selected.
func (g *Segment) AppendSelected(dst []int32, i int) []int32 {
	first, end := uint32(g.First[i]), uint32(g.First[i+1])
	if g.Selected == nil || g.Starts[i+1]-g.Starts[i] == uint64(end-first) {
		return dst
	}
	it := g.Selected.Iterator()
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

// selectBlock is how many rows SelectRows skips at once by counting.
const selectBlock = 128

// SelectRows replaces positions in stripe i, which ascend, by rows of the stripe. It does not use Bitmap.Select, which
// starts at the segment's first row for each, and in a container of runs visits all of them.
func (g *Segment) SelectRows(i int, positions []int32) {
	if g.Selected == nil {
		return
	}
	first, end := g.First[i], g.First[i+1]
	it := g.Selected.Iterator()
	// The block from lo on has positions [from, to). at is the position of it.Next().
	lo, from, to, at := first, 0, int(g.Selected.CardinalityInRange(first, min(first+selectBlock, end))), 0
	it.AdvanceIfNeeded(uint32(first))
	for k, p := range positions {
		for int(p) >= to {
			if lo += selectBlock; lo >= end {
				// cannot happen: Starts counts the selected rows
				panic(fmt.Sprintf("reader: stripe %d of segment %s has no position %d", i, g.ID, p))
			}
			from, to = to, to+int(g.Selected.CardinalityInRange(lo, min(lo+selectBlock, end)))
		}
		if at < from {
			it.AdvanceIfNeeded(uint32(lo))
			at = from
		}
		for ; at < int(p); at++ {
			it.Next()
		}
		positions[k] = int32(uint64(it.Next()) - first)
		at++
	}
}

// At returns the row of s's columns of a position.
func (s *Stripe) At(position int) int {
	if s.Selected == nil || s.Gathered {
		return position
	}
	return int(s.Selected[position])
}

// DecodedAt is At for the columns as they are decoded, before they are gathered.
func (s *Stripe) DecodedAt(position int) int {
	if s.Selected == nil || s.RowSelected {
		return position
	}
	return int(s.Selected[position])
}

// RowsAlone returns the rows of s to decode; nil: all.
func (s *Stripe) RowsAlone() []int32 {
	if s.RowSelected {
		return s.Selected
	}
	return nil
}

// DecodeAlone makes s decode only these rows. They are borrowed.
func (s *Stripe) DecodeAlone(rows []int32) {
	s.Rows, s.Selected, s.RowSelected, s.Gathered = len(rows), rows, true, true
}

// RunAt returns the longest run of consecutive rows of s's columns from a position on, before position end.
func (s *Stripe) RunAt(position, end int) (lo, hi int) {
	if s.Selected == nil || s.Gathered {
		return position, end
	}
	selected := s.Selected[position:end]
	n := 1
	for n < len(selected) && selected[n] == selected[0]+int32(n) {
		n++
	}
	return int(selected[0]), int(selected[0]) + n
}

// ColumnRows returns how many rows s's columns have.
func (s *Stripe) ColumnRows() int {
	if s.Gathered {
		return s.Rows
	}
	return s.Stored
}

// DecodedRows returns how many rows s's columns have before they are gathered.
func (s *Stripe) DecodedRows() int {
	if s.RowSelected {
		return s.Rows
	}
	return s.Stored
}
