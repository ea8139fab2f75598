package expr

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// A cell is a value of the model: nil, *big.Int, float64, string, or a []cell; a literal may be a *big.Rat too.
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
		const enough = 2000 // bits, for every literal's difference from an integer
		switch n := c.(type) {
		case *big.Int:
			return new(big.Float).SetPrec(enough).SetInt(n), true
		case *big.Rat:
			return new(big.Float).SetPrec(enough).SetRat(n), true
		}
		f := c.(float64)
		if math.IsNaN(f) {
			return nil, false
		}
		return new(big.Float).SetPrec(enough).SetFloat64(f), true
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
			"9007199254740992.5", "9007199254740993.000", "-9223372036854775808.5", "9223372036854775807.0", "18446744073709551614.9", "1e-400", "-1e-400",
			"900719925474099.3e1", "000.30e1", "3.0000000000000000000000000000000000001",
		}).Draw(x.t, "number")
		if strings.ContainsAny(v, ".e") {
			r, _ := new(big.Rat).SetString(v)
			if m != nil && (m.field.Type.Elem == vector.Float32 || m.field.Type.Elem == vector.Float64) {
				f, _ := r.Float64() // floats are compared with the float64 next to what is written
				return v, f
			}
			return v, r
		}
		n, _ := new(big.Int).SetString(v, 10)
		return v, n
	}
	s := rapid.SampledFrom([]string{"", "a", "ab", "b", "é", "it's"}).Draw(x.t, "string")
	return "'" + strings.ReplaceAll(s, "'", "''") + "'", s
}

// computes is what an operator gives: null of null, of what is divided by 0, and of integers beyond 64 bits and a sign.
func computes(op string, a, b cell) cell {
	if a == nil || b == nil {
		return nil
	}
	m, isInt := a.(*big.Int)
	n, both := b.(*big.Int)
	if isInt && both && op != "/" {
		r := new(big.Int)
		switch op {
		case "+":
			r.Add(m, n)
		case "-":
			r.Sub(m, n)
		case "*":
			r.Mul(m, n)
		}
		if r.BitLen() > 64 {
			return nil
		}
		return r
	}
	float := func(c cell) float64 {
		if n, ok := c.(*big.Int); ok {
			f, _ := new(big.Float).SetInt(n).Float64()
			return f
		}
		return c.(float64)
	}
	f, g := float(a), float(b)
	switch op {
	case "+":
		return f + g
	case "-":
		return f - g
	case "*":
		return f * g
	}
	if g == 0 {
		return nil
	}
	return f / g
}

// number draws a number that is computed from a column at least; false: there is none to compute with.
func (x *exprDrawer) number(depth int) (string, func(r int) cell, bool) {
	t := x.t
	if depth == 0 {
		m := rapid.SampledFrom(x.columns).Draw(t, "column")
		switch k := m.field.Type.Kind; {
		case k == vector.Sparse || k == vector.Weighted:
			return "len(" + m.name + ")", func(r int) cell {
				if m.rows[r] == nil {
					return nil
				}
				return big.NewInt(int64(len(m.rows[r].([]cell))))
			}, true
		case k == vector.Dense && m.field.Type.Elem != vector.Bool:
			return m.name, func(r int) cell { return m.rows[r] }, true
		}
		return "", nil, false
	}
	text, eval, ok := x.number(depth - 1)
	if !ok {
		return "", nil, false
	}
	if rapid.IntRange(0, 4).Draw(t, "sign") == 0 {
		return "-(" + text + ")", func(r int) cell { return computes("-", big.NewInt(0), eval(r)) }, true
	}
	op := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "operator")
	text2, eval2, ok := x.number(rapid.IntRange(0, depth-1).Draw(t, "other"))
	if !ok || rapid.Bool().Draw(t, "constant") {
		var v cell
		text2, v = x.constant()
		eval2 = func(int) cell { return v }
	}
	if rapid.Bool().Draw(t, "swapped") {
		text, text2, eval, eval2 = text2, text, eval2, eval
	}
	return "(" + text + ") " + op + " (" + text2 + ")", func(r int) cell { return computes(op, eval(r), eval2(r)) }, true
}

// constant draws a number that is the same as a float64.
func (x *exprDrawer) constant() (string, cell) {
	v := rapid.SampledFrom([]string{"0", "1", "2", "-3", "2.5", "0.0", "1e300", "9007199254740992", "18446744073709551615"}).Draw(x.t, "constant")
	if strings.ContainsAny(v, ".e") {
		f, _ := strconv.ParseFloat(v, 64)
		return v, f
	}
	n, _ := new(big.Int).SetString(v, 10)
	return v, n
}

// computed draws a condition about what is computed.
func (x *exprDrawer) computed() (drawn, bool) {
	t := x.t
	text, eval, ok := x.number(rapid.IntRange(1, 3).Draw(t, "depth"))
	if !ok {
		return drawn{}, false
	}
	compare := func(op string, with func(r int) cell) func(r int) tri {
		return func(r int) tri {
			a, b := eval(r), with(r)
			if a == nil || b == nil {
				return nil
			}
			return yes(opHolds(a, op, b))
		}
	}
	c, v := x.constant()
	d, w := x.constant()
	equals := compare("=", func(int) cell { return v })
	equalsToo := compare("=", func(int) cell { return w })
	switch rapid.IntRange(0, 5).Draw(t, "about what is computed") {
	case 0:
		return drawn{text + " IS NULL", func(r int) tri { return yes(eval(r) == nil) }}, true
	case 1:
		return drawn{text + " IS NOT NULL", func(r int) tri { return yes(eval(r) != nil) }}, true
	case 2:
		return drawn{text + " NOT IN (" + c + ", " + d + ")", func(r int) tri { return triNot(triOr(equals(r), equalsToo(r))) }}, true
	case 3:
		low, high := compare(">=", func(int) cell { return v }), compare("<=", func(int) cell { return w })
		return drawn{text + " BETWEEN " + c + " AND " + d, func(r int) tri { return triAnd(low(r), high(r)) }}, true
	}
	op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
	other, with, ok := x.number(rapid.IntRange(0, 1).Draw(t, "other depth"))
	if !ok || rapid.Bool().Draw(t, "with a constant") {
		other, with = c, func(int) cell { return v }
	}
	return drawn{text + " " + op + " " + other, compare(op, with)}, true
}

func (x *exprDrawer) leaf() drawn {
	t := x.t
	if rapid.IntRange(0, 4).Draw(t, "computed") == 0 {
		if d, ok := x.computed(); ok {
			return d
		}
	}
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
		yes, no := make(vector.Bitmap, len(got)), make(vector.Bitmap, len(got))
		x.Evaluate(yes, no, f, rows, nil, given)
		selected := 0
		for r := range rows {
			w := want.eval(r)
			if w != nil && *w {
				selected++
			}
			if got.Get(r) != (w != nil && *w) {
				t.Fatalf("%s, row %d: %v", want.text, r, got.Get(r))
			}
			if yes.Get(r) != got.Get(r) || no.Get(r) != (w != nil && !*w) {
				t.Fatalf("%s, row %d: true %v, false %v", want.text, r, yes.Get(r), no.Get(r))
			}
		}
		for _, w := range []uint64{got[len(got)-1], yes[len(got)-1], no[len(got)-1]} {
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
