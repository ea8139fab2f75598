package expr

import (
	"bytes"

	"github.com/dsistore/dsistore/format/vector"
)

// A pairNode compares two features, row by row. The left one may be the elements of a list, the right one is none.
type pairNode struct {
	op          Op
	left, right *subject
}

// pair types the comparison of two features.
func (b *binder) pair(left Operand, l *subject, op Op, right Operand, r *subject) (node, error) {
	if l.class != r.class || l.logical != r.logical {
		return nil, b.fail(right.offset(), "%s and %s are of different types: %s and %s", left, right, l.typeName(), r.typeName())
	}
	return &pairNode{op, l, r}, nil
}

// typeName names the type of what the subject compares.
func (s *subject) typeName() string {
	switch {
	case s.form == lengthForm:
		return "a length"
	case s.logical.class != 0:
		return s.field.Logical
	}
	return s.field.Type.String()
}

func (n *pairNode) eval(x *Evaluator) ternary {
	t := x.get()
	a, b := x.columns[n.left.feature], x.columns[n.right.feature]
	if a == nil || b == nil {
		return t
	}
	for row := range x.rows {
		if a.IsNull(row) || b.IsNull(row) {
			continue
		}
		if n.holds(a, b, a.Slot(row), b.Slot(row)) {
			t.yes.Set(row)
		} else {
			t.no.Set(row)
		}
	}
	return t
}

func (n *pairNode) holds(a, b *vector.Column, slotA, slotB int) bool {
	if n.left.class == textClass {
		loA, hiA := a.SlotRange(slotA)
		loB, hiB := b.SlotRange(slotB)
		return n.op.holds(bytes.Compare(a.Data[loA:hiA], b.Data[loB:hiB]))
	}
	loB, hiB := b.SlotRange(slotB)
	right := Number{Integer: true, Abs: uint64(hiB - loB)}
	if n.right.form == wholeForm {
		right = numberAt(b, loB)
	}
	lo, hi := a.SlotRange(slotA)
	switch n.left.form {
	case lengthForm:
		return compareFloating(Number{Integer: true, Abs: uint64(hi - lo)}, n.op, right)
	case anyForm:
		for i := lo; i < hi; i++ {
			if compareFloating(numberAt(a, i), n.op, right) {
				return true
			}
		}
		return false
	case allForm:
		for i := lo; i < hi; i++ {
			if !compareFloating(numberAt(a, i), n.op, right) {
				return false
			}
		}
		return true
	}
	return compareFloating(numberAt(a, lo), n.op, right)
}

// compareFloating compares numbers, NaN among them.
func compareFloating(a Number, op Op, b Number) bool {
	if a.Float != a.Float || b.Float != b.Float {
		return op == NotEqual
	}
	return op.holds(compareNumbers(a, b))
}

// numberAt returns value i of a column of numbers.
func numberAt(c *vector.Column, i int) Number {
	switch {
	case c.Type.Elem == vector.Uint64:
		return Number{Integer: true, Abs: uint64(c.Ints[i])}
	case c.Type.Elem.IsInteger():
		v := c.Ints[i]
		if v < 0 {
			return Number{Integer: true, Negative: true, Abs: -uint64(v)}
		}
		return Number{Integer: true, Abs: uint64(v)}
	case c.Type.Elem == vector.Float32:
		return Number{Float: float64(c.Floats[i])}
	}
	return Number{Float: c.Doubles[i]}
}

func (n *pairNode) outcomes(x *pruner) outcomes {
	a, b := presence(x.stats(n.left.feature)), presence(x.stats(n.right.feature))
	out := (a | b) & canBeUnknown
	if a&b&canBeTrue != 0 {
		out |= canBeTrue | canBeFalse
	}
	return out
}
