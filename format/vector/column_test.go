package vector_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// The model of a column: a slice of rows, each nil (null) or its values. It shares no code with package vector.
type value struct {
	bits  uint64 // of an int64, a float32, a float64 or a byte
	score uint64
}
type row []value // nil: null; empty is not nil

var elems = []vector.Elem{
	vector.Bool, vector.Int8, vector.Int16, vector.Int32, vector.Int64, vector.Uint8, vector.Uint16, vector.Uint32,
	vector.Uint64, vector.Float32, vector.Float64,
}

func drawType(t *rapid.T) vector.Type {
	ty := vector.Type{Kind: vector.Kind(rapid.IntRange(1, 6).Draw(t, "kind"))}
	switch ty.Kind {
	case vector.Weighted:
		ty.Elem = rapid.SampledFrom(elems[:9]).Draw(t, "elem")
		ty.Score = rapid.SampledFrom(elems[9:]).Draw(t, "score")
	case vector.Dense, vector.Sparse, vector.Embedding:
		ty.Elem = rapid.SampledFrom(elems).Draw(t, "elem")
	}
	if ty.Kind == vector.Embedding {
		ty.Dim = uint32(rapid.IntRange(1, 3).Draw(t, "dim"))
	}
	return ty
}

// drawBits draws the bits of a value of e; NoElem is a byte.
func drawBits(t *rapid.T, e vector.Elem) uint64 {
	switch e {
	case vector.Float32:
		return uint64(math.Float32bits(rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1,
			float32(math.NaN())}).Draw(t, "f")))
	case vector.Float64:
		return math.Float64bits(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, math.NaN()}).Draw(t, "d"))
	}
	return uint64(rapid.IntRange(0, 1).Draw(t, "int"))
}

func drawRow(t *rapid.T, ty vector.Type) row {
	if rapid.IntRange(0, 3).Draw(t, "null") == 0 {
		return nil
	}
	n := ty.Width()
	if ty.IsList() {
		n = rapid.IntRange(0, 3).Draw(t, "length")
	}
	r := make(row, n)
	for i := range r {
		r[i].bits = drawBits(t, ty.Elem)
		if ty.Kind == vector.Weighted {
			r[i].score = drawBits(t, ty.Score)
		}
	}
	return r
}

// appendRow appends a row as a writer does: values, then AddSlot.
func appendRow(c *vector.Column, r row) {
	if r == nil {
		c.AppendNulls(1)
		return
	}
	appendValues(c, r)
	c.AddSlot()
}

func appendValues(c *vector.Column, r row) {
	for _, v := range r {
		switch c.Type.Physical() {
		case vector.Int64Values:
			c.Ints = append(c.Ints, int64(v.bits))
		case vector.Float32Values:
			c.Floats = append(c.Floats, math.Float32frombits(uint32(v.bits)))
		case vector.Float64Values:
			c.Doubles = append(c.Doubles, math.Float64frombits(v.bits))
		case vector.ByteValues:
			c.Data = append(c.Data, byte(v.bits))
		}
		switch {
		case c.Type.Kind == vector.Weighted && c.Type.Score == vector.Float32:
			c.ScoreFloats = append(c.ScoreFloats, math.Float32frombits(uint32(v.score)))
		case c.Type.Kind == vector.Weighted:
			c.ScoreDoubles = append(c.ScoreDoubles, math.Float64frombits(v.score))
		}
	}
}

// rowOf reads a row back.
func rowOf(c *vector.Column, i int) row {
	if c.IsNull(i) {
		return nil
	}
	lo, hi := c.RowRange(i)
	r := make(row, hi-lo)
	for k := range r {
		switch c.Type.Physical() {
		case vector.Int64Values:
			r[k].bits = uint64(c.Ints[lo+k])
		case vector.Float32Values:
			r[k].bits = uint64(math.Float32bits(c.Floats[lo+k]))
		case vector.Float64Values:
			r[k].bits = math.Float64bits(c.Doubles[lo+k])
		case vector.ByteValues:
			r[k].bits = uint64(c.Data[lo+k])
		}
		switch {
		case c.Type.Kind == vector.Weighted && c.Type.Score == vector.Float32:
			r[k].score = uint64(math.Float32bits(c.ScoreFloats[lo+k]))
		case c.Type.Kind == vector.Weighted:
			r[k].score = math.Float64bits(c.ScoreDoubles[lo+k])
		}
	}
	return r
}

