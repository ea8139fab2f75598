package writer

import (
	"bytes"
	"fmt"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/format/vector"
)

// A runGatherer builds stripes from pieces and stores each run of equal rows once. It compares rows in their source
// columns and copies only the first of each run. It holds scratch memory: one for each goroutine.
//
//	pieces   (chunk 2, row 7) (chunk 0, row 1) (chunk 2, row 8) ...     rows in order
//	compare  each row with the one before, bit by bit
//	copy     the first row of each run
type runGatherer struct {
	raw, rawScores [][]byte // of each source
	numbers32      [][]uint32
	numbers64      [][]int64
	starts         []int32      // first row of each run
	nulls          []int32      // indexes of the runs that are null
	kept           []sourceSpan // values to copy, in order
	present        vector.Bitmap
}

// A sourceSpan is values [lo, hi) of a source.
type sourceSpan struct{ src, lo, hi uint32 }

// gather sets dst to the rows of pieces, one row for each run, and returns the stripe, which borrows dst and g until
// the next call. dst.Type, srcs and rows are as in gatherer.gather.
func (g *runGatherer) gather(dst *vector.Column, srcs []*vector.Column, pieces []piece, rows int) (dedup.Stripe,
	error) {
	dst.Reset()
	g.starts, g.nulls, g.kept = g.starts[:0], g.nulls[:0], g.kept[:0]
	t := dst.Type
	var err error
	switch {
	case t.IsList():
		err = g.lists(dst, srcs, pieces, rows)
	case t.Width() != 1:
		g.vectors(t, srcs, pieces)
	case t.Physical() == vector.Float32Values:
		g.numbers32 = views(g.numbers32, srcs, func(c *vector.Column) []uint32 {
			return vector.Bits32(c.Floats)
		})
		dst.Floats = vector.Resize(dst.Floats, rows)
		n := numbers(g, vector.Bits32(dst.Floats), g.numbers32, srcs, pieces)
		dst.Floats = dst.Floats[:n]
	case t.Physical() == vector.Float64Values:
		g.numbers64 = views(g.numbers64, srcs, func(c *vector.Column) []int64 {
			return vector.Bits64(c.Doubles)
		})
		dst.Doubles = vector.Resize(dst.Doubles, rows)
		n := numbers(g, vector.Bits64(dst.Doubles), g.numbers64, srcs, pieces)
		dst.Doubles = dst.Doubles[:n]
	default:
		g.numbers64 = views(g.numbers64, srcs, func(c *vector.Column) []int64 { return c.Ints })
		dst.Ints = vector.Resize(dst.Ints, rows)
		n := numbers(g, dst.Ints, g.numbers64, srcs, pieces)
		dst.Ints = dst.Ints[:n]
	}
	if err != nil {
		return dedup.Stripe{}, err
	}
	dst.Rows, dst.Slots = len(g.starts), len(g.starts)
	if len(g.nulls) > 0 {
		g.present = vector.Resize(g.present, vector.BitmapWords(dst.Rows))
		clear(g.present)
		g.present.SetRange(0, dst.Rows)
		for _, n := range g.nulls {
			g.present[n>>6] &^= 1 << (uint(n) & 63)
		}
		dst.Present = g.present
	}
	g.copyKept(dst, srcs)
	return dedup.Stripe{Values: dst, Starts: g.starts, Rows: rows}, nil
}

// begin starts a run at a row.
func (g *runGatherer) begin(row int, null bool) {
	if null {
		g.nulls = append(g.nulls, int32(len(g.starts)))
	}
	g.starts = append(g.starts, int32(row))
}

// numbers finds the runs of columns with one number per row. It writes the first value of each run to dst, whose length
// is the number of rows, and returns the number of runs.
func numbers[T uint32 | int64](g *runGatherer, dst []T, vals [][]T, srcs []*vector.Column, pieces []piece) (runs int) {
	var before T
	beforeNull := false
	row := 0
	for _, p := range pieces {
		n := int(p.n)
		c := srcs[p.src]
		if c == nil || c.Present != nil {
			for i := range n {
				at := int(p.row) + i
				null := c == nil || !c.Present.Get(at)
				var v T
				if !null {
					v = vals[p.src][at]
				}
				if row == 0 || null != beforeNull || v != before {
					g.begin(row, null)
					dst[runs] = v
					runs++
					before, beforeNull = v, null
				}
				row++
			}
			continue
		}
		for _, v := range vals[p.src][p.row : p.row+p.n] {
			if v != before || beforeNull || row == 0 {
				g.begin(row, false)
				dst[runs] = v
				runs++
				before, beforeNull = v, false
			}
			row++
		}
	}
	return runs
}

// vectors finds the runs of columns of a fixed number of values per row.
func (g *runGatherer) vectors(t vector.Type, srcs []*vector.Column, pieces []piece) {
	g.raw = views(g.raw, srcs, valueBytes)
	values := uint32(t.Width())
	size := uint32(valueSize(t)) * values
	var before []byte
	row := 0
	for _, p := range pieces {
		c := srcs[p.src]
		for at := p.row; at < p.row+p.n; at++ {
			var v []byte // nil: null
			if c != nil && !c.IsNull(int(at)) {
				v = g.raw[p.src][at*size : (at+1)*size]
			}
			if row == 0 || (v == nil) != (before == nil) || !bytes.Equal(v, before) {
				g.begin(row, v == nil)
				g.keep(p.src, at*values, (at+1)*values)
				before = v
			}
			row++
		}
	}
}

