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
	Column *vector.Column // what to read: &stored, &widened, the column of transformed or &gathered
	Stored vector.Column
	// widened holds the values of a feature whose type in the segment is narrower than in the plan.
	widened vector.Column
	// transformed is nil until the feature is first transformed; then column is in it.
	transformed *transform.State
	// gathered has some rows of what column was before: all but its inverse is that one's.
	gathered vector.Column
	Ascends  bool // no row of gathered has a slot before that of the row before
	Absent   bool // nothing is stored: the column is what transforms make of null, in one slot
}

// Widen makes d.Column the stored column as type t, which vector.Widen gives of both.
func (d *Decoded) Widen(t vector.Type) {
	if d.Stored.Type == t {
		d.Column = &d.Stored
		return
	}
	vector.ConvertInto(&d.widened, &d.Stored, t)
	d.Column = &d.widened
}

// Transform makes d.Column what p makes of it.
func (d *Decoded) Transform(p *transform.Program) (err error) {
	d.Column, err = d.state().Run(p, d.Column)
	return err
}

// Missing makes d.Column the column of a feature that a segment does not have, after p, which fills null: one slot for
// all rows, whose inverse is zeros, borrowed.
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

// Get returns n zeros. Borrowed: nobody writes to them.
func (z *ZeroInverse) Get(n int) []int32 {
	if p := z.zeros.Load(); p != nil && len(*p) >= n {
		return (*p)[:n:n]
	}
	p := make([]int32, n)
	z.zeros.Store(&p)
	return p
}

// Gather makes d.Column one of some of its rows: inverse has the slot of each. Borrowed.
func (d *Decoded) Gather(inverse []int32) {
	d.gathered = *d.Column
	c := &d.gathered
	d.Ascends = c.Inverse == nil || c.Monotone
	c.Rows, c.Monotone, c.InverseBorrowed, c.Inverse = len(inverse), false, true, inverse
	d.Column = c
}

// Weigh makes d.Column the weights of rows of a stripe that begins at row first of its segment: of those the selected
// ones, nil: of all.
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

// Bytes returns about how much memory d holds.
func (d *Decoded) Bytes() int64 {
	n := d.Stored.SizeBytes() + d.widened.SizeBytes()
	if d.transformed != nil {
		n += d.transformed.SizeBytes()
	}
	return int64(n)
}