func equalRows(a, b row) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// drawColumn draws a column, with an inverse and with partial duplicates or without, and its model.
func drawColumn(t *rapid.T, ty vector.Type) (*vector.Column, []row) {
	c := vector.NewColumn(ty)
	rows := make([]row, rapid.SampledFrom([]int{0, 1, 5, 63, 64, 65, 130}).Draw(t, "slots"))
	for i := range rows {
		rows[i] = drawRow(t, ty)
		appendRow(c, rows[i])
	}
	if ty.IsList() && rapid.Bool().Draw(t, "partial") {
		starts, lengths := make([]int32, c.Slots), make([]int32, c.Slots)
		for s := range c.Slots {
			lo, hi := c.SlotRange(s)
			starts[s], lengths[s] = int32(lo), int32(hi-lo)
		}
		c.Offsets, c.Lengths = starts, lengths
	}
	if len(rows) > 0 && rapid.Bool().Draw(t, "inverse") {
		slots := rows
		rows = nil
		c.Inverse = []int32{}
		for range rapid.IntRange(0, 70).Draw(t, "rows") {
			s := rapid.IntRange(0, len(slots)-1).Draw(t, "slot")
			c.Inverse = append(c.Inverse, int32(s))
			rows = append(rows, slots[s])
		}
		c.Rows = len(rows)
	}
	return c, rows
}

func check(t *rapid.T, c *vector.Column, want []row) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Rows != len(want) {
		t.Fatalf("%d rows, want %d", c.Rows, len(want))
	}
	for i := range want {
		if got := rowOf(c, i); !equalRows(got, want[i]) {
			t.Fatalf("row %d is %v, want %v", i, got, want[i])
		}
	}
}

// Whatever is appended, gathered or expanded, a column holds what a slice of rows would.
func TestColumnAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := drawType(t)
		c := vector.NewColumn(ty)
		var want []row
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			src, rows := drawColumn(t, ty)
			check(t, src, rows)
			switch step := rapid.IntRange(0, 5).Draw(t, "step"); {
			case step == 0:
				n := rapid.IntRange(0, 70).Draw(t, "nulls")
				c.AppendNulls(n)
				want = append(want, make([]row, n)...)
			case step == 1 && len(rows) > 0:
				i := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
				c.AppendRow(src, i)
				want = append(want, rows[i])
			case step == 2:
				lo := rapid.IntRange(0, len(rows)).Draw(t, "lo")
				hi := rapid.IntRange(lo, len(rows)).Draw(t, "hi")
				c.AppendRows(src, lo, hi)
				want = append(want, rows[lo:hi]...)
			case step == 3 && len(rows) > 0:
				picks := rapid.SliceOfN(rapid.Int32Range(0, int32(len(rows)-1)), 0, 20).Draw(t, "picks")
				c.Gather(src, picks)
				for _, p := range picks {
					want = append(want, rows[p])
				}
			case step == 4:
				r := drawRow(t, ty)
				appendRow(c, r)
				want = append(want, r)
			case step == 5 && rapid.Bool().Draw(t, "reset"):
				c.Reset()
				want = nil
			default:
				plain, err := src.Expanded()
				if err != nil {
					t.Fatal(err)
				}
				check(t, plain, rows)
				if plain.Inverse != nil || plain.Lengths != nil {
					t.Fatal("expanded is not plain")
				}
			}
			check(t, c, want)
		}
	})
}

// RowsEqual is equality of the model's rows.
func TestRowsEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := drawType(t)
		a, arows := drawColumn(t, ty)
		b, brows := drawColumn(t, ty)
		for i := range min(len(arows), 10) {
			for j := range min(len(brows), 10) {
				if got, want := vector.RowsEqual(a, i, b, j), equalRows(arows[i], brows[j]); got != want {
					t.Fatalf("rows %v and %v: %v", arows[i], brows[j], got)
				}
			}
		}
	})
}

