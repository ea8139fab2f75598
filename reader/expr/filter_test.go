package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// A cell is a value of the model: nil, *big.Int, float64, string, or a []cell.
type cell any

// A modelColumn is a feature of the model: its rows, and the same as a column.
type modelColumn struct {
	name   string
	field  Field
	rows   []cell
	column *vector.Column // nil: null in every row
	stats  FieldStats
}

func dense(e vector.Elem) vector.Type  { return vector.Type{Kind: vector.Dense, Elem: e} }
func sparse(e vector.Elem) vector.Type { return vector.Type{Kind: vector.Sparse, Elem: e} }

// modelTypes are the features of every drawn table, by name.
var modelTypes = []struct {
	name string
	typ  vector.Type
}{
	{"i", dense(vector.Int64)}, {"j", dense(vector.Int8)}, {"u", dense(vector.Uint64)}, {"f", dense(vector.Float32)}, {"d", dense(vector.Float64)},
	{"b", dense(vector.Bool)}, {"s", vector.Type{Kind: vector.String}}, {"raw", vector.Type{Kind: vector.Bytes}},
	{"li", sparse(vector.Int64)}, {"lu", sparse(vector.Uint64)}, {"lf", sparse(vector.Float32)},
	{"w", vector.Type{Kind: vector.Weighted, Elem: vector.Int32, Score: vector.Float32}},
}

func drawElement(t *rapid.T, e vector.Elem) cell {
	switch e {
	case vector.Bool:
		return big.NewInt(rapid.Int64Range(0, 1).Draw(t, "bool"))
	case vector.Uint64:
		return new(big.Int).SetUint64(rapid.SampledFrom([]uint64{0, 1, 3, 1 << 53, 1<<53 + 1, 1 << 63, math.MaxUint64}).Draw(t, "uint"))
	case vector.Int64:
		return big.NewInt(rapid.SampledFrom([]int64{-3, 0, 1, 2, 3, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64}).Draw(t, "int"))
	case vector.Float32:
		return float64(rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 0.1, 1, 3, -2.5, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}).Draw(t, "float"))
	case vector.Float64:
		return rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 0.1, 1, 3, 1 << 53, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "double")
	}
	return big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "small"))
}

func drawCell(t *rapid.T, typ vector.Type) cell {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	switch typ.Kind {
	case vector.Dense:
		return drawElement(t, typ.Elem)
	case vector.String, vector.Bytes:
		return rapid.SampledFrom([]string{"", "a", "ab", "abc", "é", "b%", "B"}).Draw(t, "text")
	}
	list := []cell{}
	for range rapid.IntRange(0, 3).Draw(t, "length") {
		list = append(list, drawElement(t, typ.Elem))
	}
	return list
}

func appendElement(c *vector.Column, v cell) {
	switch v := v.(type) {
	case *big.Int:
		if v.Sign() >= 0 {
			c.Ints = append(c.Ints, int64(v.Uint64()))
		} else {
			c.Ints = append(c.Ints, v.Int64())
		}
	case float64:
		if c.Type.Elem == vector.Float32 {
			c.Floats = append(c.Floats, float32(v))
		} else {
			c.Doubles = append(c.Doubles, v)
		}
	}
	if c.Type.Kind == vector.Weighted {
		c.ScoreFloats = append(c.ScoreFloats, 0)
	}
}

// drawColumn draws slots, and rows that have them.
func drawColumn(t *rapid.T, name string, typ vector.Type, rows int) *modelColumn {
	m := &modelColumn{name: name, field: Field{Type: typ}}
	if rapid.IntRange(0, 9).Draw(t, "missing") == 0 {
		m.rows = make([]cell, rows)
		return m
	}
	var slots []cell
	c := vector.NewColumn(typ)
	for range rows {
		v := drawCell(t, typ)
		slots = append(slots, v)
		switch v := v.(type) {
		case nil:
			c.AppendNulls(1)
			continue
		case string:
			c.Data = append(c.Data, v...)
		case []cell:
			for _, e := range v {
				appendElement(c, e)
			}
		default:
			appendElement(c, v)
		}
		c.AddSlot()
	}
	m.rows = slots
	if rapid.Bool().Draw(t, "inverse") {
		c.Inverse, m.rows = nil, nil
		for range rows {
			s := rapid.IntRange(0, len(slots)-1).Draw(t, "slot")
			c.Inverse = append(c.Inverse, int32(s))
			m.rows = append(m.rows, slots[s])
		}
	}
	if err := c.Validate(); err != nil {
		panic(err)
	}
	m.column, m.stats = c, modelStats(typ, m.rows, slots)
	return m
}

