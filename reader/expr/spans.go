package expr

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"slices"
	"sort"

	"github.com/dsistore/dsistore/format/vector"
)

// A test is the set of values for which a condition is true: spans or a *textTest.
type test interface {
	and(test) test
	or(test) test
	// compact prepares the test for the methods below. and and or are not called afterwards.
	compact() test
	// mark sets the bits of the values of a column that are in the test.
	mark(c *vector.Column, yes vector.Bitmap)
	// bounded returns the possible outcomes for values within bounds.
	bounded(FieldStats) outcomes
}

// A domain is the type in which numbers are compared: int64, uint64 for uint64s, and float64 for floats of both widths.
type domain interface{ int64 | uint64 | float64 }

// A span is the numbers from lo to hi, both included.
type span[T domain] struct{ lo, hi T }

// spans are true of the numbers in one of them. NaN is in none.
type spans[T domain] []span[T]

func (s spans[T]) and(o test) test {
	var out spans[T]
	for _, x := range s {
		for _, y := range o.(spans[T]) {
			if lo, hi := max(x.lo, y.lo), min(x.hi, y.hi); lo <= hi {
				out = append(out, span[T]{lo, hi})
			}
		}
	}
	return out
}

func (s spans[T]) or(o test) test { return append(s, o.(spans[T])...) }

// compact sorts spans and joins those that overlap.
func (s spans[T]) compact() test {
	slices.SortFunc(s, func(a, b span[T]) int { return cmp.Compare(a.lo, b.lo) })
	out := s[:0]
	for _, x := range s {
		if k := len(out) - 1; k >= 0 && x.lo <= out[k].hi {
			out[k].hi = max(out[k].hi, x.hi)
			continue
		}
		out = append(out, x)
	}
	return out
}

// has reports whether v is in one of the spans, which are compact.
func (s spans[T]) has(v T) bool {
	if len(s) > 4 {
		i := sort.Search(len(s), func(i int) bool { return s[i].hi >= v })
		return i < len(s) && s[i].lo <= v
	}
	for i := range s {
		if v >= s[i].lo && v <= s[i].hi {
			return true
		}
	}
	return false
}

// within returns whether numbers in [lo, hi] may be in a span, and whether they may be in none.
func (s spans[T]) within(lo, hi T) outcomes {
	i := sort.Search(len(s), func(i int) bool { return s[i].hi >= lo })
	switch {
	case i == len(s) || s[i].lo > hi:
		return canBeFalse
	case s[i].lo <= lo && s[i].hi >= hi:
		return canBeTrue
	}
	return canBeTrue | canBeFalse
}

func (s spans[T]) mark(c *vector.Column, yes vector.Bitmap) {
	switch c.Type.Physical() {
	case vector.Float32Values:
		markValues(s, c.Floats, yes)
	case vector.Float64Values:
		markValues(s, c.Doubles, yes)
	default:
		markValues(s, c.Ints, yes)
	}
}

// markValues sets the bits of the values that are in spans. float32s are compared as the float64s that they are.
func markValues[T domain, V int64 | float32 | float64](s spans[T], values []V, yes vector.Bitmap) {
	if len(s) != 1 {
		for i, v := range values {
			if s.has(T(v)) {
				yes.Set(i)
			}
		}
		return
	}
	lo, hi := s[0].lo, s[0].hi
	for i := range yes {
		word := uint64(0)
		for j, v := range values[64*i : min(64*i+64, len(values))] {
			if T(v) >= lo && T(v) <= hi {
				word |= 1 << uint(j)
			}
		}
		yes[i] = word
	}
}

func (s spans[T]) bounded(f FieldStats) outcomes {
	st := f.Stats
	switch {
	case f.Type.Elem == vector.Uint64:
		return s.within(T(uint64(st.MinInt)), T(uint64(st.MaxInt)))
	case f.Type.Elem.IsInteger():
		return s.within(T(st.MinInt), T(st.MaxInt))
	}
	out := s.within(T(st.MinFloat), T(st.MaxFloat))
	return out | canBeFalse // NaN is in no span, and not within the bounds
}

// intsWhere returns the int64s for which the comparison with r is true.
func intsWhere(op Op, r *big.Rat) spans[int64] {
	lo, hi, ok := integersWhere(op, r, big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64))
	if !ok {
		return nil
	}
	return spans[int64]{{lo.Int64(), hi.Int64()}}
}

