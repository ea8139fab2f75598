package metamorphic

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// A kind is what values a feature has.
type kind int

const (
	numbers kind = iota // int64
	floats              // float64, which float32 holds too
	texts               // string
	idLists             // []int64
)

// A feature is one for as long as the table lives, whatever it is called.
type feature struct {
	kind kind
	// fractions: numbers may be stored as floats too, and are small; else as integers of any size.
	fractions bool
}

// A row holds what readers see of a row: values are nil for null. It is never written to.
type row struct {
	number int64
	day    string
	values map[*feature]any
}

// An overlayState is an overlay that is not part of the table: values of features, for the rows that it covers.
type overlayState struct {
	name     string
	features map[string]*feature // by their names: the table's, where it replaces them
	hive     string              // the type of its one feature, as Hive has it
	covered  map[int64]map[*feature]any
	null     bool // other rows are null in it; else they are what lies below
}

// A branchState is what a branch reads.
type branchState struct {
	snapshot uint64
	list     string   // of that snapshot; empty: all rows
	overlays []string // of that snapshot, the lowest first
}

// with returns the row with other values of some features.
func (r *row) with(values map[*feature]any) *row {
	out := &row{number: r.number, day: r.day, values: maps.Clone(r.values)}
	maps.Copy(out.values, values)
	return out
}

// A state is a table at a snapshot, as readers see it.
type state struct {
	rows     map[int64]*row
	features map[string]*feature       // by their names
	lists    map[string]map[int64]bool // row numbers; of rows that are gone too
	branches map[string]branchState
	overlays []*overlayState // the lowest first; never written to
}

func newState() *state {
	return &state{rows: map[int64]*row{}, features: map[string]*feature{}, lists: map[string]map[int64]bool{},
		branches: map[string]branchState{}}
}

// clone returns a state that can be changed without changing s: rows and sets of a list are replaced, not written to.
func (s *state) clone() *state {
	return &state{rows: maps.Clone(s.rows), features: maps.Clone(s.features), lists: maps.Clone(s.lists),
		branches: maps.Clone(s.branches),
		overlays: slices.Clone(s.overlays)}
}

// overlay returns the overlay of a name, or nil.
func (s *state) overlay(name string) *overlayState {
	for _, o := range s.overlays {
		if o.name == name {
			return o
		}
	}
	return nil
}

// under returns the state as those see it who read overlays of it, the lowest first.
func (s *state) under(names []string) *state {
	if len(names) == 0 {
		return s
	}
	out := s.clone()
	for _, name := range names {
		o := s.overlay(name)
		maps.Copy(out.features, o.features)
		for n, r := range out.rows {
			values := o.covered[n]
			if values == nil && o.null {
				values = map[*feature]any{}
				for _, f := range o.features {
					values[f] = nil
				}
			}
			if values != nil {
				out.rows[n] = r.with(values)
			}
		}
	}
	return out
}

// names returns the names of the features, sorted: maps have no order, and the same seed must do the same.
func (s *state) names() []string { return slices.Sorted(maps.Keys(s.features)) }

// text prints a value so that equal ones are equal texts, whatever type holds them.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return strconv.Quote(v)
	case []int64:
		return fmt.Sprint(v)
	}
	panic(fmt.Sprintf("metamorphic: a value of type %T", v))
}

// A truth is what a predicate says of a row.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// A predicate is a filter, and what it means.
type predicate struct {
	text string
	of   func(r *row) truth
}

// quote writes a name as filters do.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// drawPredicate draws a filter over what the state has.
func (w *world) drawPredicate(s *state, depth int) predicate {
	if depth > 0 && w.chance(0.6) {
		a, b := w.drawPredicate(s, depth-1), w.drawPredicate(s, depth-1)
		switch w.rnd.IntN(3) {
		case 0:
			return predicate{"NOT (" + a.text + ")", func(r *row) truth { return yes - a.of(r) }}
		case 1:
			return predicate{"(" + a.text + ") AND (" + b.text + ")",
				func(r *row) truth { return min(a.of(r), b.of(r)) }}
		}
		return predicate{"(" + a.text + ") OR (" + b.text + ")", func(r *row) truth { return max(a.of(r), b.of(r)) }}
	}
	switch w.rnd.IntN(8) {
	case 0:
		p := w.drawDays()
		p.text = "(" + p.text + ")"
		return p
	case 1:
		return w.drawSample(s)
	}
	name := w.draw(s.names())
	f := s.features[name]
	if w.chance(0.1) {
		negated := w.chance(0.5)
		word := map[bool]string{false: " IS NULL", true: " IS NOT NULL"}[negated]
		return predicate{quote(name) + word, func(r *row) truth { return truthOf((r.values[f] == nil) != negated) }}
	}
	known := func(holds func(v any) bool) func(r *row) truth {
		return func(r *row) truth {
			if r.values[f] == nil {
				return unknown
			}
			return truthOf(holds(r.values[f]))
		}
	}
	switch f.kind {
	case numbers, floats:
		return w.drawComparison(s, name, f, known)
	case texts:
		v := w.drawValue(f).(string)
		switch w.rnd.IntN(3) {
		case 0:
			return predicate{quote(name) + " = '" + v + "'", known(func(x any) bool { return x == v })}
		case 1:
			u := w.drawValue(f).(string)
			return predicate{quote(name) + " IN ('" + v + "', '" + u + "')",
				known(func(x any) bool { return x == v || x == u })}
		}
		start := string([]rune(v)[:1])
		return predicate{quote(name) + " LIKE '" + start + "%'",
			known(func(x any) bool { return strings.HasPrefix(x.(string), start) })}
	}
	if w.chance(0.5) {
		n := w.rnd.IntN(4)
		return predicate{fmt.Sprintf("len(%s) > %d", quote(name), n),
			known(func(x any) bool { return len(x.([]int64)) > n })}
	}
	id := w.drawID()
	return predicate{fmt.Sprintf("contains(%s, %d)", quote(name), id),
		known(func(x any) bool { return slices.Contains(x.([]int64), id) })}
}

