package execution

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// A stripe with many scattered selected rows is decoded whole, and its columns get an inverse of only the selected
// rows. The selected rows are then one piece of a batch instead of many small ones, so that loops and kernels copy many
// rows at a time.
//
//	rows       0 1 2 3 4 5 6 7        inverse 0 0 1 2 2 2 3 3
//	selected     x   x x   x
//	positions    0   1 2   3          inverse   0   2 2   3       the slots stay where they are, used or not
//
// In a column without an inverse rows are slots, so the selected rows are its new inverse. PieceGatherer does the same
// for the rows of a take.

// A gatherer gathers the columns of an item of a stripe. An inverse that several columns share is gathered once.
type gatherer struct {
	of       *int32 // address of the inverse that was gathered last
	gathered []int32
}

// gather reduces d, a column of st, to the selected rows.
func (c *gatherer) gather(x *Executor, st *ioplan.Stripe, d *ioplan.Decoded) {
	inverse := d.Column.Inverse
	if len(inverse) == 0 {
		d.Gather(st.Selected)
		return
	}
	if c.of != &inverse[0] {
		to := x.inverse()
		st.KeepInverse(to)
		to.Stored.Inverse = vector.Resize(to.Stored.Inverse, len(st.Selected))
		c.of, c.gathered = &inverse[0], to.Stored.Inverse
		gatherRows(c.gathered, inverse, st.Selected)
	}
	d.Gather(c.gathered)
}

// gatherRows sets dst[i] to inverse[rows[i]]. Without append the many cache misses overlap.
func gatherRows(dst, inverse, rows []int32) {
	dst = dst[:len(rows)]
	for i, r := range rows {
		dst[i] = inverse[r]
	}
}

// gathers reports whether to gather the selected rows of a stripe that is decoded whole: so many, in so many runs.
func (s *Source) gathers(rows, runs int) bool { return runs*s.GatheredRun > rows }

// runsOf returns the number of runs of consecutive rows in rows, which ascend.
func runsOf(rows []int32) int {
	runs := min(len(rows), 1)
	for i := 1; i < len(rows); i++ {
		if rows[i] != rows[i-1]+1 {
			runs++
		}
	}
	return runs
}
