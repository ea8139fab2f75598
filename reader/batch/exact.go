package batch

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expand"
	"github.com/dsistore/dsistore/reader/memory"
)

// An exactColumn is the memory of one exact column of a batch.
type exactColumn struct {
	feature int32 // its place in the plan
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

// fill makes the plain column of b's pieces.
func (e *exactColumn) fill(b *Batch, l *batchLayout) error {
	c := &e.column
	c.Rows, c.Slots = b.Rows, b.Rows
	c.Inverse, c.Monotone, c.InverseBorrowed, c.Lengths = nil, false, false, nil
	if e.partitionKey != "" {
		return e.fillPartition(b, l)
	}
	e.fillPresence(b, l)
	n := b.Rows * c.Type.Width()
	if c.Type.IsList() {
		var err error
		if n, err = e.fillOffsets(b, l); err != nil {
			return err
		}
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		c.Ints = e.ints.Resize(l.allocator, n)
		fillValues(c.Ints, e, b, func(s *vector.Column) []int64 { return s.Ints })
	case vector.Float32Values:
		c.Floats = e.floats.Resize(l.allocator, n)
		fillValues(c.Floats, e, b, func(s *vector.Column) []float32 { return s.Floats })
	case vector.Float64Values:
		c.Doubles = e.doubles.Resize(l.allocator, n)
		fillValues(c.Doubles, e, b, func(s *vector.Column) []float64 { return s.Doubles })
	case vector.ByteValues:
		c.Data = e.data.Resize(l.allocator, n)
		fillValues(c.Data, e, b, func(s *vector.Column) []byte { return s.Data })
	}
	switch c.Type.Score {
	case vector.Float32:
		c.ScoreFloats = e.scoreFloats.Resize(l.allocator, n)
		fillValues(c.ScoreFloats, e, b, func(s *vector.Column) []float32 { return s.ScoreFloats })
	case vector.Float64:
		c.ScoreDoubles = e.scoreDoubles.Resize(l.allocator, n)
		fillValues(c.ScoreDoubles, e, b, func(s *vector.Column) []float64 { return s.ScoreDoubles })
	}
	return nil
}

// fillPresence sets the column's Present, nil when no row is null.
func (e *exactColumn) fillPresence(b *Batch, l *batchLayout) {
	e.column.Present = nil
	for i := range b.pieces {
		if s := b.pieces[i].Column(e.feature); s == nil || s.Present != nil {
			p := vector.Bitmap(e.present.Resize(l.allocator, vector.BitmapWords(b.Rows)))
			clear(p)
			fillPresence(p, b, e.feature)
			if !expand.AllSet(p, b.Rows) {
				e.column.Present = p
			}
			return
		}
	}
}

// fillOffsets sets the column's Offsets and returns the number of values.
func (e *exactColumn) fillOffsets(b *Batch, l *batchLayout) (int, error) {
	offsets := e.offsets.Resize(l.allocator, b.Rows+1)
	offsets[0] = 0
	fillLengths(offsets[1:], b, e.feature)
	n, ok := expand.Accumulate(offsets[1:], 0)
	if !ok {
		return 0, tooLarge(b, l, e.feature)
	}
	e.column.Offsets = offsets
	return n, nil
}

// fillValues copies the values of every piece; values says which slice of a column they are.
func fillValues[T any](dst []T, e *exactColumn, b *Batch, values func(*vector.Column) []T) {
	width := e.column.Type.Width()
	for i := range b.pieces {
		p := &b.pieces[i]
		s := p.Column(e.feature)
		switch {
		case width > 0 && s == nil:
			clear(dst[p.At*width : (p.At+p.Hi-p.Lo)*width])
		case width > 0:
			expand.PutFixed(dst[p.At*width:], values(s), s, width, p.Lo, p.Hi)
		case s != nil:
			expand.PutLists(dst[e.column.Offsets[p.At]:], values(s), s, p.Lo, p.Hi, false)
		}
	}
}

func (e *exactColumn) buffers() []memory.AnyBuffer {
	return []memory.AnyBuffer{&e.present, &e.offsets, &e.lengths, &e.ints, &e.floats, &e.doubles, &e.data, &e.scoreFloats, &e.scoreDoubles}
}

// Column returns the decoded column of a feature; nil: every row is null.
func (p *Piece) Column(feature int32) *vector.Column {
	d := p.Stripe.Columns[feature]
	if d == nil {
		return nil
	}
	return d.Column
}

// fillPresence sets a bit a row that is not null; dst was cleared.
func fillPresence(dst vector.Bitmap, b *Batch, feature int32) {
	for i := range b.pieces {
		p := &b.pieces[i]
		if s := p.Column(feature); s != nil {
			expand.PutPresence(dst, p.At, s, p.Lo, p.Hi)
		}
	}
}

// fillRanges writes the length of each row's list, and where each ends when the first begins at base. It returns the last end; false when
// it does not fit an int32.
func fillRanges(lengths, ends []int32, b *Batch, feature int32, base int) (int, bool) {
	sum := int64(base)
	for i := range b.pieces { // each begins at the row where the one before it ends
		p := &b.pieces[i]
		n := p.Hi - p.Lo
		sum = expand.PutRanges(lengths[p.At:p.At+n], ends[p.At:p.At+n], p.Column(feature), p.Lo, p.Hi, sum)
	}
	return int(sum), sum <= vector.MaxElements
}

// fillLengths writes the length of each row's list.
func fillLengths(dst []int32, b *Batch, feature int32) {
	for i := range b.pieces {
		p := &b.pieces[i]
		if s := p.Column(feature); s != nil {
			expand.PutLengths(dst[p.At:], s, p.Lo, p.Hi)
		} else {
			clear(dst[p.At : p.At+p.Hi-p.Lo])
		}
	}
}

func tooLarge(b *Batch, l *batchLayout, feature int32) error {
	return fmt.Errorf("feature %q: the lists of %d rows have more than %d values: the batch size, %d, is too large",
		l.plan.Features[feature].Name, b.Rows, vector.MaxElements, l.plan.BatchSize)
}