// modelStats are the statistics of a stripe as the format's specification has them.
func modelStats(typ vector.Type, rows, slots []cell) FieldStats {
	st := &format.Stats{}
	for _, r := range rows {
		if r == nil {
			st.NullRows++
		}
		if l, ok := r.([]cell); ok {
			st.Elements += uint64(len(l))
		}
	}
	var bound func(v cell)
	bound = func(v cell) {
		switch v := v.(type) {
		case []cell:
			for _, e := range v {
				bound(e)
			}
		case float64:
			if math.IsNaN(v) {
				return
			}
			if !st.HasMinMax {
				st.HasMinMax, st.MinFloat, st.MaxFloat = true, v, v
			}
			st.MinFloat, st.MaxFloat = min(st.MinFloat, v), max(st.MaxFloat, v)
		case *big.Int:
			n := v.Int64()
			if typ.Elem == vector.Uint64 {
				u := v.Uint64()
				if !st.HasMinMax {
					st.HasMinMax, st.MinInt, st.MaxInt = true, int64(u), int64(u)
				}
				st.MinInt, st.MaxInt = int64(min(uint64(st.MinInt), u)), int64(max(uint64(st.MaxInt), u))
				return
			}
			if !st.HasMinMax {
				st.HasMinMax, st.MinInt, st.MaxInt = true, n, n
			}
			st.MinInt, st.MaxInt = min(st.MinInt, n), max(st.MaxInt, n)
		}
	}
	for _, s := range slots {
		bound(s)
	}
	return FieldStats{Type: typ, Rows: uint64(len(rows)), Stats: st}
}

// A tri is the model's logic: true, false, or nil.
type tri *bool

func yes(b bool) tri { return &b }

func triNot(x tri) tri {
	if x == nil {
		return nil
	}
	return yes(!*x)
}

func triAnd(a, b tri) tri {
	switch {
	case a != nil && !*a, b != nil && !*b:
		return yes(false)
	case a == nil || b == nil:
		return nil
	}
	return yes(true)
}

func triOr(a, b tri) tri { return triNot(triAnd(triNot(a), triNot(b))) }

// order returns the order of two numbers or texts; false: they have none.
func orderOf(a, b cell) (int, bool) {
	if x, ok := a.(string); ok {
		return strings.Compare(x, b.(string)), true
	}
	float := func(c cell) (*big.Float, bool) {
		if n, ok := c.(*big.Int); ok {
			return new(big.Float).SetPrec(200).SetInt(n), true
		}
		f := c.(float64)
		if math.IsNaN(f) {
			return nil, false
		}
		return new(big.Float).SetPrec(200).SetFloat64(f), true
	}
	x, okX := float(a)
	y, okY := float(b)
	if !okX || !okY {
		return 0, false
	}
	return x.Cmp(y), true
}

func opHolds(a cell, op string, b cell) bool {
	o, ok := orderOf(a, b)
	if !ok {
		return op == "!="
	}
	return map[string]bool{"=": o == 0, "!=": o != 0, "<": o < 0, "<=": o <= 0, ">": o > 0, ">=": o >= 0}[op]
}

// A drawn is a condition as text and as the model has it.
type drawn struct {
	text string
	eval func(row int) tri
}

type exprDrawer struct {
	t       *rapid.T
	columns []*modelColumn
}

func (x *exprDrawer) literal(m *modelColumn) (string, cell) {
	if m == nil || m.field.Type.Kind != vector.String && m.field.Type.Kind != vector.Bytes {
		v := rapid.SampledFrom([]string{
			"0", "1", "2", "3", "-3", "2.5", "0.1", "1e300", "9007199254740992", "9007199254740993", "9007199254740993.0", "18446744073709551615",
			"9223372036854775807", "-9223372036854775808", "1e19", "-0.0", "0.10000000149011612",
		}).Draw(x.t, "number")
		if strings.ContainsAny(v, ".e") {
			f, _ := strconv.ParseFloat(v, 64)
			return v, f
		}
		n, _ := new(big.Int).SetString(v, 10)
		return v, n
	}
	s := rapid.SampledFrom([]string{"", "a", "ab", "b", "é", "it's"}).Draw(x.t, "string")
	return "'" + strings.ReplaceAll(s, "'", "''") + "'", s
}

