package expr

import (
	"math"
	"sort"

	"github.com/dsistore/dsistore/format/vector"
)

// A nullNode is X IS NULL.
type nullNode struct {
	feature int
	negated bool
}

func (n *nullNode) eval(x *Evaluator) ternary {
	t := x.get()
	null, present := t.yes, t.no
	if n.negated {
		null, present = present, null
	}
	switch c := x.columns[n.feature]; {
	case c == nil:
		null.SetRange(0, x.rows)
	case c.Present == nil:
		present.SetRange(0, x.rows)
	default:
		spread(present, c, c.Present)
		complement(null, present, x.rows)
	}
	return t
}

func (n *nullNode) outcomes(x *pruner) outcomes {
	o := presence(x.stats(n.feature))
	var out outcomes
	if o&canBeUnknown != 0 {
		out |= canBeTrue
	}
	if o&canBeTrue != 0 {
		out |= canBeFalse
	}
	if n.negated {
		return out.not()
	}
	return out
}

// presence returns canBeTrue when a row is present, canBeUnknown when one is null.
func presence(s FieldStats) outcomes {
	switch {
	case s.Unknown:
		return canBeTrue | canBeUnknown
	case s.Stats == nil || s.Stats.NullRows >= s.Rows:
		return canBeUnknown
	case s.Stats.NullRows > 0:
		return canBeTrue | canBeUnknown
	}
	return canBeTrue
}

// A leafNode is a test of a feature's values, its lengths or its elements.
type leafNode struct {
	feature int
	form    form
	negated bool // of a whole value, or of each element
	test    test
}

func (n *leafNode) eval(x *Evaluator) ternary {
	t := x.get()
	c := x.columns[n.feature]
	if c == nil {
		return t
	}
	yes, no := x.slotBitmaps(c.Slots)
	n.slots(yes, c)
	if n.negated && n.form == wholeForm || n.negated && n.form == lengthForm {
		yes, no = no, yes
		complement(yes, no, c.Slots)
	} else {
		complement(no, yes, c.Slots)
	}
	if c.Present != nil {
		for i, p := range c.Present[:len(yes)] {
			yes[i] &= p
			no[i] &= p
		}
	}
	spread(t.yes, c, yes)
	spread(t.no, c, no)
	return t
}

// slotBitmaps returns two empty bitmaps of slots. Borrowed until the next call.
func (x *Evaluator) slotBitmaps(slots int) (a, b vector.Bitmap) {
	n := vector.BitmapWords(slots)
	for i := range x.present {
		if cap(x.present[i]) < n {
			x.present[i] = make(vector.Bitmap, n)
		}
		x.present[i] = x.present[i][:n]
		clear(x.present[i])
	}
	return x.present[0], x.present[1]
}

// complement sets dst, which is empty, to the n bits that are not in b.
func complement(dst, b vector.Bitmap, n int) {
	for i := range dst {
		dst[i] = ^b[i]
	}
	if r := n & 63; r != 0 {
		dst[len(dst)-1] &= 1<<uint(r) - 1
	}
}

// spread sets dst, which is empty, to the rows of c whose slots are in slots.
func spread(dst vector.Bitmap, c *vector.Column, slots vector.Bitmap) {
	if c.Inverse == nil {
		copy(dst, slots[:vector.BitmapWords(c.Rows)])
		return
	}
	inverse := c.Inverse
	for i := range dst {
		word, rows := uint64(0), inverse[64*i:min(64*i+64, len(inverse))]
		for j, s := range rows {
			word |= slots[s>>6] >> (uint(s) & 63) & 1 << uint(j)
		}
		dst[i] = word
	}
}

// slots sets the bits of the slots whose values pass; those of null slots mean nothing. It sets, of a whole value or a length, what is in
// the test whether negated or not.
func (n *leafNode) slots(yes vector.Bitmap, c *vector.Column) {
	if t, ok := n.test.(*textTest); ok {
		for s := range c.Slots {
			lo, hi := c.SlotRange(s)
			if t.match(c.Data[lo:hi]) {
				yes.Set(s)
			}
		}
		return
	}
	t := n.test.(numberTest)
	switch n.form {
	case wholeForm:
		t.each(c, yes)
	case lengthForm:
		for s := range c.Slots {
			lo, hi := c.SlotRange(s)
			if has(t.ints, int64(hi-lo)) {
				yes.Set(s)
			}
		}
	default:
		t.elements(yes, c, n.form == allForm, n.negated)
	}
}

// each sets the bits of the values that are in t.
func (t numberTest) each(c *vector.Column, yes vector.Bitmap) {
	switch {
	case t.domain == uintDomain:
		for i, v := range c.Ints {
			if has(t.uints, uint64(v)) {
				yes.Set(i)
			}
		}
	case t.domain == intDomain:
		inSpans(t.ints, c.Ints, yes)
	case c.Type.Elem == vector.Float32:
		inFloats(t.floats, c.Floats, yes)
	default:
		inSpans(t.floats, c.Doubles, yes)
	}
}

