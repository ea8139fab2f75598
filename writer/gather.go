package writer

import (
	"fmt"

	"github.com/dsistore/dsistore/format/vector"
)

// A piece is n consecutive rows of source column src, from row on. A list of pieces describes the sorted rows once.
// Each feature is then gathered by the same pieces from its own columns.
type piece struct {
	src, row, n uint32
}

// A gatherer builds columns from pieces. It holds scratch memory: one for each goroutine.
type gatherer struct {
	present []vector.Bitmap
	offsets [][]int32
	ints    [][]int64
	floats  [][]float32
	doubles [][]float64
	data    [][]byte
}

// gather sets dst to the rows of pieces. dst.Type is the type of srcs, which are plain columns borrowed for the call; a
// nil one is null in every row. rows is the sum of pieces' n. It returns how many rows are not null.
func (g *gatherer) gather(dst *vector.Column, srcs []*vector.Column, pieces []piece, rows int) (int, error) {
	dst.Reset()
	dst.Rows, dst.Slots = rows, rows
	present := g.gatherPresence(dst, srcs, pieces, rows)
	t := dst.Type
	if !t.IsList() {
		w := t.Width()
		switch t.Physical() {
		case vector.Int64Values:
			g.ints = views(g.ints, srcs, func(c *vector.Column) []int64 { return c.Ints })
			dst.Ints = gatherFixed(dst.Ints, g.ints, pieces, rows, w)
		case vector.Float32Values:
			g.floats = views(g.floats, srcs, func(c *vector.Column) []float32 { return c.Floats })
			dst.Floats = gatherFixed(dst.Floats, g.floats, pieces, rows, w)
		case vector.Float64Values:
			g.doubles = views(g.doubles, srcs, func(c *vector.Column) []float64 { return c.Doubles })
			dst.Doubles = gatherFixed(dst.Doubles, g.doubles, pieces, rows, w)
		}
		return present, nil
	}
	g.offsets = views(g.offsets, srcs, func(c *vector.Column) []int32 { return c.Offsets })
	total, err := g.gatherOffsets(dst, pieces, rows)
	if err != nil {
		return 0, err
	}
	switch t.Physical() {
	case vector.Int64Values:
		g.ints = views(g.ints, srcs, func(c *vector.Column) []int64 { return c.Ints })
		dst.Ints = gatherLists(dst.Ints, g.ints, g.offsets, pieces, total)
	case vector.Float32Values:
		g.floats = views(g.floats, srcs, func(c *vector.Column) []float32 { return c.Floats })
		dst.Floats = gatherLists(dst.Floats, g.floats, g.offsets, pieces, total)
	case vector.Float64Values:
		g.doubles = views(g.doubles, srcs, func(c *vector.Column) []float64 { return c.Doubles })
		dst.Doubles = gatherLists(dst.Doubles, g.doubles, g.offsets, pieces, total)
	case vector.ByteValues:
		g.data = views(g.data, srcs, func(c *vector.Column) []byte { return c.Data })
		dst.Data = gatherLists(dst.Data, g.data, g.offsets, pieces, total)
	}
	if t.Kind == vector.Weighted && t.Score == vector.Float64 {
		g.doubles = views(g.doubles, srcs, func(c *vector.Column) []float64 { return c.ScoreDoubles })
		dst.ScoreDoubles = gatherLists(dst.ScoreDoubles, g.doubles, g.offsets, pieces, total)
	} else if t.Kind == vector.Weighted {
		g.floats = views(g.floats, srcs, func(c *vector.Column) []float32 { return c.ScoreFloats })
		dst.ScoreFloats = gatherLists(dst.ScoreFloats, g.floats, g.offsets, pieces, total)
	}
	return present, nil
}

// gatherPresence sets dst.Present, nil when every row is present, and returns the number of present rows.
func (g *gatherer) gatherPresence(dst *vector.Column, srcs []*vector.Column, pieces []piece, rows int) int {
	nullable := false
	g.present = g.present[:0]
	for _, c := range srcs {
		var p vector.Bitmap
		if c != nil {
			p = c.Present
		}
		g.present = append(g.present, p)
		nullable = nullable || c == nil || p != nil
	}
	if !nullable {
		return rows
	}
	bits := make(vector.Bitmap, vector.BitmapWords(rows))
	at := 0
	for _, p := range pieces {
		n := int(p.n)
		switch src := g.present[p.src]; {
		case src == nil && srcs[p.src] != nil:
			bits.SetRange(at, at+n)
		case src == nil: // the whole source is null
		case n == 1:
			bits[at>>6] |= src[p.row>>6] >> (p.row & 63) & 1 << (uint(at) & 63)
		default:
			bits.CopyBits(at, src, int(p.row), n)
		}
		at += n
	}
	present := bits.Count()
	if present != rows {
		dst.Present = bits
	}
	return present
}

// gatherOffsets sets dst.Offsets and returns the number of values that the rows hold.
func (g *gatherer) gatherOffsets(dst *vector.Column, pieces []piece, rows int) (int, error) {
	out := vector.Resize(dst.Offsets, rows+1)
	out[0] = 0
	at, end := 1, int64(0)
	for _, p := range pieces {
		off := g.offsets[p.src]
		if off == nil {
			for range p.n {
				out[at] = int32(end)
				at++
			}
			continue
		}
		base := int64(off[p.row])
		for _, o := range off[p.row+1 : p.row+p.n+1] {
			v := end + int64(o) - base
			if v > vector.MaxElements {
				return 0, fmt.Errorf("%d rows hold more than %d values: use smaller stripes", rows, vector.MaxElements)
			}
			out[at] = int32(v)
			at++
		}
		end += int64(off[p.row+p.n]) - base
	}
	dst.Offsets = out
	return int(end), nil
}

// gatherFixed returns dst, whose memory is reused, set to the values of rows with width values each.
func gatherFixed[T any](dst []T, vals [][]T, pieces []piece, rows, width int) []T {
	dst = vector.Resize(dst, rows*width)
	at := 0
	for _, p := range pieces {
		v := vals[p.src]
		n := int(p.n) * width
		switch {
		case v == nil:
			clear(dst[at : at+n])
		case n == 1:
			dst[at] = v[p.row]
		default:
			copy(dst[at:at+n], v[int(p.row)*width:])
		}
		at += n
	}
	return dst
}

// gatherLists returns dst, whose memory is reused, set to the lists of the rows, end to end.
func gatherLists[T any](dst []T, vals [][]T, offsets [][]int32, pieces []piece, total int) []T {
	dst = vector.Resize(dst, total)
	at := 0
	for _, p := range pieces {
		if off := offsets[p.src]; off != nil {
			at += copy(dst[at:], vals[p.src][off[p.row]:off[p.row+p.n]])
		}
	}
	return dst
}

// views sets dst to one slice of each column, nil for a nil column.
func views[T any](dst [][]T, srcs []*vector.Column, of func(*vector.Column) []T) [][]T {
	dst = dst[:0]
	for _, c := range srcs {
		var v []T
		if c != nil {
			v = of(c)
		}
		dst = append(dst, v)
	}
	return dst
}