func (x *exprDrawer) leaf() drawn {
	t := x.t
	m := rapid.SampledFrom(x.columns).Draw(t, "column")
	name := m.name
	list := m.field.Type.Kind == vector.Sparse || m.field.Type.Kind == vector.Weighted
	if rapid.IntRange(0, 6).Draw(t, "null test") == 0 {
		if rapid.Bool().Draw(t, "negated") {
			return drawn{name + " IS NOT NULL", func(r int) tri { return yes(m.rows[r] != nil) }}
		}
		return drawn{name + " IS NULL", func(r int) tri { return yes(m.rows[r] == nil) }}
	}
	// each applies a test of one value to what the operand says of a row.
	operand, each := name, func(r int, test func(cell) bool) tri {
		if m.rows[r] == nil {
			return nil
		}
		return yes(test(m.rows[r]))
	}
	literalOf := m
	if list {
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			operand, literalOf = "len("+name+")", nil
			each = func(r int, test func(cell) bool) tri {
				if m.rows[r] == nil {
					return nil
				}
				return yes(test(big.NewInt(int64(len(m.rows[r].([]cell))))))
			}
		case 1:
			operand = "any(" + name + ")"
			each = func(r int, test func(cell) bool) tri {
				if m.rows[r] == nil {
					return nil
				}
				return yes(slices.ContainsFunc(m.rows[r].([]cell), test))
			}
		case 2:
			operand = "all(" + name + ")"
			each = func(r int, test func(cell) bool) tri {
				if m.rows[r] == nil {
					return nil
				}
				return yes(!slices.ContainsFunc(m.rows[r].([]cell), func(c cell) bool { return !test(c) }))
			}
		}
	}
	not, negate := "", rapid.Bool().Draw(t, "negate")
	if negate {
		not = "NOT "
	}
	switch rapid.IntRange(0, 5).Draw(t, "condition") {
	case 0:
		text, v := x.literal(literalOf)
		text2, v2 := x.literal(literalOf)
		return drawn{operand + " " + not + "IN (" + text + ", " + text2 + ")", func(r int) tri {
			return each(r, func(c cell) bool { return (opHolds(c, "=", v) || opHolds(c, "=", v2)) != negate })
		}}
	case 1:
		text, v := x.literal(literalOf)
		text2, v2 := x.literal(literalOf)
		return drawn{operand + " " + not + "BETWEEN " + text + " AND " + text2, func(r int) tri {
			return each(r, func(c cell) bool { return (opHolds(c, ">=", v) && opHolds(c, "<=", v2)) != negate })
		}}
	case 2:
		if m.field.Type.Kind == vector.String {
			return drawn{operand + " " + not + "LIKE 'a%'", func(r int) tri {
				return each(r, func(c cell) bool { return strings.HasPrefix(c.(string), "a") != negate })
			}}
		}
		if list {
			text, v := x.literal(m)
			return drawn{"contains(" + name + ", " + text + ")", func(r int) tri {
				if m.rows[r] == nil {
					return nil
				}
				return yes(slices.ContainsFunc(m.rows[r].([]cell), func(c cell) bool { return opHolds(c, "=", v) }))
			}}
		}
	case 3:
		// Another feature that is compared alike.
		other := rapid.SampledFrom(x.columns).Draw(t, "other")
		class := func(m *modelColumn) string {
			switch k := m.field.Type.Kind; {
			case k == vector.String || k == vector.Bytes:
				return "text"
			case m.field.Type.Elem == vector.Bool:
				return "bool"
			}
			return "number"
		}
		k := other.field.Type.Kind
		if k != vector.Sparse && k != vector.Weighted && (class(other) == class(m) || strings.HasPrefix(operand, "len") && class(other) == "number") {
			op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
			return drawn{operand + " " + op + " " + other.name, func(r int) tri {
				if other.rows[r] == nil {
					return nil
				}
				return each(r, func(c cell) bool { return opHolds(c, op, other.rows[r]) })
			}}
		}
	}
	op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
	text, v := x.literal(literalOf)
	if !list && rapid.Bool().Draw(t, "flip") {
		flipped := map[string]string{"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
		return drawn{text + " " + flipped + " " + operand, func(r int) tri { return each(r, func(c cell) bool { return opHolds(c, op, v) }) }}
	}
	return drawn{operand + " " + op + " " + text, func(r int) tri { return each(r, func(c cell) bool { return opHolds(c, op, v) }) }}
}

