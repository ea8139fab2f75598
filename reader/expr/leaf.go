package expr

import (
	"math"

	"github.com/dsistore/dsistore/format/vector"
)

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
	c := x.in.columns[n.feature]
	if c == nil {
		return t
	}
	yes, no := x.slotBitmaps(c.Slots)
	n.slots(x, yes, c)
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

// complement sets dst, which is empty or b itself, to the n bits that are not in b.
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

// slots sets the bits of the slots whose values pass the test. Bits of null slots have no meaning. For whole values and
// lengths it ignores negated.
func (n *leafNode) slots(x *Evaluator, yes vector.Bitmap, c *vector.Column) {
	switch n.form {
	case wholeForm:
		n.test.mark(c, yes)
	case lengthForm:
		lengths := n.test.(spans[int64])
		for s := range c.Slots {
			lo, hi := c.SlotRange(s)
			if lengths.has(int64(hi - lo)) {
				yes.Set(s)
			}
		}
	default:
		n.elements(x, yes, c)
	}
}

// elements sets the bits of the slots with an element that passes the test or, with all, of which each does. negated:
// fails instead of passes. It tests each stored value once, though many slots may have it.
//
//	values    7 3 9 9 4 3 8          any = 3: the 3s at 1 and 5 decide
//	slots     [----)    [---)        yes: [0,3) has 1, [4,7) has 5
func (n *leafNode) elements(x *Evaluator, yes vector.Bitmap, c *vector.Column) {
	count := c.Elements()
	deciding := x.valueBitmap(count)
	n.test.mark(c, deciding)
	all := n.form == allForm
	if all != n.negated { // a value that is not in the test decides
		complement(deciding, deciding, count)
	}
	for s := range c.Slots {
		lo, hi := c.SlotRange(s)
		if anySet(deciding, lo, hi) != all {
			yes.Set(s)
		}
	}
}

// anySet reports whether one of the bits [lo, hi) is set.
func anySet(b vector.Bitmap, lo, hi int) bool {
	for lo < hi {
		word := b[lo>>6] >> (uint(lo) & 63)
		next := lo&^63 + 64
		if next > hi {
			word &= 1<<uint(hi-lo) - 1
		}
		if word != 0 {
			return true
		}
		lo = next
	}
	return false
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
	if s.Unknown {
		return canBeTrue | canBeFalse
	}
	st := s.Stats
	out := canBeTrue | canBeFalse
	switch {
	case n.form == lengthForm: // no list is longer than all lists together
		out = n.test.(spans[int64]).within(0, int64(min(st.Elements, math.MaxInt64)))
	case st.HasMinMax:
		out = n.test.bounded(s)
	}
	if n.negated {
		out = out.not()
	}
	switch {
	case n.form == wholeForm, n.form == lengthForm:
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
