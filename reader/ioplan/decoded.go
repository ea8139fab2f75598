package ioplan

import (
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/reader/transform"
)

// A Decoded is the memory of one decoded stripe of one feature.
type Decoded struct {
	Column *vector.Column // the result: &Stored, &widened, the column of transformed, or &gathered
	Stored vector.Column
	// widened holds the values of a feature whose type in the segment is narrower than in the plan.
	widened vector.Column
	// transformed is nil until the feature is first transformed.
	transformed *transform.State
	// gathered has some rows of Column: it shares all slices with it except Inverse.
	gathered vector.Column
	Ascends  bool // the slots of gathered's rows do not decrease
	Absent   bool // nothing is stored: the column is the result of transforms of null, in one slot
}

// Widen sets d.Column to the stored column, converted to type t, to which its type widens.
func (d *Decoded) Widen(t vector.Type) {
	if d.Stored.Type == t {
		d.Column = &d.Stored
		return
	}
	vector.ConvertInto(&d.widened, &d.Stored, t)
	d.Column = &d.widened
}

// Transform sets d.Column to the result of p on it.
func (d *Decoded) Transform(p *transform.Program) (err error) {
	d.Column, err = d.state().Run(p, d.Column)
	return err
}

// Missing sets d.Column for a feature that a segment does not have: the result of p, which fills null, in one slot for
// all rows. zeros is its inverse, borrowed.
func (d *Decoded) Missing(p *transform.Program, zeros []int32) (err error) {
	d.Ascends, d.Absent = true, true
	d.Column, err = d.state().Null(p, zeros)
	return err
}

func (d *Decoded) state() *transform.State {
	if d.transformed == nil {
		d.transformed = new(transform.State)
	}
	return d.transformed
}

// A ZeroInverse is the inverse of columns with one slot. It is safe for concurrent use.
type ZeroInverse struct {
	zeros atomic.Pointer[[]int32]
}

// Get returns n zeros. Borrowed: do not write.
func (z *ZeroInverse) Get(n int) []int32 {
	if p := z.zeros.Load(); p != nil && len(*p) >= n {
		return (*p)[:n:n]
	}
	p := make([]int32, n)
	z.zeros.Store(&p)
	return p
}

// Gather reduces d.Column to some of its rows. inverse has the slot of each; it is borrowed.
func (d *Decoded) Gather(inverse []int32) {
	d.gathered = *d.Column
	c := &d.gathered
	d.Ascends = c.Inverse == nil || c.Monotone
	c.Rows, c.Monotone, c.InverseBorrowed, c.Inverse = len(inverse), false, true, inverse
	d.Column = c
}

// Weigh sets d.Column to the weights of a stripe that starts at row first of its segment: weight for rows in weighted,
// 1 for others. rows is the number of rows of the column: the stripe's selected ones; selected nil: all.
func (d *Decoded) Weigh(weighted *roaring.Bitmap, weight float32, first uint64, rows int, selected []int32) {
	d.Stored = vector.Column{Type: plan.WeightColumn().Type, Rows: rows, Slots: rows,
		Floats: vector.Resize(d.Stored.Floats, rows)}
	d.Column = &d.Stored
	out := d.Stored.Floats
	for i := range out {
		out[i] = 1
	}
	if selected != nil {
		for i, r := range selected {
			if weighted.Contains(uint32(first) + uint32(r)) {
				out[i] = weight
			}
		}
		return
	}
	it := weighted.Iterator()
	for it.AdvanceIfNeeded(uint32(first)); it.HasNext(); {
		r := uint64(it.Next())
		if r >= first+uint64(rows) {
			return
		}
		out[r-first] = weight
	}
}

// Bytes returns the approximate memory of d.
func (d *Decoded) Bytes() int64 {
	n := d.Stored.SizeBytes() + d.widened.SizeBytes()
	if d.transformed != nil {
		n += d.transformed.SizeBytes()
	}
	return int64(n)
}