// lists finds the runs of lists and sets dst.Offsets.
func (g *runGatherer) lists(dst *vector.Column, srcs []*vector.Column, pieces []piece, rows int) error {
	t := dst.Type
	g.raw = views(g.raw, srcs, valueBytes)
	g.rawScores = g.rawScores[:0]
	if t.Kind == vector.Weighted {
		g.rawScores = views(g.rawScores, srcs, func(c *vector.Column) []byte {
			if t.Score == vector.Float64 {
				return vector.BytesOf(c.ScoreDoubles)
			}
			return vector.BytesOf(c.ScoreFloats)
		})
	}
	size, perScore := valueSize(t), scoreSize(t)
	var before, beforeScores []byte
	beforeNull := false
	row, all, end := 0, int64(0), int32(0)
	for _, p := range pieces {
		c := srcs[p.src]
		if c == nil {
			if !beforeNull || row == 0 {
				g.begin(row, true)
				dst.Offsets = append(dst.Offsets, end)
				before, beforeScores, beforeNull = nil, nil, true
			}
			row += int(p.n)
			continue
		}
		offsets, raw := c.Offsets[p.row:p.row+p.n+1], g.raw[p.src]
		for i := range int(p.n) {
			lo, hi := int(offsets[i]), int(offsets[i+1])
			all += int64(hi - lo)
			null := c.Present != nil && !c.Present.Get(int(p.row)+i)
			v := raw[lo*size : hi*size]
			var scores []byte
			if len(g.rawScores) > 0 {
				scores = g.rawScores[p.src][lo*perScore : hi*perScore]
			}
			if row > 0 && null == beforeNull && bytes.Equal(v, before) && bytes.Equal(scores, beforeScores) {
				row++
				continue
			}
			g.begin(row, null)
			if hi > lo {
				g.keep(p.src, uint32(lo), uint32(hi))
			}
			end += int32(hi - lo) // no more than all, which is checked
			dst.Offsets = append(dst.Offsets, end)
			before, beforeScores, beforeNull = v, scores, null
			row++
		}
		if all > vector.MaxElements {
			return fmt.Errorf("%d rows hold more than %d values: use smaller stripes", rows, vector.MaxElements)
		}
	}
	return nil
}

// keep adds values [lo, hi) of a source to those that copyKept copies.
func (g *runGatherer) keep(src, lo, hi uint32) {
	if n := len(g.kept); n > 0 && g.kept[n-1].src == src && g.kept[n-1].hi == lo {
		g.kept[n-1].hi = hi
		return
	}
	g.kept = append(g.kept, sourceSpan{src, lo, hi})
}

// copyKept sets dst's values, and scores, to the kept spans.
func (g *runGatherer) copyKept(dst *vector.Column, srcs []*vector.Column) {
	t := dst.Type
	n := 0
	for _, s := range g.kept {
		n += int(s.hi - s.lo)
	}
	if n == 0 {
		return
	}
	switch t.Physical() {
	case vector.Int64Values:
		dst.Ints = vector.Resize(dst.Ints, n)[:0]
	case vector.Float32Values:
		dst.Floats = vector.Resize(dst.Floats, n)[:0]
	case vector.Float64Values:
		dst.Doubles = vector.Resize(dst.Doubles, n)[:0]
	case vector.ByteValues:
		dst.Data = vector.Resize(dst.Data, n)[:0]
	}
	switch {
	case t.Kind != vector.Weighted:
	case t.Score == vector.Float64:
		dst.ScoreDoubles = vector.Resize(dst.ScoreDoubles, n)[:0]
	default:
		dst.ScoreFloats = vector.Resize(dst.ScoreFloats, n)[:0]
	}
	for _, s := range g.kept {
		c := srcs[s.src]
		if c == nil { // a vector that is null
			c = zeros(t, int(s.hi-s.lo))
			s.lo, s.hi = 0, s.hi-s.lo
		}
		switch t.Physical() {
		case vector.Int64Values:
			dst.Ints = append(dst.Ints, c.Ints[s.lo:s.hi]...)
		case vector.Float32Values:
			dst.Floats = append(dst.Floats, c.Floats[s.lo:s.hi]...)
		case vector.Float64Values:
			dst.Doubles = append(dst.Doubles, c.Doubles[s.lo:s.hi]...)
		case vector.ByteValues:
			dst.Data = append(dst.Data, c.Data[s.lo:s.hi]...)
		}
		switch {
		case t.Kind != vector.Weighted:
		case t.Score == vector.Float64:
			dst.ScoreDoubles = append(dst.ScoreDoubles, c.ScoreDoubles[s.lo:s.hi]...)
		default:
			dst.ScoreFloats = append(dst.ScoreFloats, c.ScoreFloats[s.lo:s.hi]...)
		}
	}
}

// zeros returns a column of the type with n values, all zero.
func zeros(t vector.Type, n int) *vector.Column {
	c := vector.NewColumn(t)
	c.AppendNulls((n + t.Width() - 1) / t.Width())
	return c
}

// valueBytes returns a column's values as bytes of the same memory. Borrowed.
func valueBytes(c *vector.Column) []byte {
	switch c.Type.Physical() {
	case vector.Float32Values:
		return vector.BytesOf(c.Floats)
	case vector.Float64Values:
		return vector.BytesOf(c.Doubles)
	case vector.ByteValues:
		return c.Data
	}
	return vector.BytesOf(c.Ints)
}

// valueSize returns how many bytes a value of type t takes in memory, without its score.
func valueSize(t vector.Type) int {
	switch t.Physical() {
	case vector.Float32Values:
		return 4
	case vector.ByteValues:
		return 1
	}
	return 8
}