func (x *exprDrawer) draw(depth int) drawn {
	switch kind := rapid.IntRange(0, 5).Draw(x.t, "node"); {
	case depth == 0 || kind > 3:
		return x.leaf()
	case kind == 0:
		a := x.draw(depth - 1)
		return drawn{"NOT (" + a.text + ")", func(r int) tri { return triNot(a.eval(r)) }}
	case kind == 1:
		a, b := x.draw(depth-1), x.draw(depth-1)
		return drawn{"(" + a.text + ") OR (" + b.text + ")", func(r int) tri { return triOr(a.eval(r), b.eval(r)) }}
	}
	a, b := x.draw(depth-1), x.draw(depth-1)
	return drawn{"(" + a.text + ") AND (" + b.text + ")", func(r int) tri { return triAnd(a.eval(r), b.eval(r)) }}
}

// TestFilterModel compares bitmaps and verdicts with a model that shares no code with them.
func TestFilterModel(t *testing.T) {
	var x Evaluator
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 140).Draw(t, "rows")
		d := &exprDrawer{t: t}
		for range rapid.IntRange(1, 4).Draw(t, "columns") {
			typ := rapid.SampledFrom(modelTypes).Draw(t, "type")
			d.columns = append(d.columns, drawColumn(t, typ.name+strconv.Itoa(len(d.columns)), typ.typ, rows))
		}
		want := d.draw(3)
		f, err := ParseFilter(want.text, func(names []string) ([]Field, error) {
			var out []Field
			for _, n := range names {
				i := slices.IndexFunc(d.columns, func(m *modelColumn) bool { return m.name == n })
				out = append(out, d.columns[i].field)
			}
			return out, nil
		})
		if err != nil {
			t.Fatalf("%s: %v", want.text, err)
		}
		var columns []*modelColumn
		for _, n := range f.Features() {
			columns = append(columns, d.columns[slices.IndexFunc(d.columns, func(m *modelColumn) bool { return m.name == n })])
		}
		given := make([]*vector.Column, len(columns))
		for i, m := range columns {
			given[i] = m.column
		}
		got := make(vector.Bitmap, vector.BitmapWords(rows))
		x.Select(got, f, rows, nil, given)
		selected := 0
		for r := range rows {
			w := want.eval(r)
			if w != nil && *w {
				selected++
			}
			if got.Get(r) != (w != nil && *w) {
				t.Fatalf("%s, row %d: %v", want.text, r, got.Get(r))
			}
		}
		for _, w := range got[len(got)-1:] {
			if rows%64 != 0 && w>>uint(rows%64) != 0 {
				t.Fatalf("%s: bits past the rows", want.text)
			}
		}
		switch v := f.Prune(nil, func(i int) FieldStats { return columns[i].stats }); {
		case v == Never && selected > 0, v == Always && selected < rows:
			t.Fatalf("%s: verdict %d, but %d of %d rows are selected", want.text, v, selected, rows)
		}
	})
}

// oneField resolves every name to the same field.
func oneField(f Field) func([]string) ([]Field, error) {
	return func(names []string) ([]Field, error) { return slices.Repeat([]Field{f}, len(names)), nil }
}