// exact returns a value as a number, and false for NaN and infinities.
func exact(v uint64, e vector.Elem) (*big.Float, bool) {
	f := 0.0
	switch e {
	case vector.Float32:
		f = float64(math.Float32frombits(uint32(v)))
	case vector.Float64:
		f = math.Float64frombits(v)
	case vector.Uint64:
		return new(big.Float).SetPrec(100).SetUint64(v), true
	default:
		return new(big.Float).SetPrec(100).SetInt64(int64(v)), true
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	return new(big.Float).SetPrec(100).SetFloat64(f), true
}

var rangeOf = map[vector.Elem][2]uint64{
	vector.Bool: {0, 1}, vector.Int8: {1<<64 - 1<<7, 1<<7 - 1}, vector.Int16: {1<<64 - 1<<15, 1<<15 - 1},
	vector.Int32: {1<<64 - 1<<31, 1<<31 - 1}, vector.Int64: {1 << 63, 1<<63 - 1}, vector.Uint8: {0, 1<<8 - 1},
	vector.Uint16: {0, 1<<16 - 1}, vector.Uint32: {0, 1<<32 - 1}, vector.Uint64: {0, 1<<64 - 1},
	vector.Float32: {uint64(math.Float32bits(-math.MaxFloat32)), uint64(math.Float32bits(math.SmallestNonzeroFloat32))},
	vector.Float64: {math.Float64bits(-math.MaxFloat64), math.Float64bits(math.SmallestNonzeroFloat64)},
}

// Widening is symmetric, idempotent, and every value converts exactly.
func TestWidenIsExact(t *testing.T) {
	for _, a := range elems {
		for _, b := range elems {
			ta, tb := vector.Type{Kind: vector.Dense, Elem: a}, vector.Type{Kind: vector.Dense, Elem: b}
			w, err := vector.Widen(ta, tb)
			v, err2 := vector.Widen(tb, ta)
			if (err == nil) != (err2 == nil) || w != v {
				t.Fatalf("%v and %v widen to %v (%v), the other way round to %v (%v)", a, b, w, err, v, err2)
			}
			if err != nil {
				continue
			}
			if again, err := vector.Widen(w, ta); err != nil || again != w {
				t.Fatalf("%v and %v widen to %v, and with %v to %v (%v)", a, b, w, a, again, err)
			}
			for _, bits := range rangeOf[a] {
				c := vector.NewColumn(ta)
				appendRow(c, row{{bits: bits}})
				got, err := vector.Convert(c, w)
				if err != nil {
					t.Fatal(err)
				}
				if err := got.Validate(); err != nil {
					t.Fatal(err)
				}
				from, ok := exact(bits, a)
				to, _ := exact(rowOf(got, 0)[0].bits, w.Elem)
				if ok && from.Cmp(to) != 0 {
					t.Fatalf("%v %v converts to %v %v", a, from, w, to)
				}
			}
		}
	}
}

// A converted column has the same nulls, lengths and slots.
func TestConvert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := drawType(t)
		to := ty
		switch {
		case ty.Kind == vector.String:
			to.Kind = vector.Bytes
		case ty.Kind == vector.Weighted:
			to.Score = vector.Float64
		case ty.Elem == vector.Float32:
			to.Elem = vector.Float64
		case ty.Elem == vector.Bool || ty.Elem == vector.Int8 || ty.Elem == vector.Uint8:
			to.Elem = vector.Float32
		}
		c, rows := drawColumn(t, ty)
		got, err := vector.Convert(c, to)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Validate(); err != nil || got.Type != to || got.Rows != c.Rows || got.Slots != c.Slots {
			t.Fatalf("%v: %v", got, err)
		}
		for i, r := range rows {
			if got.IsNull(i) != (r == nil) {
				t.Fatalf("row %d: null is %v", i, got.IsNull(i))
			}
			if lo, hi := got.RowRange(i); r != nil && hi-lo != len(r) {
				t.Fatalf("row %d has %d values, want %d", i, hi-lo, len(r))
			}
		}
		check(t, c, rows) // the source is as it was
	})
}

func TestConvertRefuses(t *testing.T) {
	for _, c := range [][2]vector.Type{
		{{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Dense, Elem: vector.Float64}},
		{{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Dense, Elem: vector.Int32}},
		{{Kind: vector.Bytes}, {Kind: vector.String}},
		{{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Sparse, Elem: vector.Int64}},
		{{Kind: vector.Embedding, Elem: vector.Int8, Dim: 2}, {Kind: vector.Embedding, Elem: vector.Int8, Dim: 3}},
	} {
		if _, err := vector.Convert(vector.NewColumn(c[0]), c[1]); err == nil {
			t.Errorf("%v converted to %v", c[0], c[1])
		}
	}
}

