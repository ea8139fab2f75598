//go:build amd64 && !purego

package expand

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
)

// randomLists returns a column of lists with an inverse, partial or not, and how many values its rows have.
func randomLists(r *rand.Rand) (c *vector.Column, total int) {
	c = &vector.Column{Type: vector.Type{Kind: vector.Sparse, Elem: vector.Int64}, Slots: 1 + r.IntN(20),
		Rows: r.IntN(90)}
	values := r.IntN(200)
	for range values {
		c.Ints = append(c.Ints, int64(r.Uint64()))
	}
	if r.IntN(2) == 0 {
		for range c.Slots {
			from := r.IntN(values + 1)
			c.Offsets = append(c.Offsets, int32(from))
			c.Lengths = append(c.Lengths, int32(min(r.IntN(40), values-from)))
		}
	} else {
		c.Offsets = append(c.Offsets, 0)
		for s := range c.Slots {
			left := values - int(c.Offsets[s])
			c.Offsets = append(c.Offsets, c.Offsets[s]+int32(min(left, r.IntN(1+2*values/c.Slots))))
		}
	}
	for range c.Rows {
		c.Inverse = append(c.Inverse, int32(r.IntN(c.Slots)))
	}
	for row := range c.Rows {
		from, to := c.RowRange(row)
		total += to - from
	}
	return c, total
}

func sameCopies[T comparable](t *testing.T, values []T, c *vector.Column, total, lo, before int, guard T, past bool) {
	t.Helper()
	var want []T
	for row := lo; row < c.Rows; row++ {
		from, to := c.RowRange(row)
		want = append(want, values[from:to]...)
	}
	all := make([]T, before+total+16)
	for i := range all {
		all[i] = guard
	}
	end := before + len(want)
	n := PutLists(all[before:end:end], values, c, lo, c.Rows, past)
	if n != len(want) || !slices.Equal(all[before:end], want) {
		t.Fatalf("%d values, want %d, or others", n, len(want))
	}
	for i, v := range all {
		if (i < before || i >= end) && v != guard {
			t.Fatalf("written at %d, beside %d to %d", i, before, end)
		}
	}
}

// levels runs f with each of the instruction sets that lists are copied with.
func levels(t *testing.T, f func(t *testing.T)) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	if simd.AVX512 {
		t.Run("AVX-512", f)
	}
	t.Run("AVX2", func(t *testing.T) {
		defer func(was bool) { simd.AVX512 = was }(simd.AVX512)
		simd.AVX512 = false
		f(t)
	})
}

func TestCopyRowsEqualsFallback(t *testing.T) { levels(t, copyRowsEqualsFallback) }

func copyRowsEqualsFallback(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	for range 3000 {
		c, total := randomLists(r)
		lo := r.IntN(c.Rows + 1)
		before, past := r.IntN(18), r.IntN(2) == 0 // any place in a line
		sameCopies(t, c.Ints, c, total, lo, before, -7, past)
		floats := make([]float32, len(c.Ints))
		for i := range floats {
			floats[i] = r.Float32()
		}
		sameCopies(t, floats, c, total, lo, before, -7, past)
	}
}

func TestCopySlotsEqualsFallback(t *testing.T) { levels(t, copySlotsEqualsFallback) }

func copySlotsEqualsFallback(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 300 {
		c, _ := randomLists(r)
		if c.Lengths == nil {
			continue
		}
		for c.Slots < 3000 && r.IntN(3) > 0 { // more than go at once
			c.Offsets, c.Lengths, c.Slots = append(c.Offsets, c.Offsets...), append(c.Lengths, c.Lengths...), 2*c.Slots
		}
		lo := r.IntN(c.Slots + 1)
		hi := lo + r.IntN(c.Slots-lo+1)
		var want []int64
		for s := lo; s < hi; s++ {
			from, to := c.SlotRange(s)
			want = append(want, c.Ints[from:to]...)
		}
		all := append(make([]int64, len(want)), -7)
		if n := PutSlotLists(all[:len(want):len(want)], c.Ints, c, lo, hi); n != len(want) ||
			!slices.Equal(all[:n], want) || all[n] != -7 {
			t.Fatalf("slots %d to %d of %d: %d values, want %d, or others", lo, hi, c.Slots, n, len(want))
		}
	}
}

// Lists, slots or room that are not there stop the kernel before the row, whatever the column says.
func TestCopyRowsStops(t *testing.T) { levels(t, copyRowsStops) }