// inSpans sets the bits of the values that are in spans.
func inSpans[T int64 | float64](s []span[T], values []T, yes vector.Bitmap) {
	if len(s) != 1 {
		for i, v := range values {
			if has(s, v) {
				yes.Set(i)
			}
		}
		return
	}
	lo, hi := s[0].lo, s[0].hi
	for i := range yes {
		word := uint64(0)
		for j, v := range values[64*i : min(64*i+64, len(values))] {
			if v >= lo && v <= hi {
				word |= 1 << uint(j)
			}
		}
		yes[i] = word
	}
}

// inFloats is inSpans for float32s, which are compared as the float64s that they are.
func inFloats(s []span[float64], values []float32, yes vector.Bitmap) {
	for i, v := range values {
		if has(s, float64(v)) {
			yes.Set(i)
		}
	}
}

// elements sets the bits of the slots of which an element, or with all each, is in t, or with negated is not. It looks at each value that
// is stored once, though many slots may have it, for those that decide: one that is in for any, one that is not for all.
//
//	values    7 3 9 9 4 3 8          any = 3: the 3s at 1 and 5 decide
//	slots     [----)    [---)        yes: [0,3) has 1, [4,7) has 5
func (t numberTest) elements(yes vector.Bitmap, c *vector.Column, all, negated bool) {
	want := all == negated // what is in t decides for any, what is not for all
	var deciding []int32
	add := func(i int, in bool) {
		if in == want {
			deciding = append(deciding, int32(i))
		}
	}
	switch {
	case t.domain == uintDomain:
		for i, v := range c.Ints {
			add(i, has(t.uints, uint64(v)))
		}
	case t.domain == intDomain:
		for i, v := range c.Ints {
			add(i, has(t.ints, v))
		}
	case c.Type.Elem == vector.Float32:
		for i, v := range c.Floats {
			add(i, has(t.floats, float64(v)))
		}
	default:
		for i, v := range c.Doubles {
			add(i, has(t.floats, v))
		}
	}
	for s := range c.Slots {
		lo, hi := c.SlotRange(s)
		k := sort.Search(len(deciding), func(k int) bool { return int(deciding[k]) >= lo })
		if decided := k < len(deciding) && int(deciding[k]) < hi; decided != all {
			yes.Set(s)
		}
	}
}

func (n *leafNode) outcomes(x *pruner) outcomes {
	s := x.stats(n.feature)
	o := presence(s)
	if o&canBeTrue == 0 {
		return o
	}
	return o&canBeUnknown | n.present(s)
}

// present returns what the condition may be in rows that are not null.
func (n *leafNode) present(s FieldStats) outcomes {
	t, ok := n.test.(numberTest)
	if !ok || s.Unknown {
		return canBeTrue | canBeFalse
	}
	st := s.Stats
	if n.form == lengthForm {
		// No list is longer than all together.
		out := t.within(0, int64(min(st.Elements, math.MaxInt64)))
		if n.negated {
			return out.not()
		}
		return out
	}
	out := canBeTrue | canBeFalse
	if st.HasMinMax {
		out = t.bounded(s)
	}
	if n.negated {
		out = out.not()
	}
	switch {
	case n.form == wholeForm:
		return out
	case st.Elements == 0 && n.form == allForm:
		return canBeTrue
	case st.Elements == 0:
		return canBeFalse
	case n.form == anyForm && out == canBeFalse:
		return canBeFalse
	case n.form == allForm && out == canBeTrue:
		return canBeTrue
	}
	return canBeTrue | canBeFalse
}

// bounded returns whether numbers within the bounds may be in t, and whether they may not.
func (t numberTest) bounded(s FieldStats) outcomes {
	st := s.Stats
	switch {
	case t.domain == intDomain:
		return t.within(st.MinInt, st.MaxInt)
	case t.domain == uintDomain:
		return outcomesOf(overlaps(t.uints, uint64(st.MinInt), uint64(st.MaxInt)), covers(t.uints, uint64(st.MinInt), uint64(st.MaxInt)))
	case s.Type.Elem.IsInteger():
		lo, hi := float64(st.MinInt), float64(st.MaxInt)
		return outcomesOf(overlaps(t.floats, lo, hi), covers(t.floats, lo, hi))
	}
	// The bounds say nothing of NaN, which is in no span.
	return outcomesOf(overlaps(t.floats, st.MinFloat, st.MaxFloat), false)
}

func (t numberTest) within(lo, hi int64) outcomes {
	return outcomesOf(overlaps(t.ints, lo, hi), covers(t.ints, lo, hi))
}

func outcomesOf(some, all bool) outcomes {
	switch {
	case all:
		return canBeTrue
	case some:
		return canBeTrue | canBeFalse
	}
	return canBeFalse
}
