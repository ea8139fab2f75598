package expand

import (
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// BenchmarkExpand measures the loops that make batches, on a stripe of which four rows in five repeat the one before,
// lists of 26 ids in 45 of 100 slots. DSISTORE_SIMD=off measures the plain loops.
func BenchmarkExpand(b *testing.B) {
	const rows = 16384
	r := rand.New(rand.NewPCG(1, 1))
	c := &vector.Column{Type: vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, Rows: rows,
		Offsets: []int32{0}}
	for row := range rows {
		if row == 0 || r.IntN(5) == 0 {
			n := 0
			if r.IntN(100) < 45 {
				n = 1 + r.IntN(51)
			}
			c.Offsets = append(c.Offsets, c.Offsets[c.Slots]+int32(n))
			c.Slots++
		}
		c.Inverse = append(c.Inverse, int32(c.Slots-1))
	}
	values := int(c.Offsets[c.Slots])
	c.Ints, c.ScoreFloats, c.Floats = make([]int64, values), make([]float32, values), make([]float32, c.Slots)
	c.Present = make(vector.Bitmap, vector.BitmapWords(c.Slots))
	for s := range c.Slots {
		if r.IntN(100) < 45 {
			c.Present.Set(s)
		}
	}
	total := 0
	for row := range rows {
		from, to := c.RowRange(row)
		total += to - from
	}
	partial := *c
	partial.Offsets = c.Offsets[:c.Slots]
	for s := range c.Slots {
		partial.Lengths = append(partial.Lengths, c.Offsets[s+1]-c.Offsets[s])
	}
	ints, floats := make([]int64, total), make([]float32, total)
	lengths, ends := make([]int32, rows), make([]int32, rows)
	const width = 10
	matrix := make([]float32, rows*width)
	present := make(vector.Bitmap, vector.BitmapWords(rows))
	// The same in pieces of so many rows, as a shuffle of rows and a filter that keeps few make them.
	pieces := func(n int, past bool) func() {
		return func() {
			at := 0
			for lo := 0; lo < rows; lo += n {
				at += PutLists(ints[at:], c.Ints, c, lo, lo+n, past)
			}
		}
	}
	for _, x := range []struct {
		name   string
		values int
		bytes  int
		put    func()
	}{
		{"pieces-1", total, 8 * total, pieces(1, false)},
		{"pieces-1-past", total, 8 * total, pieces(1, true)},
		{"pieces-8", total, 8 * total, pieces(8, false)},
		{"pieces-8-past", total, 8 * total, pieces(8, true)},
		{"pieces-32", total, 8 * total, pieces(32, false)},
		{"pieces-32-past", total, 8 * total, pieces(32, true)},
		{"pieces-128", total, 8 * total, pieces(128, false)},
		{"pieces-128-past", total, 8 * total, pieces(128, true)},
		{"lists", total, 8 * total, func() { PutLists(ints, c.Ints, c, 0, rows, false) }},
		{"lists-past", total, 8 * total, func() { PutLists(ints, c.Ints, c, 0, rows, true) }},
		{"weights", total, 4 * total, func() { PutLists(floats, c.ScoreFloats, c, 0, rows, false) }},
		{"partial", values, 8 * values, func() { PutSlotLists(ints, c.Ints, &partial, 0, c.Slots) }},
		{"ranges", rows, 8 * rows, func() { PutRanges(lengths, ends, c, 0, rows, 0) }},
		{"ranges-apart", rows, 8 * rows, func() {
			for lo := 0; lo < rows; lo += 4096 {
				PutLengths(lengths[lo:lo+4096], c, lo, lo+4096)
				copy(ends[lo:lo+4096], lengths[lo:])
				Accumulate(ends[lo:lo+4096], 0)
			}
		}},
		{"matrix", rows, 4 * rows, func() { Scatter(matrix, width, c.Floats, c, 1, 0, rows) }},
		{"presence", rows, rows / 8, func() {
			clear(present)
			PutPresence(present, 0, c, 0, rows)
		}},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(int64(x.bytes))
			for b.Loop() {
				x.put()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(x.values), "ns/value")
		})
	}
}
