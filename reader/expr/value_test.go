package expr

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

// TestValueModel compares what is computed with a model that shares no code with it.
func TestValueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 140).Draw(t, "rows")
		d := &exprDrawer{t: t}
		for range rapid.IntRange(1, 4).Draw(t, "columns") {
			typ := rapid.SampledFrom(modelTypes).Draw(t, "type")
			d.columns = append(d.columns, drawColumn(t, typ.name+strconv.Itoa(len(d.columns)), typ.typ, rows))
		}
		column := func(name string) *modelColumn {
			return d.columns[slices.IndexFunc(d.columns, func(m *modelColumn) bool { return m.name == name })]
		}
		text, eval, ok := d.number(rapid.IntRange(0, 3).Draw(t, "depth"))
		if !ok {
			return
		}
		resolve := func(names []string) (out []Field, _ error) {
			for _, n := range names {
				out = append(out, column(n).field)
			}
			return out, nil
		}
		v, f, err := ParseValue(text, resolve)
		if err != nil || f != nil {
			t.Fatalf("%s: %v, %v", text, f, err)
		}
		again, _, err := ParseValue(v.String(), resolve)
		if err != nil || again.String() != v.String() || again.Type() != v.Type() {
			t.Fatalf("%s: canonical %s: %v", text, v, err)
		}
		var given []*vector.Column
		for _, n := range v.Features() {
			given = append(given, column(n).column)
		}
		dst := vector.NewColumn(v.Type())
		at := rapid.IntRange(0, rows).Draw(t, "cut")
		v.Append(dst, given, 0, at)
		v.Append(dst, given, at, rows)
		if err := dst.Validate(); err != nil || dst.Rows != rows {
			t.Fatalf("%s: %d rows of %d: %v", text, dst.Rows, rows, err)
		}
		for r := range rows {
			want := eval(r)
			if n, ok := want.(*big.Int); ok && v.Type().Elem.IsInteger() {
				least, most := big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
				if v.Type().Elem == vector.Uint64 {
					least, most = new(big.Int), new(big.Int).SetUint64(math.MaxUint64)
				}
				if n.Cmp(least) < 0 || n.Cmp(most) > 0 {
					want = nil
				}
			}
			if got := cellOf(dst, r); !sameCell(got, want) {
				t.Fatalf("%s, row %d: %v, want %v", text, r, got, want)
			}
		}
	})
}

// cellOf returns a row of a dense column as the model has it.
func cellOf(c *vector.Column, row int) cell {
	if c.IsNull(row) {
		return nil
	}
	switch c.Type.Physical() {
	case vector.Float32Values:
		return float64(c.Floats[row])
	case vector.Float64Values:
		return c.Doubles[row]
	}
	if c.Type.Elem == vector.Uint64 {
		return new(big.Int).SetUint64(uint64(c.Ints[row]))
	}
	return big.NewInt(c.Ints[row])
}

func sameCell(a, b cell) bool {
	if x, ok := a.(float64); ok {
		// A division of integers is a float, and so is a float's sum with one.
		if n, ok := b.(*big.Int); ok {
			f, _ := new(big.Float).SetInt(n).Float64()
			b = f
		}
		y, ok := b.(float64)
		return ok && (x == y || math.IsNaN(x) && math.IsNaN(y))
	}
	x, ok := a.(*big.Int)
	y, both := b.(*big.Int)
	return ok == both && (ok && x.Cmp(y) == 0 || !ok && a == nil && b == nil)
}

