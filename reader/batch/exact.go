package batch

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
	"github.com/dsistore/dsistore/reader/memory"
)

// An exactColumn is the memory of one exact column of a batch.
type exactColumn struct {
	feature int32 // its position in the plan
	column  vector.Column
	// partitionKey: the column is of that partition key and of no feature, unless it is empty.
	partitionKey string
	alone        bool // it shares slots with no feature: a partition key, weights

	present      memory.Buffer[uint64]
	offsets      memory.Buffer[int32]
	lengths      memory.Buffer[int32]
	ints         memory.Buffer[int64]
	floats       memory.Buffer[float32]
	doubles      memory.Buffer[float64]
	data         memory.Buffer[byte]
	scoreFloats  memory.Buffer[float32]
	scoreDoubles memory.Buffer[float64]
}

// fill makes the column of b's pieces: of the slots of a group, else with a value for each row.
func (e *exactColumn) fill(g *Group, x *listFiller) error {
	c, a := &e.column, x.l.allocator
	c.Rows, c.Slots, c.Lengths = x.b.Rows, x.b.Rows, nil
	c.Inverse, c.Monotone, c.InverseBorrowed = nil, false, false
	if g != nil {
		c.Slots, c.Inverse = g.Slots, g.Inverse
		c.InverseBorrowed, c.Monotone = g.Inverse != nil, g.Inverse != nil && g.Monotone
	}
	if e.partitionKey != "" {
		return e.fillPartition(x.b, x.l)
	}
	e.fillPresence(g, x)
	n := c.Slots * c.Type.Width()
	if c.Type.IsList() {
		var err error
		if n, err = e.fillRanges(g, x); err != nil {
			return err
		}
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		c.Ints = e.ints.Resize(a, n)
		fillValues(c.Ints, e, g, x, func(s *vector.Column) []int64 { return s.Ints })
	case vector.Float32Values:
		c.Floats = e.floats.Resize(a, n)
		fillValues(c.Floats, e, g, x, func(s *vector.Column) []float32 { return s.Floats })
	case vector.Float64Values:
		c.Doubles = e.doubles.Resize(a, n)
		fillValues(c.Doubles, e, g, x, func(s *vector.Column) []float64 { return s.Doubles })
	case vector.ByteValues:
		c.Data = e.data.Resize(a, n)
		fillValues(c.Data, e, g, x, func(s *vector.Column) []byte { return s.Data })
	}
	switch c.Type.Score {
	case vector.Float32:
		c.ScoreFloats = e.scoreFloats.Resize(a, n)
		fillValues(c.ScoreFloats, e, g, x, func(s *vector.Column) []float32 { return s.ScoreFloats })
	case vector.Float64:
		c.ScoreDoubles = e.scoreDoubles.Resize(a, n)
		fillValues(c.ScoreDoubles, e, g, x, func(s *vector.Column) []float64 { return s.ScoreDoubles })
	}
	return nil
}

// fillPresence sets the column's Present, nil when no slot is null.
func (e *exactColumn) fillPresence(g *Group, x *listFiller) {
	e.column.Present = nil
	if !x.some(g, e.feature, func(c *vector.Column) bool { return c == nil || c.Present != nil }) {
		return
	}
	p := vector.Bitmap(e.present.Resize(x.l.allocator, vector.BitmapWords(e.column.Slots)))
	clear(p)
	x.putPresence(p, g, e.feature)
	if !expand.AllSet(p, e.column.Slots) {
		e.column.Present = p
	}
}

// fillRanges sets the column's Offsets, and its Lengths where it has partial duplicates, and returns the number of
// values.
func (e *exactColumn) fillRanges(g *Group, x *listFiller) (n int, err error) {
	c := &e.column
	x.copies = x.copies[:0]
	ok := true
	isPartial := func(c *vector.Column) bool { return c != nil && c.Lengths != nil }
	if x.partial && g != nil && x.some(g, e.feature, isPartial) {
		c.Offsets = e.offsets.Resize(x.l.allocator, c.Slots)
		c.Lengths = e.lengths.Resize(x.l.allocator, c.Slots)
		n, ok = x.placeFeature(c.Offsets, c.Lengths, g, e.feature, 0)
	} else {
		c.Offsets = e.offsets.Resize(x.l.allocator, c.Slots+1)
		c.Offsets[0] = 0
		x.putLengths(c.Offsets[1:], g, e.feature)
		n, ok = expand.Accumulate(c.Offsets[1:], 0)
	}
	if !ok {
		return 0, tooLarge(x.b, x.l, e.feature)
	}
	return n, nil
}

// fillValues copies the values of a group's slots, else of all rows; values says which slice of a column they are.
func fillValues[T any](dst []T, e *exactColumn, g *Group, x *listFiller, values func(*vector.Column) []T) {
	if e.column.Lengths != nil {
		for i := range x.copies {
			v := &x.copies[i]
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

func (e *exactColumn) buffers() []memory.AnyBuffer {
	return []memory.AnyBuffer{&e.present, &e.offsets, &e.lengths, &e.ints, &e.floats, &e.doubles, &e.data,
		&e.scoreFloats, &e.scoreDoubles}
}

// Column returns the decoded column of a feature; nil: every row is null.
func (p *Piece) Column(feature int32) *vector.Column {
	d := p.Stripe.Columns[feature]
	if d == nil {
		return nil
	}
	return d.Column
}

// fillRanges writes the length of each row's list, and where each ends when the first begins at base. It returns the
// last end; false when it does not fit an int32.
func fillRanges(lengths, ends []int32, b *Batch, feature int32, base int) (int, bool) {
	sum := int64(base)
	for i := range b.pieces { // each begins at the row where the one before it ends
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
