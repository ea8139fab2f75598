package expr

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"slices"
	"sort"
)

// A test says which values a condition is true of: a numberTest or a *textTest.
type test interface {
	and(test) test
	or(test) test
	// compact puts the test into the form in which it is asked. and and or are not called afterwards.
	compact() test
}

// A span is the numbers from lo to hi, both of them in it.
type span[T int64 | uint64 | float64] struct{ lo, hi T }

// A numberTest is true of the numbers in its spans, of which those of the domain count. NaN is in none.
type numberTest struct {
	domain domain
	ints   []span[int64]
	uints  []span[uint64]
	floats []span[float64]
}

func (t numberTest) and(o test) test {
	p := o.(numberTest)
	t.ints, t.uints, t.floats = intersect(t.ints, p.ints), intersect(t.uints, p.uints), intersect(t.floats, p.floats)
	return t
}

func (t numberTest) or(o test) test {
	p := o.(numberTest)
	t.ints, t.uints, t.floats = append(t.ints, p.ints...), append(t.uints, p.uints...), append(t.floats, p.floats...)
	return t
}

func (t numberTest) compact() test {
	t.ints, t.uints, t.floats = merge(t.ints), merge(t.uints), merge(t.floats)
	return t
}

func intersect[T int64 | uint64 | float64](a, b []span[T]) []span[T] {
	var out []span[T]
	for _, x := range a {
		for _, y := range b {
			if lo, hi := max(x.lo, y.lo), min(x.hi, y.hi); lo <= hi {
				out = append(out, span[T]{lo, hi})
			}
		}
	}
	return out
}

// merge sorts spans and joins those that overlap.
func merge[T int64 | uint64 | float64](s []span[T]) []span[T] {
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

// has reports whether v is in one of the spans, which are merged.
func has[T int64 | uint64 | float64](s []span[T], v T) bool {
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

// overlaps reports whether a number in [lo, hi] is in a span.
func overlaps[T int64 | uint64 | float64](s []span[T], lo, hi T) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].hi >= lo })
	return i < len(s) && s[i].lo <= hi
}

// covers reports whether all numbers in [lo, hi] are in one span.
func covers[T int64 | uint64 | float64](s []span[T], lo, hi T) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].hi >= lo })
	return i < len(s) && s[i].lo <= lo && s[i].hi >= hi
}

// intsWhere returns the int64s that compare so with r.
func intsWhere(op Op, r *big.Rat) []span[int64] {
	lo, hi, ok := integersWhere(op, r, big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64))
	if !ok {
		return nil
	}
	return []span[int64]{{lo.Int64(), hi.Int64()}}
}

// uintsWhere is intsWhere for uint64s.
func uintsWhere(op Op, r *big.Rat) []span[uint64] {
	lo, hi, ok := integersWhere(op, r, new(big.Int), new(big.Int).SetUint64(math.MaxUint64))
	if !ok {
		return nil
	}
	return []span[uint64]{{lo.Uint64(), hi.Uint64()}}
}

// integersWhere returns the integers of [least, most] that compare so with r; false: none.
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

// floatsWhere returns the float64s that compare so with n.
func floatsWhere(op Op, n Number) []span[float64] {
	// below and above are the floats next to n, or n itself where a float is n. What was written with a point or an exponent means a float.
	f := n.Float
	if n.Integer {
		f = float64(n.Abs)
		if n.Negative {
			f = -f
		}
	}
	below, above := f, f
	switch c := compareNumbers(Number{Float: f}, n); {
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
	return []span[float64]{{lo, hi}}
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
	want := []byte(text)
	return &textTest{match: func(v []byte) bool { return op.holds(bytes.Compare(v, want)) }}
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
