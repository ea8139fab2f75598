package reader

import (
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/load"
)

// A stripe of which rows here and there are selected, too many to be decoded alone, is decoded whole and gathered: its columns get an
// inverse that has the selected rows alone, a row a place. What would be a piece of a batch for every few rows is one piece, which batches are
// filled from by loops, and kernels, over many rows.
//
//	rows       0 1 2 3 4 5 6 7        inverse 0 0 1 2 2 2 3 3
//	selected     x   x x   x
//	places       0   1 2   3          inverse   0   2 2   3       the slots stay where they are, used or not
//
// The slots of a column without an inverse are the stripe's rows: then the selected rows are the inverse. A takeView does the same for takes.

// A gatherer gathers the columns of an item of a stripe. An inverse that several of them share is gathered once.
type gatherer struct {
	of       *int32 // where the inverse begins that was gathered last
	gathered []int32
}

// gather makes d, a column of st, one of the selected rows.
func (c *gatherer) gather(x *executor, st *load.Stripe, d *load.Decoded) {
	inverse := d.Column.Inverse
	if len(inverse) == 0 {
		d.Gather(st.Picked)
		return
	}
	if c.of != &inverse[0] {
		to := x.inverse()
		st.KeepInverse(to)
		to.Stored.Inverse = vector.Resize(to.Stored.Inverse, len(st.Picked))
		c.of, c.gathered = &inverse[0], to.Stored.Inverse
		gatherRows(c.gathered, inverse, st.Picked)
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

// gatheredRun is Layout.gatheredRun unless a test says otherwise: of how many rows next to each other selected rows are pieces of batches by
// themselves, on average. Such pieces are copied faster than they are gathered.
const gatheredRun = 32

// gathers reports whether a stripe that is decoded whole is gathered to the selected rows.
func (l *Layout) gathers(picked []int32) bool {
	runs := 1
	for i := 1; i < len(picked); i++ {
		if picked[i] != picked[i-1]+1 {
			runs++
		}
	}
	return runs*l.gatheredRun > len(picked)
}