// What an expression is, and of what type.
func TestValueTypes(t *testing.T) {
	types := map[string]Field{
		"i": {Type: dense(vector.Int32)}, "u": {Type: dense(vector.Uint64)}, "f": {Type: dense(vector.Float32)},
		"b": {Type: dense(vector.Bool)},
		"s": {Type: vector.Type{Kind: vector.String}}, "l": {Type: sparse(vector.Int64)}, "ds": {Partition: true},
		"day": {Type: dense(vector.Int32), Logical: "date32"}, "gone": {Err: errors.New("no feature gone")},
	}
	resolve := func(names []string) (out []Field, _ error) {
		for _, n := range names {
			out = append(out, types[n])
		}
		return out, nil
	}
	for _, c := range []struct{ text, want string }{ // a type, "condition", or of an error
		{"i / u", "float64"}, {"i + 2 * u", "int64"}, {"-i", "int64"}, {"i * 1.0", "float64"}, {"f - f", "float64"},
		{"len(l) - 1", "int64"},
		{"i", "int32"}, {"(u)", "uint64"}, {"f", "float32"}, {"len(l)", "int64"}, {"+f", "float32"}, {"i + 0", "int64"},
		{"b", "condition"}, {"i > 1", "condition"}, {"(i + 1) / 2 > 1", "condition"}, {"TRUE", "condition"},
		{"ds = 'a'", "condition"}, {"NOT b", "condition"},
		{"i IS NULL", "condition"}, {"contains(l, 1)", "condition"}, {"sample(0.1, key=i)", "condition"},
		{"(i = 1)", "condition"},
		{"1", "column 1: 1 is not a condition"}, {"2 * 3", "column 1: 6 is not a condition"},
		{"'a'", "column 1: 'a' is not a condition"},
		{"any(l)", "is not a condition"}, {"any(l) + 1", "nothing is computed from it"},
		{"s", "column 1: s is string: only numbers are computed with"}, {"i + s", "column 5: s is string"},
		{"l", "column 1: l is list<int64>"},
		{"day", "column 1: day is date32: only numbers"}, {"b + 1", "column 1: b is bool"},
		{"i + ds", "column 5: ds is a partition key: only features"},
		{"ds", "condition"}, {"gone", "column 1: no feature gone"}, {"i / gone", "column 5: no feature gone"},
		{"i /", "column 4: want a name or a value"}, {"(i / u", "column 1: the parenthesis that opens here"},
		{"i + * u", "column 5"}, {"i u", "column 3: want AND, OR or the end"},
		{"", "column 1: the expression is empty"}, {"i > 1 AND", "column 10"},
		{"i - 'a'", "column 5: 'a' is no number"},
		{"i > 1 -- c", "column 7: -- begins a comment in SQL"}, {"i --u", "column 3: -- begins a comment"},
		{"i - -u", "int64"}, {"i - -1", "int64"}, {"- -i", "column 3: want a number after -"},
		{"(i = 1", "column 1: the parenthesis that opens here"}, {"NOT", "column 4"},
		{"i $", "column 3: unexpected character"},
	} {
		v, f, err := ParseValue(c.text, resolve)
		switch got := ""; {
		case v != nil && f == nil && err == nil:
			if got = v.Type().String(); got != c.want {
				t.Errorf("%s is %s, want %s", c.text, got, c.want)
			}
		case f != nil && v == nil && err == nil:
			if c.want != "condition" {
				t.Errorf("%s is a condition, want %s", c.text, c.want)
			}
		case err == nil || v != nil || f != nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, %v, %v, want %s", c.text, v, f, err, c.want)
		}
	}
}

// Integers are exact up to what their column holds.
func TestValueBounds(t *testing.T) {
	c := vector.NewColumn(dense(vector.Uint64))
	for _, v := range []uint64{0, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		c.Ints = append(c.Ints, int64(v))
		c.AddSlot()
	}
	for text, want := range map[string][]cell{
		"x": {big.NewInt(0), big.NewInt(math.MaxInt64), new(big.Int).SetUint64(math.MaxInt64 + 1),
			new(big.Int).SetUint64(math.MaxUint64)},
		"x + 0":  {big.NewInt(0), big.NewInt(math.MaxInt64), nil, nil},
		"-x":     {big.NewInt(0), big.NewInt(-math.MaxInt64), big.NewInt(math.MinInt64), nil},
		"0 - x":  {big.NewInt(0), big.NewInt(-math.MaxInt64), big.NewInt(math.MinInt64), nil},
		"x / x":  {nil, 1.0, 1.0, 1.0},
		"x - x":  {big.NewInt(0), big.NewInt(0), big.NewInt(0), big.NewInt(0)},
		"x * x":  {big.NewInt(0), nil, nil, nil},
		"x + .5": {0.5, float64(math.MaxInt64) + 0.5, float64(1<<63) + 0.5, float64(math.MaxUint64) + 0.5},
	} {
		v, _, err := ParseValue(text, oneField(Field{Type: c.Type}))
		if err != nil {
			t.Fatal(err)
		}
		got := vector.NewColumn(v.Type())
		v.Append(got, []*vector.Column{c}, 0, 4)
		for r, w := range want {
			if g := cellOf(got, r); !sameCell(g, w) {
				t.Errorf("%s, row %d: %v, want %v", text, r, g, w)
			}
		}
	}
}
