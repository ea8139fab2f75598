package execution

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// Row selection. A stripe with many selected rows that are not neighbours is decoded whole, and its columns get an
// inverse of the selected rows alone. The selected rows are then one piece of a batch, and not a piece for every few
// rows: loops and kernels copy many rows at a time.
//
//	rows       0 1 2 3 4 5 6 7        inverse 0 0 1 2 2 2 3 3
//	selected     x   x x   x
//	positions    0   1 2   3          inverse   0   2 2   3       the slots stay where they are, used or not
//
// A column without an inverse has its rows as slots, so that the selected rows are its inverse. PieceGatherer does the
// same for the rows of a take.

// A gatherer gathers the columns of an item of a stripe. An inverse that several of them share is gathered once.
type gatherer struct {
	of       *int32 // where the inverse begins that was gathered last
	gathered []int32
}

// gather makes d, a column of st, one of the selected rows.
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

// gatherRows writes what inverse has of each of rows. It does not append: cache misses are many, and should overlap.
func gatherRows(dst, inverse, rows []int32) {
	dst = dst[:len(rows)]
	for i, r := range rows {
		dst[i] = inverse[r]
	}
}

// gathers reports whether a stripe that is decoded whole is gathered to its selected rows, which are so many in so many
// runs.
func (s *Source) gathers(rows, runs int) bool { return runs*s.GatheredRun > rows }

// runsOf returns how many runs of rows next to each other rows are, which ascend.
func runsOf(rows []int32) int {
	runs := min(len(rows), 1)
	for i := 1; i < len(rows); i++ {
		if rows[i] != rows[i-1]+1 {
			runs++
		}
	}
	return runs
}
