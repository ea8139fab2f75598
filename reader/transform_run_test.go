package reader

import (
	"math"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/transform"
)

// TorchArrow's documentation and other programs' results.
func TestTransformReferences(t *testing.T) {
	ids := []int64{1, 2, 3, 5, 8, 10, 11}
	nan, inf, negativeZero := math.NaN(), math.Inf(1), math.Copysign(0, -1)
	same := func(a, b float64) bool {
		return a == b && math.Signbit(a) == math.Signbit(b) || a != a && b != b
	}
	for _, c := range []struct {
		chain string
		in    any // []int64, []float32 or []float64
		want  any
	}{
		{"sigrid_hash(100)", ids, []int64{60, 54, 54, 4, 67, 2, 25}},
		{"sigrid_hash(1000003, salt=7)", []int64{-1}, []int64{470679}},
		{"sigrid_hash(1000000000000, salt=-5)", []int64{math.MaxInt64}, []int64{712998835063}},
		{"bucketize(2, 5, 10)", ids, []int64{0, 0, 1, 1, 2, 2, 3}},
		{"bucketize(2, 5, 10)", []float32{1, 2, 2.5, 5, 8, 10, 11, float32(nan), float32(inf)},
			[]int64{0, 0, 1, 1, 2, 2, 3, 3, 3}},
		{"bucketize(0.1)", []float32{0.1}, []int64{0}},
		// xxhash.xxh64_intdigest((1).to_bytes(8, "little")) and so on; Spark's xxhash64(1L) has the seed 42.
		{"hash(9223372036854775808)", []int64{0}, []int64{3803688792395291579}},
		{"hash(9223372036854775808, seed=42)", []int64{1}, []int64{-7001672635703045582 & math.MaxInt64}},
		{"mod(3)", []int64{-4, -3, -1, 0, 1, math.MinInt64}, []int64{2, 0, 2, 0, 1, 1}},
		{"mod(4)", []int64{-4, -3, -1, 0, 1, math.MinInt64}, []int64{0, 1, 3, 0, 1, 0}},
		{"cast(int8)", []float64{-0.9, 0.9, 1.9, -1.9, 300, -300, nan, inf}, []int64{0, 0, 1, -1, 127, -128, 0, 127}},
		{"cast(int64)", []float64{9.3e18, -9.3e18, 9007199254740993},
			[]int64{math.MaxInt64, math.MinInt64, 9007199254740992}},
		{"cast(uint64)", []float64{1.8446744073709552e19, -1, 9.3e18},
			[]int64{-1, 0, 9300000000000000000 - 1<<63 + math.MinInt64}},
		{"cast(bool)", []float64{0, negativeZero, nan, 0.1}, []int64{0, 0, 1, 1}},
		{"cast(float32)", []int64{16777217, -3}, []float32{16777216, -3}},
		{"cast(float32)", []float64{1e300, 0.1}, []float32{float32(inf), 0.1}},
		{"clamp(0, 10)", []float64{-5, negativeZero, nan, inf, 3}, []float64{0, negativeZero, nan, 10, 3}},
		{"log1p", []float64{0, -1, -2, inf, nan, negativeZero}, []float64{0, -inf, nan, inf, nan, negativeZero}},
		{"log1p", []int64{0, 1, -1}, []float32{0, 0.6931472, float32(-inf)}},
	} {
		d := new(ioplan.Decoded)
		d.Column = &d.Stored
		x := transform.Bound{Chain: mustParseChain(t, c.chain), StoredType: vector.Type{Kind: vector.Dense}}
		column := &d.Stored
		switch in := c.in.(type) {
		case []int64:
			x.StoredType.Elem, column.Ints, column.Rows = vector.Int64, slices.Clone(in), len(in)
		case []float32:
			x.StoredType.Elem, column.Floats, column.Rows = vector.Float32, slices.Clone(in), len(in)
		case []float64:
			x.StoredType.Elem, column.Doubles, column.Rows = vector.Float64, slices.Clone(in), len(in)
		}
		column.Type, column.Slots = x.StoredType, column.Rows
		ready, err := x.Compile()
		if err == nil {
			err = d.Transform(ready)
		}
		if err == nil {
			err = d.Column.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		equal := false
		switch want := c.want.(type) {
		case []int64:
			equal = slices.Equal(d.Column.Ints, want)
		case []float32:
			equal = slices.EqualFunc(d.Column.Floats, want,
				func(a, b float32) bool { return same(float64(a), float64(b)) })
		case []float64:
			equal = slices.EqualFunc(d.Column.Doubles, want, same)
		}
		if !equal {
			t.Errorf("%s of %v: %v %v %v, want %v", c.chain, c.in, d.Column.Ints, d.Column.Floats, d.Column.Doubles,
				c.want)
		}
	}
}

// Partial duplicates share values: each is transformed once, and the first of a list are the start of its slice.
func TestTransformPartialDuplicates(t *testing.T) {
	ids := vector.Type{Kind: vector.Sparse, Elem: vector.Int64}
	inverse := []int32{0, 1, 2, 2, 3}
	d := new(ioplan.Decoded)
	d.Stored = vector.Column{
		Type: ids, Rows: 5, Slots: 4, Inverse: inverse, Monotone: true, InverseBorrowed: true,
		Present: vector.Bitmap{0b1011},
		Offsets: []int32{0, 1, 0, 4}, Lengths: []int32{4, 4, 0, 1}, Ints: []int64{10, 11, 12, 13, 14},
	}
	d.Column = &d.Stored
	for _, c := range []struct {
		chain string
		want  [][]int64 // of slots
	}{
		{"first(2)", [][]int64{{10, 11}, {11, 12}, nil, {14}}},
		{"mod(10)", [][]int64{{0, 1}, {1, 2}, nil, {4}}},
		{"fill(7, 8, 9)|mod(2)", [][]int64{{0, 1}, {1, 0}, {1, 0, 1}, {0}}},
	} {
		f := transform.Bound{Chain: mustParseChain(t, c.chain), StoredType: ids}
		x, err := f.Compile()
		if err == nil {
			err = d.Transform(x)
		}
		if err == nil {
			err = d.Column.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		column := d.Column
		if column.Lengths == nil || &column.Inverse[0] != &inverse[0] || column.Slots != 4 || !column.Monotone ||
			!column.InverseBorrowed {
			t.Errorf("%s: the layout changed: %+v", c.chain, column)
		}
		for s, want := range c.want {
			if lo, hi := column.SlotRange(s); !slices.Equal(column.Ints[lo:hi], want) {
				t.Errorf("%s: slot %d is %v, want %v", c.chain, s, column.Ints[lo:hi], want)
			}
		}
	}
}

func mustParseChain(t interface{ Fatalf(string, ...any) }, text string) transform.Chain {
	c, err := transform.ParseChain(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}