func TestPrune(t *testing.T) {
	stats := func(typ vector.Type, rows, nulls uint64, lo, hi int64) FieldStats {
		return FieldStats{Type: typ, Rows: rows, Stats: &format.Stats{NullRows: nulls, Elements: 100, HasMinMax: true, MinInt: lo, MaxInt: hi}}
	}
	i := dense(vector.Int64)
	float := FieldStats{Type: dense(vector.Float64), Rows: 10, Stats: &format.Stats{HasMinMax: true, MinFloat: 1, MaxFloat: 2}}
	for _, c := range []struct {
		text string
		typ  vector.Type
		s    FieldStats
		want Verdict
	}{
		{"x > 5", i, stats(i, 10, 0, 1, 5), Never},
		{"x > 4", i, stats(i, 10, 0, 1, 5), Some},
		{"x > 0", i, stats(i, 10, 0, 1, 5), Always},
		{"x > 0", i, stats(i, 10, 1, 1, 5), Some},
		{"NOT x > 0", i, stats(i, 10, 1, 1, 5), Never},
		{"x != 7", i, stats(i, 10, 0, 1, 5), Always},
		{"x IN (0, 6, 7)", i, stats(i, 10, 0, 1, 5), Never},
		{"x IN (0, 3)", i, stats(i, 10, 0, 1, 5), Some},
		{"x BETWEEN 2.5 AND 2.6 OR x = 9", i, stats(i, 10, 0, 1, 5), Never},
		{"x IS NULL", i, stats(i, 10, 0, 1, 5), Never},
		{"x IS NOT NULL", i, stats(i, 10, 0, 1, 5), Always},
		{"x IS NULL", i, FieldStats{Rows: 10}, Always},
		{"x = 1", i, FieldStats{Rows: 10}, Never},
		{"x > 0", dense(vector.Float64), float, Some}, // there may be a NaN
		{"x > 2", dense(vector.Float64), float, Never},
		{"NOT x > 0", dense(vector.Float64), float, Some},
		{"contains(x, 6)", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Never},
		{"all(x) < 6", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Always},
		{"all(x) > 6", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Some}, // of an empty list it is true
		{"len(x) > 100", sparse(vector.Int64), stats(sparse(vector.Int64), 10, 0, 1, 5), Never},
		{"all(x) > 6", sparse(vector.Int64), FieldStats{Rows: 3, Stats: &format.Stats{}}, Always}, // no list has an element
		{"any(x) > 6", sparse(vector.Int64), FieldStats{Rows: 3, Stats: &format.Stats{}}, Never},
		{"sample(0, key=x)", i, stats(i, 10, 0, 1, 5), Never},
		{"sample(1, key=x)", i, stats(i, 10, 0, 1, 5), Always},
	} {
		f, err := ParseFilter(c.text, oneField(Field{Type: c.typ}))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Prune(nil, func(int) FieldStats { return c.s }); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.text, got, c.want)
		}
	}
}

func TestFilterPartition(t *testing.T) {
	resolve := func(names []string) ([]Field, error) {
		var out []Field
		for _, n := range names {
			out = append(out, Field{Partition: n == "ds", Type: dense(vector.Int64)})
		}
		return out, nil
	}
	f, err := ParseFilter("ds > '2026-11-01' AND x = 1 OR ds IS NULL", resolve)
	if err != nil {
		t.Fatal(err)
	}
	never := func(int) FieldStats {
		return FieldStats{Type: dense(vector.Int64), Rows: 3, Stats: &format.Stats{HasMinMax: true, MaxInt: 5}}
	}
	for value, want := range map[string]Verdict{"2026-10-01": Never, "2026-11-02": Some} {
		if got := f.Prune(storage.Partition{{Key: "ds", Value: value}}, never); got != want {
			t.Errorf("ds=%s: verdict %d, want %d", value, got, want)
		}
	}
	if got := f.Prune(nil, never); got != Always {
		t.Errorf("without ds: verdict %d", got)
	}
	if _, err := ParseFilter("ds = x", resolve); err == nil || !strings.Contains(err.Error(), "column 1: ds is a partition key and x a feature") {
		t.Errorf("mixed: %v", err)
	}
	if _, err := ParseFilter("sample(0.5, key=ds)", resolve); err == nil || !strings.Contains(err.Error(), "is a partition key") {
		t.Errorf("sample of a partition key: %v", err)
	}
}

