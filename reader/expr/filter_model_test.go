package expr

import (
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

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
	t         *rapid.T
	columns   []*modelColumn
	partition catalog.Partition
}

var modelNumber = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// key draws a condition over partition values, which is the same in every row.
func (x *exprDrawer) key() drawn {
	t := x.t
	k := rapid.SampledFrom(x.partition).Draw(t, "key")
	same := func(v tri) func(int) tri { return func(int) tri { return v } }
	// compared is the value beside a number, a bool (a *big.Int, as in columns) or a text; nil: there is none
	// to compare.
	compared := func(k catalog.PartitionValue, with cell, isBool bool) cell {
		if k.Null {
			return nil
		}
		switch with.(type) {
		case string:
			return k.Value
		default:
			if isBool {
				i := slices.Index([]string{"false", "true"}, strings.ToLower(k.Value))
				if i < 0 {
					return nil
				}
				return big.NewInt(int64(i))
			}
			if !modelNumber.MatchString(k.Value) {
				return nil
			}
			r, _ := new(big.Rat).SetString(strings.TrimPrefix(k.Value, "+"))
			return r
		}
	}
	is := func(op string, with cell, isBool bool) tri {
		v := compared(k, with, isBool)
		if v == nil {
			return nil
		}
		return yes(opHolds(v, op, with))
	}
	literal := func() (string, cell, bool) {
		switch rapid.IntRange(0, 3).Draw(t, "literal of a key") {
		case 0:
			i := rapid.IntRange(0, 1).Draw(t, "bool")
			return []string{"FALSE", "true"}[i], big.NewInt(int64(i)), true
		case 1:
			v := rapid.SampledFrom([]string{"3", "03", "1.5", "x", "true", ""}).Draw(t, "text")
			return "'" + v + "'", v, false
		}
		v := rapid.SampledFrom([]string{"3", "-2", "1.5", "0.1", "1e1", "9007199254740993"}).Draw(t, "number")
		r, _ := new(big.Rat).SetString(v)
		return v, r, false
	}
	op := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
	a, v, isBool := literal()
	switch rapid.IntRange(0, 6).Draw(t, "about a key") {
	case 0:
		return drawn{k.Key + " IS NULL", same(yes(k.Null))}
	case 1:
		return drawn{k.Key, same(is("=", big.NewInt(1), true))}
	case 2:
		b, w, isBoolToo := literal()
		return drawn{k.Key + " NOT IN (" + a + ", " + b + ")",
			same(triNot(triOr(is("=", v, isBool), is("=", w, isBoolToo))))}
	case 3:
		b, w, isBoolToo := literal()
		return drawn{k.Key + " BETWEEN " + a + " AND " + b, same(triAnd(is(">=", v, isBool), is("<=", w, isBoolToo)))}
	case 4:
		var want tri
		if !k.Null {
			want = yes(strings.Contains(k.Value, "3"))
		}
		text := rapid.SampledFrom([]string{k.Key + " LIKE '%3%'",
			"regexp_matches(" + k.Key + ", '3')"}).Draw(t, "pattern")
		return drawn{text, same(want)}
	case 5:
		other := rapid.SampledFrom(x.partition).Draw(t, "other key")
		var want tri
		if left, right := compared(k, 0, false), compared(other, 0, false); left != nil && right != nil {
			want = yes(opHolds(left, op, right))
		} else if !k.Null && !other.Null {
			want = yes(opHolds(k.Value, op, other.Value))
		}
		return drawn{k.Key + " " + op + " " + other.Key, same(want)}
	}
	return drawn{k.Key + " " + op + " " + a, same(is(op, v, isBool))}
}

func (x *exprDrawer) literal(m *modelColumn) (string, cell) {
	if m == nil || m.field.Type.Kind != vector.String && m.field.Type.Kind != vector.Bytes {
		v := rapid.SampledFrom([]string{
			"0", "1", "2", "3", "-3", "2.5", "0.1", "1e300", "9007199254740992", "9007199254740993",
			"9007199254740993.0", "18446744073709551615",
			"9223372036854775807", "-9223372036854775808", "1e19", "-0.0", "0.10000000149011612",
			"9007199254740992.5", "9007199254740993.000", "-9223372036854775808.5", "9223372036854775807.0",
			"18446744073709551614.9", "1e-400", "-1e-400",
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
	return "(" + text + ") " + op + " (" + text2 + ")", func(r int) cell { return computes(op, eval(r), eval2(r)) },
		true
}

// constant draws a number that is the same as a float64.
func (x *exprDrawer) constant() (string, cell) {
	v := rapid.SampledFrom([]string{"0", "1", "2", "-3", "2.5", "0.0", "1e300", "9007199254740992",
		"18446744073709551615"}).Draw(x.t, "constant")
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
		return drawn{text + " NOT IN (" + c + ", " + d + ")",
			func(r int) tri { return triNot(triOr(equals(r), equalsToo(r))) }}, true
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
	if rapid.IntRange(0, 5).Draw(t, "of a key") == 0 {
		return x.key()
	}
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
			if rapid.Bool().Draw(t, "regexp") {
				return drawn{not + "regexp_matches(" + operand + ", '^a')", func(r int) tri {
					return each(r, func(c cell) bool { return strings.HasPrefix(c.(string), "a") != negate })
				}}
			}
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
		if k != vector.Sparse && k != vector.Weighted && (class(other) == class(m) ||
			strings.HasPrefix(operand, "len") && class(other) == "number") {
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
		return drawn{text + " " + flipped + " " + operand,
			func(r int) tri { return each(r, func(c cell) bool { return opHolds(c, op, v) }) }}
	}
	return drawn{operand + " " + op + " " + text,
		func(r int) tri { return each(r, func(c cell) bool { return opHolds(c, op, v) }) }}
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
		for _, key := range []string{"p", "q"} {
			v := rapid.SampledFrom([]string{"", "3", "03", "x", "TRUE", "1.50", "-2",
				"9007199254740993.0"}).Draw(t, key)
			d.partition = append(d.partition, catalog.PartitionValue{Key: key, Value: v,
				Null: rapid.IntRange(0, 4).Draw(t, "null key") == 0})
		}
		want := d.draw(3)
		f, err := ParseFilter(want.text, func(names []string) ([]Field, error) {
			var out []Field
			for _, n := range names {
				if n == "p" || n == "q" {
					out = append(out, Field{Partition: true})
					continue
				}
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
			columns = append(columns, d.columns[slices.IndexFunc(d.columns,
				func(m *modelColumn) bool { return m.name == n })])
		}
		given := make([]*vector.Column, len(columns))
		for i, m := range columns {
			given[i] = m.column
		}
		got := make(vector.Bitmap, vector.BitmapWords(rows))
		x.Select(got, f, rows, d.partition, given)
		yes, no := make(vector.Bitmap, len(got)), make(vector.Bitmap, len(got))
		x.Evaluate(yes, no, f, rows, d.partition, given)
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
		switch v := f.Prune(d.partition, func(i int) FieldStats { return columns[i].stats }); {
		case v == Never && selected > 0, v == Always && selected < rows:
			t.Fatalf("%s: verdict %d, but %d of %d rows are selected", want.text, v, selected, rows)
		}
	})
}