func copyRowsStops(t *testing.T) {
	column := func() *vector.Column {
		return &vector.Column{Slots: 3, Offsets: []int32{0, 2, 3, 6}, Ints: []int64{1, 2, 3, 4, 5, 6},
			Inverse: []int32{0, 1, 2, 2}}
	}
	for name, x := range map[string]struct {
		spoil func(*vector.Column)
		room  int
		rows  int
		n     int
	}{
		"whole":             {func(*vector.Column) {}, 9, 4, 9},
		"no room":           {func(*vector.Column) {}, 8, 3, 6},
		"slot beyond":       {func(c *vector.Column) { c.Inverse[2] = 3 }, 9, 2, 3},
		"negative slot":     {func(c *vector.Column) { c.Inverse[1] = -1 }, 9, 1, 2},
		"values end before": {func(c *vector.Column) { c.Ints = c.Ints[:5] }, 9, 2, 3},
		"negative start":    {func(c *vector.Column) { c.Offsets[0] = -1 }, 9, 0, 0},
		"negative length":   {func(c *vector.Column) { c.Offsets[2] = 1 }, 9, 1, 2},
	} {
		c := column()
		x.spoil(c)
		for _, past := range []bool{false, true} {
			dst := make([]int64, x.room)
			if rows, n := copyRows(dst, c.Ints, c, c.Inverse, past); rows != x.rows || n != x.n {
				t.Errorf("%s, past the caches %v: %d rows, %d values, want %d, %d", name, past, rows, n, x.rows, x.n)
			}
		}
	}
}

func TestPutPresenceEqualsFallback(t *testing.T) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(1, 8))
	for range 2000 {
		c := &vector.Column{Slots: 1 + r.IntN(300), Rows: r.IntN(500)}
		c.Present = make(vector.Bitmap, vector.BitmapWords(c.Slots))
		for s := range c.Slots {
			if r.IntN(3) > 0 {
				c.Present.Set(s)
			}
		}
		for range c.Rows {
			c.Inverse = append(c.Inverse, int32(r.IntN(c.Slots)))
		}
		at := r.IntN(130)
		got, want := make(vector.Bitmap, vector.BitmapWords(at+c.Rows)+1), make(vector.Bitmap,
			vector.BitmapWords(at+c.Rows)+1)
		if at > 0 {
			got.Set(at - 1)
			want.Set(at - 1)
		}
		PutPresence(got, at, c, 0, c.Rows)
		putPresencePlain(want, at, c.Present, c.Inverse)
		if !slices.Equal(got, want) {
			t.Fatalf("%d rows from %d: %x, want %x", c.Rows, at, got, want)
		}
	}
}

func TestScatterFloatsEqualsFallback(t *testing.T) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(1, 10))
	for range 2000 {
		c := &vector.Column{Slots: 1 + r.IntN(20), Rows: r.IntN(70)}
		values := make([]float32, c.Slots)
		for i := range values {
			values[i] = r.Float32()
		}
		for range c.Rows {
			c.Inverse = append(c.Inverse, int32(r.IntN(c.Slots)))
		}
		stride := 1 + r.IntN(9)
		got, want := make([]float32, c.Rows*stride+1), make([]float32, c.Rows*stride+1)
		for row, s := range c.Inverse {
			want[row*stride] = values[s]
		}
		Scatter(got, stride, values, c, 1, 0, c.Rows)
		if !slices.Equal(got, want) {
			t.Fatalf("%d rows, %d apart: %v, want %v", c.Rows, stride, got, want)
		}
		if c.Rows > 0 {
			bad := r.IntN(c.Rows)
			c.Inverse[bad] = []int32{-1, int32(c.Slots), 1<<31 - 1}[r.IntN(3)]
			if n := scatterFloats(got, stride, values, c.Inverse); n > bad {
				t.Fatalf("%d rows are written though row %d has slot %d of %d", n, bad, c.Inverse[bad], c.Slots)
			}
		}
	}
}

// Only what is large goes past the caches, and no piece of few rows: each waits for what it wrote.
func TestGoesPast(t *testing.T) {
	for _, x := range []struct {
		bytes, rows int
		want        bool
	}{{pastBytes, 4096, true}, {pastBytes - 1, 4096, false}, {pastBytes, 1, false},
		{64 * pastBytes, pastRows - 1, false}, {pastBytes, pastRows, true}} {
		if got := GoesPast(x.bytes, x.rows); got != x.want {
			t.Errorf("%d rows of %d bytes: %v", x.rows, x.bytes, got)
		}
	}
}

// What PutRanges writes are the lengths, and their sums, also past what an int32 holds, and nothing beside.
func TestPutRangesEqualsFallback(t *testing.T) {
	if !simd.AVX512 {
		t.Skip("no AVX-512")
	}
	r := rand.New(rand.NewPCG(1, 23))
	for range 3000 {
		c, _ := randomLists(r)
		if c.Lengths != nil {
			continue
		}
		if r.IntN(4) == 0 {
			for i := range c.Offsets {
				c.Offsets[i] = int32(r.Uint32())
			}
		}
		lo, before := r.IntN(c.Rows+1), r.IntN(9)
		n := c.Rows - lo
		sum := int64(r.IntN(3)) << 30
		var got, want [2][]int32
		for k := range got {
			got[k] = slices.Repeat([]int32{-7}, before+n+9)
			want[k] = slices.Clone(got[k])
		}
		wantSum := putRangesPlain(want[0][before:before+n], want[1][before:before+n], c, c.Inverse[lo:], sum)
		gotSum := PutRanges(got[0][before:before+n:before+n], got[1][before:before+n:before+n], c, lo, c.Rows, sum)
		if gotSum != wantSum || !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
			t.Fatalf("%d rows from %d: sum %d, want %d, or others\n%v\n%v", c.Rows, lo, gotSum, wantSum, got, want)
		}
	}
}
