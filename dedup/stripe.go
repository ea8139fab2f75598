package dedup

import "github.com/dsistore/dsistore/format/vector"

// A Stripe is the rows of one feature in a stripe. The caller may leave out rows that are equal to the row before:
//
//	rows     a a a b a a        Values   a b a        Starts   0 3 4        Rows   6
//
// Both slices are borrowed by the function that is given a Stripe.
type Stripe struct {
	// Values is a plain column with a row for each run, or with every row if Starts is nil.
	Values *vector.Column
	// Starts are the first rows of the runs, ascending from 0; nil: not known.
	Starts []int32
	Rows   int // with those left out
}

// Elements returns how many values all rows have, in the unit of Column.Elements.
func (s Stripe) Elements() int {
	c := s.Values
	switch {
	case s.Starts == nil || c.Rows == s.Rows:
		return c.Elements()
	case !c.Type.IsList():
		return s.Rows * c.Type.Width()
	}
	n := 0
	for i := range s.Starts {
		lo, hi := c.SlotRange(i)
		n += s.length(i) * (hi - lo)
	}
	return n
}

// length returns how many rows run i has.
func (s Stripe) length(i int) int {
	end := s.Rows
	if i+1 < len(s.Starts) {
		end = int(s.Starts[i+1])
	}
	return end - int(s.Starts[i])
}
