package dedup

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

// A modelSizer estimates what stripes take, without encoding them.
type modelSizer struct {
	grouped bool
	v       values
	e       estimator
}

func (m *modelSizer) Reset(_ vector.Type, grouped bool) { m.grouped = grouped }

func (m *modelSizer) Size(c *vector.Column) (int, error) {
	present := c.Slots
	if c.Present != nil {
		present = c.Present.Count()
	}
	n := float64(c.Slots)*entropy(present, c.Slots) + m.elementBits(c)*float64(c.Elements())
	if c.Type.IsList() && present > 0 {
		length := 1 + math.Log2(1+float64(c.Elements())/float64(present))
		n += float64(present)*length + streamBits
		if c.Lengths != nil {
			n += float64(present)*length + streamBits
		}
	}
	if c.Inverse == nil || m.grouped || c.Slots == 1 {
		return int(n / 8), nil
	}
	runs, last := 0, int32(-1)
	for _, s := range c.Inverse {
		if s != last {
			runs++
			last = s
		}
	}
	slots := c.Slots
	if c.Monotone {
		slots = 0
	}
	return int((n + inverseBits(c.Rows, runs, slots)) / 8), nil
}

// elementBits estimates the bits of a stored value of c, with its score.
func (m *modelSizer) elementBits(c *vector.Column) float64 {
	plain := *c // all values, as they are stored
	plain.Inverse, plain.Present, plain.Lengths, plain.Rows = nil, nil, nil, c.Slots
	if c.Type.IsList() {
		plain.Rows, plain.Slots, plain.Offsets = 1, 1, []int32{0, int32(c.Elements())}
	}
	m.v.set(&plain, plain.Rows)
	bits := m.e.valueBits(&m.v, Stripe{Values: &plain, Rows: plain.Rows})
	if c.Type.Kind == vector.Weighted {
		bits += scoreBits
	}
	return bits
}