// uintsWhere is intsWhere for uint64s.
func uintsWhere(op Op, r *big.Rat) spans[uint64] {
	lo, hi, ok := integersWhere(op, r, new(big.Int), new(big.Int).SetUint64(math.MaxUint64))
	if !ok {
		return nil
	}
	return spans[uint64]{{lo.Uint64(), hi.Uint64()}}
}

// integersWhere returns the integers of [least, most] for which the comparison with r is true; false: there are none.
func integersWhere(op Op, r *big.Rat, least, most *big.Int) (lo, hi *big.Int, ok bool) {
	floor := new(big.Int).Div(r.Num(), r.Denom()) // the denominator is positive: Div is Euclid's, which rounds down
	ceil := new(big.Int).Set(floor)
	if !r.IsInt() {
		ceil.Add(ceil, big.NewInt(1))
	}
	lo, hi = least, most
	switch op {
	case Equal:
		if !r.IsInt() {
			return nil, nil, false
		}
		lo, hi = floor, floor
	case Less:
		hi = ceil.Sub(ceil, big.NewInt(1))
	case LessEqual:
		hi = floor
	case Greater:
		lo = floor.Add(floor, big.NewInt(1))
	case GreaterEqual:
		lo = ceil
	}
	if lo.Cmp(least) < 0 {
		lo = least
	}
	if hi.Cmp(most) > 0 {
		hi = most
	}
	return lo, hi, lo.Cmp(hi) <= 0
}

// floatsWhere returns the float64s for which the comparison with n is true.
func floatsWhere(op Op, n Number) spans[float64] {
	// below and above are the floats next to n, or n itself where a float is n. What was written with a point
	// or an exponent means a float.
	f := n.float()
	below, above := f, f
	switch c := compareNumbers(&Number{Float: f}, &n); {
	case c > 0:
		below = math.Nextafter(f, math.Inf(-1))
	case c < 0:
		above = math.Nextafter(f, math.Inf(1))
	}
	lo, hi := math.Inf(-1), math.Inf(1)
	switch op {
	case Equal:
		lo, hi = above, below // none where they differ
	case Less:
		if hi = below; below == above {
			hi = math.Nextafter(below, math.Inf(-1))
		}
	case LessEqual:
		hi = below
	case Greater:
		if lo = above; below == above {
			lo = math.Nextafter(above, math.Inf(1))
		}
	case GreaterEqual:
		lo = above
	}
	if lo > hi {
		return nil
	}
	return spans[float64]{{lo, hi}}
}

// A textTest is true of byte strings: those of equal, or those that match.
type textTest struct {
	equal []string
	match func(v []byte) bool
}

func newTextTest(op Op, text string) *textTest {
	if op == Equal {
		return &textTest{equal: []string{text}}
	}
	want, orders := []byte(text), op.orders()
	return &textTest{match: func(v []byte) bool { return orders.has(bytes.Compare(v, want)) }}
}

func (t *textTest) and(o test) test {
	a, b := t.compact().(*textTest), o.compact().(*textTest)
	return &textTest{match: func(v []byte) bool { return a.match(v) && b.match(v) }}
}

func (t *textTest) or(o test) test {
	p := o.(*textTest)
	if t.match == nil && p.match == nil {
		return &textTest{equal: append(t.equal, p.equal...)}
	}
	a, b := t.compact().(*textTest), p.compact().(*textTest)
	return &textTest{match: func(v []byte) bool { return a.match(v) || b.match(v) }}
}

func (t *textTest) compact() test {
	if t.match != nil {
		return t
	}
	if len(t.equal) == 1 {
		want := t.equal[0]
		return &textTest{match: func(v []byte) bool { return string(v) == want }}
	}
	set := make(map[string]struct{}, len(t.equal))
	for _, s := range t.equal {
		set[s] = struct{}{}
	}
	return &textTest{match: func(v []byte) bool { _, ok := set[string(v)]; return ok }}
}

func (t *textTest) mark(c *vector.Column, yes vector.Bitmap) {
	for s := range c.Slots {
		lo, hi := c.SlotRange(s)
		if t.match(c.Data[lo:hi]) {
			yes.Set(s)
		}
	}
}

func (t *textTest) bounded(FieldStats) outcomes { return canBeTrue | canBeFalse }
