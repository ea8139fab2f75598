package dedup

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// A row of the model: nil is null. It is printed from the slices of a column by code of its own.
type row []uint64

func modelRow(c *vector.Column, i int) row {
	slot := i
	if c.Inverse != nil {
		slot = int(c.Inverse[i])
	}
	if c.Present != nil && c.Present[slot/64]&(1<<(slot%64)) == 0 {
		return nil
	}
	var lo, hi int
	switch {
	case c.Type.Kind == vector.Dense:
		lo, hi = slot, slot+1
	case c.Type.Kind == vector.Embedding:
		lo, hi = slot*int(c.Type.Dim), (slot+1)*int(c.Type.Dim)
	case c.Lengths != nil:
		lo, hi = int(c.Offsets[slot]), int(c.Offsets[slot]+c.Lengths[slot])
	default:
		lo, hi = int(c.Offsets[slot]), int(c.Offsets[slot+1])
	}
	out := row{}
	for k := lo; k < hi; k++ {
		switch {
		case len(c.Ints) > 0:
			out = append(out, uint64(c.Ints[k]))
		case len(c.Floats) > 0:
			out = append(out, uint64(math.Float32bits(c.Floats[k])))
		case len(c.Doubles) > 0:
			out = append(out, math.Float64bits(c.Doubles[k]))
		default:
			out = append(out, uint64(c.Data[k]))
		}
		switch {
		case len(c.ScoreFloats) > 0:
			out = append(out, uint64(math.Float32bits(c.ScoreFloats[k])))
		case len(c.ScoreDoubles) > 0:
			out = append(out, math.Float64bits(c.ScoreDoubles[k]))
		}
	}
	return out
}

func modelRows(c *vector.Column) []row {
	out := make([]row, c.Rows)
	for i := range out {
		out[i] = modelRow(c, i)
	}
	return out
}

// numbers that compare in surprising ways come first.
var (
	someFloats = []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), math.Float32frombits(0x7fc00001), 1,
		2, 3, 4}
	someDoubles = []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000001), 1, 2, 3, 4}
)

// appendModel appends a list of small numbers as a row of c; nil is null.
func appendModel(c *vector.Column, list []int) {
	if list == nil {
		c.AppendNulls(1)
		return
	}
	for _, x := range list {
		switch c.Type.Physical() {
		case vector.Int64Values:
			c.Ints = append(c.Ints, int64(x))
		case vector.Float32Values:
			c.Floats = append(c.Floats, someFloats[x%len(someFloats)])
		case vector.Float64Values:
			c.Doubles = append(c.Doubles, someDoubles[x%len(someDoubles)])
		case vector.ByteValues:
			c.Data = append(c.Data, byte(x))
		}
		if c.Type.Kind == vector.Weighted {
			if c.Type.Score == vector.Float64 {
				c.ScoreDoubles = append(c.ScoreDoubles, someDoubles[x*7/8%len(someDoubles)])
			} else {
				c.ScoreFloats = append(c.ScoreFloats, someFloats[x*7/8%len(someFloats)])
			}
		}
	}
	c.AddSlot()
}

var types = []vector.Type{
	{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Dense, Elem: vector.Bool}, {Kind: vector.Dense,
		Elem: vector.Float32},
	{Kind: vector.Dense, Elem: vector.Float64}, {Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Sparse,
		Elem: vector.Float32},
	{Kind: vector.Sparse, Elem: vector.Float64}, {Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32},
	{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float64}, {Kind: vector.Embedding, Elem: vector.Float32,
		Dim: 3},
	{Kind: vector.Embedding, Elem: vector.Int64, Dim: 2}, {Kind: vector.Bytes}, {Kind: vector.String},
}

// drawList draws a list that often repeats, extends, shifts or cuts one of before.
func drawList(t *rapid.T, ty vector.Type, before [][]int, ids int) []int {
	n := 1
	if ty.Kind == vector.Embedding {
		n = int(ty.Dim)
	}
	id := rapid.IntRange(0, ids)
	fresh := func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = id.Draw(t, "id")
		}
		return out
	}
	how := rapid.IntRange(0, 9).Draw(t, "how")
	var last []int
	if len(before) > 0 {
		last = before[len(before)-1]
		if how == 1 {
			last = before[rapid.IntRange(0, len(before)-1).Draw(t, "earlier")]
		}
	}
	switch {
	case how == 0:
		return nil
	case how <= 4 && len(before) > 0:
		return last
	case !ty.IsList():
		return fresh(n)
	case how == 5:
		return []int{}
	case last == nil || how == 6:
		return fresh(rapid.IntRange(0, 12).Draw(t, "length"))
	}
	k := rapid.IntRange(0, 3).Draw(t, "k")
	cut := min(rapid.IntRange(0, 3).Draw(t, "cut"), len(last))
	if how == 7 { // newest first
		return slices.Concat(fresh(k), last[:len(last)-cut])
	}
	if how == 8 { // oldest first
		return slices.Concat(last[cut:], fresh(k))
	}
	out := slices.Clone(last)
	if len(out) > 0 {
		out[len(out)-1] = id.Draw(t, "last id")
	}
	return out
}

func drawColumn(t *rapid.T, ty vector.Type) *vector.Column {
	c := vector.NewColumn(ty)
	n := rapid.SampledFrom([]int{0, 1, 2, 7, 64, 65, 200}).Draw(t, "rows")
	ids := rapid.SampledFrom([]int{0, 1, 7, 100}).Draw(t, "ids")
	if ty.Elem == vector.Bool {
		ids = 1
	}
	var lists [][]int
	for range n {
		l := drawList(t, ty, lists, ids)
		lists = append(lists, l)
		appendModel(c, l)
	}
	return c
}

func checkEqual(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, want []row, got *vector.Column) {
	t.Helper()
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if got.Rows != len(want) {
		t.Fatalf("%d rows: want %d", got.Rows, len(want))
	}
	for i, w := range want {
		if g := modelRow(got, i); (g == nil) != (w == nil) || !slices.Equal(g, w) {
			t.Fatalf("row %d of %v is %v: want %v", i, got.Type, g, w)
		}
	}
}
