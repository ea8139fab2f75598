package reader

import "github.com/dsistore/dsistore/format/vector"

// A stripe of which rows here and there are selected, too many to be decoded alone, is decoded whole and condensed: its columns get an
// inverse that has the selected rows alone, a row a place. What would be a piece of a batch for every few rows is one piece, which batches are
// filled from by loops, and kernels, over many rows.
//
//	rows       0 1 2 3 4 5 6 7        inverse 0 0 1 2 2 2 3 3
//	selected     x   x x   x
//	places       0   1 2   3          inverse   0   2 2   3       the slots stay where they are, used or not
//
// The slots of a column without an inverse are the stripe's rows: then the selected rows are the inverse. A takeView does the same for takes.

// rowsAreSlots reports whether each row of a column of s is a slot of its own.
func (s *stripe) rowsAreSlots(c *vector.Column) bool {
	return c.Inverse == nil || s.condensed && len(s.picked) > 0 && len(c.Inverse) > 0 && &c.Inverse[0] == &s.picked[0]
}

// condense makes d.column one of some of its rows: inverse has the slot of each. Borrowed.
func (d *decoded) condense(inverse []int32) {
	d.condensed = *d.column
	c := &d.condensed
	d.ascends = c.Inverse == nil || c.Monotone
	c.Rows, c.Monotone, c.InverseBorrowed, c.Inverse = len(inverse), false, true, inverse
	d.column = c
}

// A condenser condenses the columns of an item of a stripe. An inverse that several of them share is gathered once.
type condenser struct {
	of       *int32 // where the inverse begins that was gathered last
	gathered []int32
}

// condense makes d, a column of st, one of the selected rows.
func (c *condenser) condense(x *executor, st *stripe, d *decoded) {
	inverse := d.column.Inverse
	if len(inverse) == 0 {
		d.condense(st.picked)
		return
	}
	if c.of != &inverse[0] {
		to := x.inverse()
		st.keepInverse(to)
		to.stored.Inverse = vector.Resize(to.stored.Inverse, len(st.picked))
		c.of, c.gathered = &inverse[0], to.stored.Inverse
		gatherRows(c.gathered, inverse, st.picked)
	}
	d.condense(c.gathered)
}

// gatherRows writes what inverse has of each of rows. It does not append: cache misses are many, and should overlap.
func gatherRows(dst, inverse, rows []int32) {
	dst = dst[:len(rows)]
	for i, r := range rows {
		dst[i] = inverse[r]
	}
}

// condensedRun is Layout.condensedRun unless a test says otherwise: of how many rows next to each other selected rows are pieces of batches by
// themselves, on average. Such pieces are copied faster than they are gathered.
const condensedRun = 32

// condenses reports whether a stripe that is decoded whole is condensed to the selected rows.
func (l *Layout) condenses(picked []int32) bool {
	runs := 1
	for i := 1; i < len(picked); i++ {
		if picked[i] != picked[i-1]+1 {
			runs++
		}
	}
	return runs*l.condensedRun > len(picked)
}
