package batch

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
)

// An exactColumn makes one exact column of a batch.
type exactColumn struct {
	feature int32 // its position in the plan
	column  vector.Column
	// partitionKey, unless empty: the column has the values of that partition key.
	partitionKey string
	alone        bool // it never shares slots: a partition key, or the weights
	arrays       columnArrays

	group   *Group // whose slots it has; nil: a value for each row
	partial bool   // slots are partial duplicates: the column has lengths
	copies  copyRange
}

// measure adds the arrays whose sizes do not depend on the lengths of lists.
func (e *exactColumn) measure(x *listFiller) {
	c, k := &e.column, &x.b.block
	e.group, e.partial = nil, false
	if !e.alone && x.b.Tensors == nil {
		if g := x.group(e.feature); g != &x.alone || c.Type.IsList() {
			e.group = g
		}
	}
	c.Rows, c.Slots, c.Monotone = x.b.Rows, x.b.Rows, false
	if g := e.group; g != nil {
		c.Slots = g.Slots
		c.Monotone = g != &x.alone && g.Monotone
	}
	if e.partitionKey != "" {
		e.measurePartition(x.b)
		return
	}
	if x.some(e.group, e.feature, func(c *vector.Column) bool { return c == nil || c.Present != nil }) {
		add[uint64](k, e.arrays.present, vector.BitmapWords(c.Slots))
	}
	if !c.Type.IsList() {
		addValues(k, e, c.Slots*c.Type.Width())
		return
	}
	isPartial := func(c *vector.Column) bool { return c != nil && c.Lengths != nil }
	if x.partial && e.group != nil && x.some(e.group, e.feature, isPartial) {
		e.partial = true
		add[int32](k, e.arrays.offsets, c.Slots)
		add[int32](k, e.arrays.lengths, c.Slots)
		return
	}
	add[int32](k, e.arrays.offsets, c.Slots+1)
}

// addValues adds n values, and their scores.
func addValues(k *block, e *exactColumn, n int) {
	switch e.column.Type.Physical() {
	case vector.Int64Values:
		add[int64](k, e.arrays.values, n)
	case vector.Float32Values:
		add[float32](k, e.arrays.values, n)
	case vector.Float64Values:
		add[float64](k, e.arrays.values, n)
	case vector.ByteValues:
		add[byte](k, e.arrays.values, n)
	}
	switch e.column.Type.Score {
	case vector.Float32:
		add[float32](k, e.arrays.scores, n)
	case vector.Float64:
		add[float64](k, e.arrays.scores, n)
	}
}

// place fills presence and the ranges of lists, and adds the array of their values.
func (e *exactColumn) place(x *listFiller) error {
	c, k := &e.column, &x.b.block
	if e.partitionKey != "" {
		return e.measurePartitionValues(x.b, x.l)
	}
	if p := vector.Bitmap(arrayOf[uint64](k, e.arrays.present)); p != nil {
		clear(p)
		x.putPresence(p, e.group, e.feature)
		if expand.AllSet(p, c.Slots) {
			k.shorten(e.arrays.present, 0)
		}
	}
	if !c.Type.IsList() {
		return nil
	}
	n, ok := 0, true
	offsets, from := arrayOf[int32](k, e.arrays.offsets), len(x.copies)
	if e.partial {
		n, ok = x.placeFeature(offsets, arrayOf[int32](k, e.arrays.lengths), e.group, e.feature, 0)
	} else {
		offsets[0] = 0
		x.putLengths(offsets[1:], e.group, e.feature)
		n, ok = expand.Accumulate(offsets[1:], 0)
	}
	if !ok {
		return tooLarge(x.b, x.l, e.feature)
	}
	e.copies = copyRange{from, len(x.copies)}
	addValues(k, e, n)
	return nil
}