// Validate finds every rule broken.
func TestValidateRefuses(t *testing.T) {
	list := vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}
	good := func() *vector.Column {
		c := vector.NewColumn(list)
		appendRow(c, row{{bits: 1}, {bits: 2}})
		appendRow(c, nil)
		appendRow(c, row{{bits: 3}})
		c.Rows, c.Inverse = 4, []int32{0, 0, 1, 2}
		c.Monotone = true
		return c
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(*vector.Column){
		"type":                   func(c *vector.Column) { c.Type.Score = vector.Int8 },
		"rows":                   func(c *vector.Column) { c.Rows = 5 },
		"slots":                  func(c *vector.Column) { c.Slots = 4 },
		"no inverse":             func(c *vector.Column) { c.Inverse = nil },
		"slot too large":         func(c *vector.Column) { c.Inverse[3] = 3 },
		"negative slot":          func(c *vector.Column) { c.Inverse[0] = -1 },
		"gap in monotone":        func(c *vector.Column) { c.Inverse[2] = 2 },
		"monotone falls":         func(c *vector.Column) { c.Inverse[3] = 0 },
		"monotone starts late":   func(c *vector.Column) { c.Inverse[0], c.Inverse[1] = 1, 1 },
		"monotone ends early":    func(c *vector.Column) { c.Inverse[3] = 1 },
		"presence words":         func(c *vector.Column) { c.Present = append(c.Present, 0) },
		"presence bits":          func(c *vector.Column) { c.Present[0] |= 1 << 3 },
		"null with values":       func(c *vector.Column) { c.Present.Clear(0) },
		"offsets missing":        func(c *vector.Column) { c.Offsets = c.Offsets[:3] },
		"offsets start":          func(c *vector.Column) { c.Offsets[0] = 1 },
		"offsets end":            func(c *vector.Column) { c.Offsets[3] = 2 },
		"offsets fall":           func(c *vector.Column) { c.Offsets[1] = 3 },
		"scores":                 func(c *vector.Column) { c.ScoreFloats = c.ScoreFloats[:2] },
		"slice past the end":     func(c *vector.Column) { c.Offsets, c.Lengths = []int32{0, 0, 2}, []int32{2, 0, 2} },
		"slice negative":         func(c *vector.Column) { c.Offsets, c.Lengths = []int32{0, 0, 2}, []int32{2, 0, -1} },
		"slice before the start": func(c *vector.Column) { c.Offsets, c.Lengths = []int32{-1, 0, 2}, []int32{2, 0, 1} },
		"slice past 31 bits": func(c *vector.Column) {
			c.Offsets, c.Lengths = []int32{0, 0, math.MaxInt32}, []int32{2, 0, math.MaxInt32}
		},
	} {
		c := good()
		breakIt(c)
		if c.Validate() == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestBitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b vector.Bitmap
		var want []bool
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			if n := rapid.IntRange(0, 200).Draw(t, "grow"); n > len(want) {
				b = b.Grow(n)
				want = append(want, make([]bool, n-len(want))...)
			}
			lo := rapid.IntRange(0, len(want)).Draw(t, "lo")
			hi := rapid.IntRange(lo, len(want)).Draw(t, "hi")
			b.SetRange(lo, hi)
			for i := lo; i < hi; i++ {
				want[i] = true
			}
			if lo < hi {
				b.Clear(lo)
				want[lo] = false
			}
			n := 0
			for i, w := range want {
				if b.Get(i) != w {
					t.Fatalf("bit %d is %v", i, !w)
				}
				if w {
					n++
				}
			}
			if b.Count() != n {
				t.Fatalf("%d bits, want %d", b.Count(), n)
			}
		}
	})
}

// Names parse back, and String of what is not known does not panic.
func TestNames(t *testing.T) {
	for _, e := range elems {
		if got, err := vector.ParseElem(e.String()); err != nil || got != e {
			t.Errorf("%v: %v, %v", e, got, err)
		}
	}
	for k := vector.Dense; k <= vector.Inverse; k++ {
		if got, err := vector.ParseKind(k.String()); err != nil || got != k {
			t.Errorf("%v: %v, %v", k, got, err)
		}
	}
	var b bytes.Buffer
	fmt.Fprint(&b, vector.Kind(99), vector.Elem(99), vector.Type{Kind: 99, Elem: 99})
	for _, name := range []string{"", "none", "kind(99)"} {
		if _, err := vector.ParseKind(name); err == nil {
			t.Errorf("kind %q", name)
		}
		if _, err := vector.ParseElem(name); err == nil {
			t.Errorf("element type %q", name)
		}
	}
}
