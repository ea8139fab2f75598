package vector

import "fmt"

// The Append methods build plain columns: the receiver has neither Inverse nor Lengths. A source may have both. The
// caller checks that a column of lists stays within MaxElements values: beyond it the offsets overflow.

// MaxElements is the largest number of values of a column of lists, so that offsets fit an int32.
const MaxElements = 1<<31 - 1

// AppendNulls appends n null rows.
func (c *Column) AppendNulls(n int) {
	if n == 0 {
		return
	}
	c.materialisePresence()
	c.Present = c.Present.Grow(c.Slots + n)
	if c.Type.IsList() {
		end := c.Offsets[c.Slots]
		for range n {
			c.Offsets = append(c.Offsets, end)
		}
	} else {
		c.growValues(n * c.Type.Width())
	}
	c.Rows += n
	c.Slots += n
}

// AppendRow appends one row of src, which has the same Type.
func (c *Column) AppendRow(src *Column, row int) {
	s := src.Slot(row)
	if src.Present != nil && !src.Present.Get(s) {
		c.AppendNulls(1)
		return
	}
	lo, hi := src.SlotRange(s)
	c.appendValues(src, lo, hi)
	c.AddSlot()
}

// AddSlot adds a present row, after the caller has appended its values to the value slices.
func (c *Column) AddSlot() {
	if c.Type.IsList() {
		c.Offsets = append(c.Offsets, int32(c.Elements()))
	}
	if c.Present != nil {
		c.Present = c.Present.Grow(c.Slots + 1)
		c.Present.Set(c.Slots)
	}
	c.Slots++
	c.Rows++
}

// AddPresent adds n present rows to a column of no lists, after the caller has appended their values.
func (c *Column) AddPresent(n int) {
	if c.Present != nil {
		c.Present = c.Present.Grow(c.Slots + n)
		c.Present.SetRange(c.Slots, c.Slots+n)
	}
	c.Slots += n
	c.Rows += n
}

// AppendRows appends rows [lo, hi) of src, which has the same Type, in order.
func (c *Column) AppendRows(src *Column, lo, hi int) {
	if src.Inverse != nil || src.Lengths != nil {
		for r := lo; r < hi; r++ {
			c.AppendRow(src, r)
		}
		return
	}
	n := hi - lo
	if n <= 0 {
		return
	}
	from, _ := src.SlotRange(lo)
	_, to := src.SlotRange(hi - 1)
	base := int32(c.Elements())
	c.appendValues(src, from, to)
	if c.Type.IsList() {
		for _, o := range src.Offsets[lo+1 : hi+1] {
			c.Offsets = append(c.Offsets, base+o-int32(from))
		}
	}
	if src.Present != nil {
		c.materialisePresence()
	}
	if c.Present != nil {
		c.Present = c.Present.Grow(c.Slots + n)
		if src.Present == nil {
			c.Present.SetRange(c.Slots, c.Slots+n)
		} else {
			for i := range n {
				if src.Present.Get(lo + i) {
					c.Present.Set(c.Slots + i)
				}
			}
		}
	}
	c.Slots += n
	c.Rows += n
}

// Gather appends the given rows of src, which has the same Type, in the order given.
func (c *Column) Gather(src *Column, rows []int32) {
	for _, r := range rows {
		c.AppendRow(src, int(r))
	}
}

// Expanded returns c when it is plain, else a copied plain column with the same rows. That rows which share lists have
// more than MaxElements values together is an error.
func (c *Column) Expanded() (*Column, error) {
	if c.Inverse == nil && c.Lengths == nil {
		return c, nil
	}
	if c.Type.IsList() {
		n := 0
		for r := range c.Rows {
			lo, hi := c.RowRange(r)
			n += hi - lo
		}
		if n > MaxElements {
			return nil, fmt.Errorf("the lists of %d rows have %d values, more than %d", c.Rows, n, MaxElements)
		}
	}
	out := NewColumn(c.Type)
	for r := range c.Rows {
		out.AppendRow(c, r)
	}
	return out, nil
}

// materialisePresence makes Present a bitmap of the slots so far.
func (c *Column) materialisePresence() {
	if c.Present == nil {
		c.Present = make(Bitmap, 0, BitmapWords(c.Slots+1)).Grow(c.Slots)
		c.Present.SetRange(0, c.Slots)
	}
}

// growValues appends n zero values.
func (c *Column) growValues(n int) {
	switch c.Type.Physical() {
	case Int64Values:
		c.Ints = append(c.Ints, make([]int64, n)...)
	case Float32Values:
		c.Floats = append(c.Floats, make([]float32, n)...)
	case Float64Values:
		c.Doubles = append(c.Doubles, make([]float64, n)...)
	case ByteValues:
		c.Data = append(c.Data, make([]byte, n)...)
	}
}

func (c *Column) appendValues(src *Column, lo, hi int) {
	if c.Type != src.Type {
		panic(fmt.Sprintf("vector: append of %v to %v", src.Type, c.Type))
	}
	switch c.Type.Physical() {
	case Int64Values:
		c.Ints = append(c.Ints, src.Ints[lo:hi]...)
	case Float32Values:
		c.Floats = append(c.Floats, src.Floats[lo:hi]...)
	case Float64Values:
		c.Doubles = append(c.Doubles, src.Doubles[lo:hi]...)
	case ByteValues:
		c.Data = append(c.Data, src.Data[lo:hi]...)
	}
	if c.Type.Kind == Weighted {
		if c.Type.Score == Float64 {
			c.ScoreDoubles = append(c.ScoreDoubles, src.ScoreDoubles[lo:hi]...)
		} else {
			c.ScoreFloats = append(c.ScoreFloats, src.ScoreFloats[lo:hi]...)
		}
	}
}