// copyValues sets the column's slices to those of the block, which does not move any more, and fills its values.
func (e *exactColumn) copyValues(x *listFiller) {
	c, k := &e.column, &x.b.block
	c.Present = arrayOf[uint64](k, e.arrays.present)
	c.Inverse, c.InverseBorrowed = nil, false
	if e.group != nil && e.group.Inverse != nil {
		c.Inverse, c.InverseBorrowed = e.group.Inverse, true
	}
	c.Offsets, c.Lengths = nil, nil
	if c.Type.IsList() {
		c.Offsets, c.Lengths = arrayOf[int32](k, e.arrays.offsets), arrayOf[int32](k, e.arrays.lengths)
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		c.Ints = arrayOf[int64](k, e.arrays.values)
		fillValues(c.Ints, e, x, func(s *vector.Column) []int64 { return s.Ints })
	case vector.Float32Values:
		c.Floats = arrayOf[float32](k, e.arrays.values)
		fillValues(c.Floats, e, x, func(s *vector.Column) []float32 { return s.Floats })
	case vector.Float64Values:
		c.Doubles = arrayOf[float64](k, e.arrays.values)
		fillValues(c.Doubles, e, x, func(s *vector.Column) []float64 { return s.Doubles })
	case vector.ByteValues:
		c.Data = arrayOf[byte](k, e.arrays.values)
		if e.partitionKey != "" {
			e.fillPartition(x.b)
			return
		}
		fillValues(c.Data, e, x, func(s *vector.Column) []byte { return s.Data })
	}
	switch c.Type.Score {
	case vector.Float32:
		c.ScoreFloats = arrayOf[float32](k, e.arrays.scores)
		fillValues(c.ScoreFloats, e, x, func(s *vector.Column) []float32 { return s.ScoreFloats })
	case vector.Float64:
		c.ScoreDoubles = arrayOf[float64](k, e.arrays.scores)
		fillValues(c.ScoreDoubles, e, x, func(s *vector.Column) []float64 { return s.ScoreDoubles })
	}
}

// fillValues copies the values of the group's slots or, without a group, of all rows. values returns the slice of a
// column's values.
func fillValues[T any](dst []T, e *exactColumn, x *listFiller, values func(*vector.Column) []T) {
	g := e.group
	if e.partial {
		for _, v := range x.copies[e.copies.from:e.copies.to] {
			copy(dst[v.at:], values(v.column)[v.from:v.to])
		}
		return
	}
	width := e.column.Type.Width()
	for i := range x.sources(g) {
		c, lo, hi := x.source(g, i, e.feature)
		n := (hi - lo) * width
		switch {
		case width > 0 && c == nil:
			clear(dst[:n])
		case width > 0:
			expand.PutFixed(dst[:n], values(c), c, width, lo, hi)
		case c != nil:
			n = expand.PutLists(dst, values(c), c, lo, hi, false)
		}
		dst = dst[n:]
	}
}

// Column returns the decoded column of a feature; nil: every row is null.
func (p *Piece) Column(feature int32) *vector.Column {
	d := p.Stripe.Columns[feature]
	if d == nil {
		return nil
	}
	return d.Column
}

// fillRanges writes the length of each row's list, and its end when the first starts at base. It returns the last end,
// and false if that does not fit an int32.
func fillRanges(lengths, ends []int32, b *Batch, feature int32, base int) (int, bool) {
	sum := int64(base)
	for i := range b.pieces { // each starts at the row of the batch where the one before ends
		p := &b.pieces[i]
		n := p.Hi - p.Lo
		sum = expand.PutRanges(lengths[p.At:p.At+n], ends[p.At:p.At+n], p.Column(feature), p.Lo, p.Hi, sum)
	}
	return int(sum), sum <= vector.MaxElements
}

func tooLarge(b *Batch, l *batchLayout, feature int32) error {
	return fmt.Errorf("feature %q: the lists of %d rows have more than %d values: the batch size, %d, is too large",
		l.plan.Features[feature].Name, b.Rows, vector.MaxElements, l.plan.BatchSize)
}