// TestFilterNaN: NaN is not equal to itself, and neither below nor above anything, also where two features have it.
func TestFilterNaN(t *testing.T) {
	c := vector.NewColumn(dense(vector.Float64))
	c.Doubles = append(c.Doubles, math.NaN(), 1)
	c.AddSlot()
	c.AddSlot()
	for text, want := range map[string]uint64{"x = y": 2, "x != y": 1, "x < y": 0, "NOT x >= y": 1, "x = 1": 2, "x != 1": 1, "NOT x > 0": 1, "x NOT IN (2)": 3} {
		f, err := ParseFilter(text, oneField(Field{Type: c.Type}))
		if err != nil {
			t.Fatal(err)
		}
		got := make(vector.Bitmap, 1)
		new(Evaluator).Select(got, f, 2, nil, []*vector.Column{c, c})
		if got[0] != want {
			t.Errorf("%s: rows %b, want %b", text, got[0], want)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	text, list, embedding := vector.Type{Kind: vector.String}, sparse(vector.Int64), vector.Type{Kind: vector.Embedding, Elem: vector.Float32, Dim: 2}
	for _, c := range []struct {
		text  string
		field Field
		want  string
	}{
		{"abc = 'x'", Field{Type: dense(vector.Int64)}, "column 7: 'x' is text, and is compared with int64"},
		{"abc = 1", Field{Type: text}, "column 7: 1 is compared with a feature of type string: quote it as '...'"},
		{"abc > 3", Field{Type: list}, "column 1: abc is list<int64>: compare len(abc), any(abc) or all(abc), or ask contains(abc, id)"},
		{"len(abc) > 3", Field{Type: text}, "column 5: len(abc) is about lists, and abc is string"},
		{"contains(abc, 3)", Field{Type: dense(vector.Int8)}, "column 10: any(abc) is about lists, and abc is int8"},
		{"abc", Field{Type: dense(vector.Int8)}, "column 1: abc is int8, not true or false: compare it with something"},
		{"abc = TRUE", Field{Type: dense(vector.Int8)}, "column 7: TRUE is compared with int8, which is not true or false"},
		{"abc LIKE 'a'", Field{Type: dense(vector.Int8)}, "column 1: LIKE is about strings, and abc is int8"},
		{"any(abc) IS NULL", Field{Type: list}, "column 5: no element of a list is null"},
		{"abc > 1", Field{Type: embedding}, "column 1: abc is an embedding"},
		{"1 = 1 AND abc = 2", Field{Err: errors.New("no feature, did you mean abd?")}, "column 11: no feature, did you mean abd?"},
		{"abc > '2026-13-01'", Field{Type: dense(vector.Int32), Logical: "date32"}, "column 7: '2026-13-01' is no date or time"},
		{"sample(0.1)", Field{}, "column 11: want key=name"},
		{"sample(1.5, key=abc)", Field{}, "column 8: a sample is a fraction from 0 to 1, and 1.5 is none"},
		{"sample(0.1, seed=-1, key=abc)", Field{}, "column 18: a seed is an integer"},
		{"sample(0.1, kee=abc)", Field{}, "want key=name or seed=integer"},
		{"sample(0.1, key=abc)", Field{Type: list}, "column 17: a sample's key is an integer or a string, and abc is list<int64>"},
	} {
		_, err := ParseFilter(c.text, oneField(c.field))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
		if e := new(Error); !errors.As(err, &e) {
			t.Errorf("%s: %T has no place", c.text, err)
		}
	}
}

func TestFilterLogical(t *testing.T) {
	for _, c := range []struct {
		text, logical string
		elem          vector.Elem
		value         int64
		want          bool
	}{
		{"x = 0.1", "decimal(10, 2)", vector.Int64, 10, true},
		{"x > 0.105", "decimal(10, 2)", vector.Int64, 10, false},
		{"x > 0.105", "decimal(10, 2)", vector.Int64, 11, true},
		{"x = 3", "decimal(10, 2)", vector.Int64, 300, true},
		{"x = 300", "decimal(10, -2)", vector.Int64, 3, true},
		{"x = '2026-11-01'", "date32", vector.Int32, 20758, true},
		{"x < '1969-12-31'", "date32", vector.Int32, -2, true},
		{"x >= '2026-11-01 00:00:01.5'", "timestamp[ms, tz=UTC]", vector.Int64, 1793491201500, true},
		{"x >= '2026-11-01 00:00:01.5'", "timestamp[s]", vector.Int64, 1793491201, false},
		{"x = '2026-11-01T02:00:01+02:00'", "timestamp[us]", vector.Int64, 1793491201000000, true},
		{"x = 1793491201000000", "timestamp[us]", vector.Int64, 1793491201000000, true},
		{"x = 5", "time32[s]", vector.Int32, 5, true},
	} {
		f, err := ParseFilter(c.text, oneField(Field{Type: dense(c.elem), Logical: c.logical}))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		column := vector.NewColumn(dense(c.elem))
		column.Ints = append(column.Ints, c.value)
		column.AddSlot()
		got := make(vector.Bitmap, 1)
		new(Evaluator).Select(got, f, 1, nil, []*vector.Column{column})
		if got.Get(0) != c.want {
			t.Errorf("%s of %d, %s: %v", c.text, c.value, c.logical, !c.want)
		}
	}
	if _, err := ParseFilter("x = 0.1", oneField(Field{Type: vector.Type{Kind: vector.Bytes}, Logical: "decimal(30, 2)"})); err == nil {
		t.Error("a decimal stored as bytes is compared")
	}
}

// TestSampleForEver fixes which keys a sample has: they never change.
func TestSampleForEver(t *testing.T) {
	sampled := func(text string, c *vector.Column) string {
		f, err := ParseFilter(text, oneField(Field{Type: c.Type}))
		if err != nil {
			t.Fatal(err)
		}
		got := make(vector.Bitmap, vector.BitmapWords(c.Rows))
		new(Evaluator).Select(got, f, c.Rows, nil, []*vector.Column{c})
		var b strings.Builder
		for r := range c.Rows {
			if got.Get(r) {
				fmt.Fprintf(&b, "%d ", r)
			}
		}
		return strings.TrimSpace(b.String())
	}
	ints := func(e vector.Elem) *vector.Column {
		c := vector.NewColumn(dense(e))
		for i := range 40 {
			c.Ints = append(c.Ints, int64(i)-5)
			c.AddSlot()
		}
		return c
	}
	texts := vector.NewColumn(vector.Type{Kind: vector.String})
	for i := range 40 {
		texts.Data = append(texts.Data, fmt.Sprintf("user%d", i)...)
		texts.AddSlot()
	}
	texts.AppendNulls(1)
	for _, c := range []struct {
		text string
		c    *vector.Column
		want string
	}{
		{"sample(0.2, key=k, seed=7)", ints(vector.Int64), "6 10 20 28 29 39"},
		{"sample(0.2, key=k, seed=7)", ints(vector.Int8), "6 10 20 28 29 39"},
		{"sample(0.2, key=k)", ints(vector.Int64), "17 24 35"},
		{"sample(0.2, seed=7, key=k)", texts, "10 12 15 16 18 19 20 21 28 29 33"},
		{"NOT sample(1, key=k)", texts, ""},
	} {
		if got := sampled(c.text, c.c); got != c.want {
			t.Errorf("%s of %v: %s, want %s", c.text, c.c.Type, got, c.want)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"a = 1 AND b IN ('x')", "sample(0.1, key=a, seed=3) OR a IS NULL", "all(a) NOT BETWEEN 1 AND 2", "contains(a, 3)", "len(a) > b"} {
		f.Add(s, uint8(1))
	}
	kinds := []vector.Type{dense(vector.Int64), dense(vector.Float32), sparse(vector.Uint64), {Kind: vector.String}, dense(vector.Bool)}
	f.Fuzz(func(t *testing.T, text string, kind uint8) {
		typ := kinds[int(kind)%len(kinds)]
		x, err := ParseFilter(text, oneField(Field{Type: typ, Partition: kind > 200}))
		if err != nil {
			return
		}
		y, err := ParseFilter(x.String(), oneField(Field{Type: typ, Partition: kind > 200}))
		if err != nil || y.String() != x.String() {
			t.Fatalf("%q is printed %q: %v", text, x, err)
		}
		c := vector.NewColumn(typ)
		c.AppendNulls(3)
		columns := slices.Repeat([]*vector.Column{c}, len(x.Features()))
		var e Evaluator
		a, b := make(vector.Bitmap, 1), make(vector.Bitmap, 1)
		e.Select(a, x, 3, nil, columns)
		e.Select(b, y, 3, nil, columns)
		if a[0] != b[0] {
			t.Fatalf("%q selects %b, %q %b", text, a, y, b)
		}
	})
}