func (w *world) drawComparison(s *state, name string, f *feature,
	known func(func(any) bool) func(*row) truth) predicate {
	v := w.drawValue(f)
	if values := w.valuesOf(s, f); len(values) > 0 && w.chance(0.7) {
		v = values[w.rnd.IntN(len(values))]
	}
	c := toFloat(v)
	op := w.draw([]string{"=", "!=", "<", "<=", ">", ">="})
	holds := map[string]func(a, b float64) bool{
		"=": func(a, b float64) bool { return a == b }, "!=": func(a, b float64) bool { return a != b },
		"<": func(a, b float64) bool { return a < b }, "<=": func(a, b float64) bool { return a <= b },
		">": func(a, b float64) bool { return a > b }, ">=": func(a, b float64) bool { return a >= b },
	}[op]
	return predicate{quote(name) + " " + op + " " + text(v), known(func(x any) bool { return holds(toFloat(x), c) })}
}

// A number is an expression that gives numbers, and what it means: nil, an int64 or a float64, of which there is one
// where float is set.
type number struct {
	text  string
	float bool
	of    func(r *row) any
}

// drawNumber draws an expression that is computed from the features of a state.
func (w *world) drawNumber(s *state, depth int) number {
	if depth == 0 {
		names := slices.DeleteFunc(s.names(), func(name string) bool { return s.features[name].kind == texts })
		name := w.draw(names)
		f := s.features[name]
		if f.kind == idLists {
			return number{"len(" + quote(name) + ")", false, func(r *row) any {
				if list, ok := r.values[f].([]int64); ok {
					return int64(len(list))
				}
				return nil
			}}
		}
		// Those that may be stored as floats or as integers are computed with as floats, whichever they are.
		return number{quote(name), f.kind == floats || f.fractions, func(r *row) any { return r.values[f] }}
	}
	a := w.drawNumber(s, depth-1)
	if w.chance(0.2) {
		a.of = negative(a.of)
		a.text = "-(" + a.text + ")"
		return a
	}
	b := w.drawNumber(s, w.rnd.IntN(depth))
	if c := w.rnd.Int64N(5); w.chance(0.5) {
		b = number{fmt.Sprint(c), false, func(*row) any { return c }}
	}
	if w.chance(0.3) {
		a, b = b, a
	}
	op := w.draw([]string{"+", "-", "*", "/"})
	out := number{"(" + a.text + ") " + op + " (" + b.text + ")", a.float || b.float || op == "/", nil}
	out.of = func(r *row) any {
		x, y := a.of(r), b.of(r)
		if x == nil || y == nil {
			return nil
		}
		if i, ok := x.(int64); ok && !out.float {
			switch j := y.(int64); op {
			case "+":
				return i + j
			case "-":
				return i - j
			default:
				return i * j
			}
		}
		f, g := toFloat(x), toFloat(y)
		switch {
		case op == "+":
			return f + g
		case op == "-":
			return f - g
		case op == "*":
			return f * g
		case g == 0:
			return nil
		}
		return f / g
	}
	return out
}

func negative(of func(r *row) any) func(r *row) any {
	return func(r *row) any {
		switch v := of(r).(type) {
		case int64:
			return -v
		case float64:
			return -v
		}
		return nil
	}
}

func toFloat(v any) float64 {
	if i, ok := v.(int64); ok {
		return float64(i)
	}
	return v.(float64)
}

// valuesOf returns the values, but null, of a feature, in an order that the seed decides.
func (w *world) valuesOf(s *state, f *feature) []any {
	var out []any
	for _, n := range slices.Sorted(maps.Keys(s.rows)) {
		if v := s.rows[n].values[f]; v != nil {
			out = append(out, v)
		}
	}
	return out
}

// drawDays draws a predicate over the partition key.
func (w *world) drawDays() predicate {
	a, b := w.draw(allDays), w.draw(allDays)
	if w.chance(0.5) {
		return predicate{"day = '" + a + "'", func(r *row) truth { return truthOf(r.day == a) }}
	}
	return predicate{"day = '" + a + "' OR day > '" + b + "'",
		func(r *row) truth { return truthOf(r.day == a || r.day > b) }}
}

// drawSample draws a sample of row numbers or texts.
func (w *world) drawSample(s *state) predicate {
	return w.drawSampleOf(s, w.draw([]string{"0", "0.25", "0.5", "1"}))
}

func (w *world) drawSampleOf(s *state, share string) predicate {
	name := w.draw([]string{"row", "key", "session"})
	f, seed := s.features[name], w.rnd.Uint64N(5)
	limit := map[string]uint64{"0": 0, "0.25": 1 << 62, "0.5": 1 << 63, "1": 0}[share]
	return predicate{fmt.Sprintf("sample(%s, key=%s, seed=%d)", share, quote(name), seed), func(r *row) truth {
		b := binary.LittleEndian.AppendUint64(nil, seed)
		switch v := r.values[f].(type) {
		case nil:
			return unknown
		case int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		case string:
			b = append(b, v...)
		}
		return truthOf(share == "1" || xxhash.Sum64(b) < limit)
	}}
}
