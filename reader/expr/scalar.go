package expr

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// truth is SQL's three-valued logic.
type truth int8

const (
	isFalse   truth = -1
	isUnknown truth = 0
	isTrue    truth = 1
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// An input has the rows over which expressions are evaluated: columns, and the partition of all rows.
type input struct {
	columns   []*vector.Column // by feature; nil: null in every row
	partition catalog.Partition
	slots     bool // "rows" are slots of the only column
}

// A scalar is an expression with a value for each row: a constant, a partition key, a feature, or arithmetic.
type scalar struct {
	class class // of the value

	constant    *Literal
	key         string
	subject     *subject
	op          ArithmeticOp // of arithmetic
	left, right *scalar
}

// scalar types an operand. The operands of arithmetic must be numbers.
func (b *binder) scalar(o Operand) (*scalar, error) {
	switch o := o.(type) {
	case *Literal:
		class := map[LiteralKind]class{StringLiteral: textClass, NumberLiteral: numberClass,
			BoolLiteral: boolClass}[o.Kind]
		return &scalar{class: class, constant: o}, nil
	case *Name:
		if b.fields[o.Name].Partition {
			return &scalar{class: keyClass, key: o.Name}, nil
		}
	case *Arithmetic:
		left, err := b.number(o.Left)
		if err != nil {
			return nil, err
		}
		right, err := b.number(o.Right)
		if err != nil {
			return nil, err
		}
		return &scalar{class: numberClass, op: o.Op, left: left, right: right}, nil
	}
	s, err := b.subject(o)
	if err != nil {
		return nil, err
	}
	return &scalar{class: s.class, subject: s}, nil
}

// number types an operand of arithmetic.
func (b *binder) number(o Operand) (*scalar, error) {
	if q, ok := o.(*Quantified); ok {
		return nil, b.fail(q.offset(), "%s is compared with values, not with what is computed", q)
	}
	s, err := b.scalar(o)
	switch {
	case err != nil || s.class == numberClass:
		return s, err
	case s.constant != nil:
		return nil, b.fail(o.offset(), "%s is compared with a number", o)
	case s.class == keyClass:
		return nil, b.fail(o.offset(), "nothing is computed from partition values, which are text: %s", o)
	}
	return nil, b.fail(o.offset(), "%s is %s: only numbers are computed with", o, s.subject.typeName())
}

// number returns the number of a row; false: it is null. A bool is 0 or 1.
func (s *scalar) number(in *input, at int) (Number, bool) {
	switch {
	case s.op != "":
		a, ok := s.left.number(in, at)
		if !ok {
			return a, false
		}
		b, ok := s.right.number(in, at)
		if !ok {
			return b, false
		}
		return s.op.of(a, b)
	case s.subject != nil:
		c, lo, hi := s.values(in, at)
		if c == nil {
			return Number{}, false
		}
		if s.subject.form == lengthForm {
			return Number{Integer: true, Abs: uint64(hi - lo)}, true
		}
		return numberAt(c, lo), true
	case s.constant == nil:
		v, ok := s.text(in)
		if !ok {
			return Number{}, false
		}
		if s.class != boolClass {
			return readNumber(string(v))
		}
		yes := bytes.EqualFold(v, []byte("true"))
		return boolNumber(yes), yes || bytes.EqualFold(v, []byte("false"))
	case s.constant.Kind == BoolLiteral:
		return boolNumber(s.constant.Bool), true
	}
	return s.constant.Number, true
}

// text returns a constant, or the value of a partition key; false: it is null.
func (s *scalar) text(in *input) ([]byte, bool) {
	if s.constant != nil {
		return []byte(s.constant.Text), true
	}
	i := slices.IndexFunc(in.partition, func(v catalog.PartitionValue) bool { return v.Key == s.key && !v.Null })
	if i < 0 {
		return nil, false
	}
	return []byte(in.partition[i].Value), true
}

// values returns the values of a row of the feature in its column; nil: the row is null.
func (s *scalar) values(in *input, at int) (c *vector.Column, lo, hi int) {
	c = in.columns[s.subject.feature]
	if c == nil {
		return nil, 0, 0
	}
	if !in.slots {
		at = c.Slot(at)
	}
	if c.Present != nil && !c.Present.Get(at) {
		return nil, 0, 0
	}
	lo, hi = c.SlotRange(at)
	return c, lo, hi
}

// isInteger reports whether the values are int64s in a column.
func (s *scalar) isInteger() bool {
	f := s.subject
	return f != nil && f.form == wholeForm && f.elem.IsInteger() && f.elem != vector.Uint64
}

func (s *scalar) isNull(in *input, at int) bool {
	if s.class == numberClass {
		_, ok := s.number(in, at)
		return !ok
	}
	_, ok := s.text(in)
	return !ok
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

// compareScalars types a comparison of two values, of which at most the left one is the elements of a list.
func (b *binder) compareScalars(left Operand, op Op, right Operand) (node, error) {
	truth, l, r, err := b.scalarComparison(left, op, right)
	if err != nil {
		return nil, err
	}
	return newScalarNode(isUnknown, truth, l, r), nil
}

// scalarIn types equality of a value that is no feature with one of a list.
func (b *binder) scalarIn(x Operand, list []*Literal, negated bool) (node, error) {
	var of *scalar
	each := make([]func(*input, int) truth, len(list))
	for i, l := range list {
		var err error
		if each[i], of, _, err = b.scalarComparison(x, Equal, l); err != nil {
			return nil, err
		}
	}
	return negate(negated, newScalarNode(isUnknown, func(in *input, at int) truth {
		out := isFalse
		for _, equal := range each {
			if out = max(out, equal(in, at)); out == isTrue {
				break
			}
		}
		return out
	}, of)), nil
}

func isComputed(o Operand) bool {
	_, ok := o.(*Arithmetic)
	return ok
}

// scalarComparison types the sides of a comparison, and returns it.
func (b *binder) scalarComparison(left Operand, op Op, right Operand) (is func(*input, int) truth, l, r *scalar,
	err error) {
	side := b.scalar
	if isComputed(left) || isComputed(right) {
		side = b.number
	}
	if l, err = side(left); err != nil {
		return nil, nil, nil, err
	}
	if r, err = side(right); err != nil {
		return nil, nil, nil, err
	}
	switch {
	case l.class == keyClass && r.class == keyClass:
		return l.compareKeys(op, r), l, r, nil
	case l.class == keyClass:
		l.class = r.class
	case r.class == keyClass:
		r.class = l.class
	case l.class == r.class && (l.subject == nil || r.subject == nil || l.subject.logical == r.subject.logical):
	case l.constant != nil && r.constant != nil:
		return nil, nil, nil, b.fail(right.offset(), "%s and %s are of different types", left, right)
	default:
		return nil, nil, nil, b.fail(right.offset(), "%s and %s are of different types: %s and %s", left, right,
			l.subject.typeName(), r.subject.typeName())
	}
	switch {
	case l.class == textClass:
		return l.compareTexts(op, r), l, r, nil
	case l.subject != nil && (l.subject.form == anyForm || l.subject.form == allForm):
		return l.compareElements(op, r), l, r, nil
	}
	return l.compareNumbers(op, r), l, r, nil
}

func (s *scalar) compareTexts(op Op, r *scalar) func(*input, int) truth {
	orders := op.orders()
	// and so is the other: a feature is compared with a constant by a leaf, and with no partition key
	if s.subject != nil {
		return func(in *input, at int) truth {
			a, lo, hi := s.values(in, at)
			b, from, to := r.values(in, at)
			if a == nil || b == nil {
				return isUnknown
			}
			return truthOf(orders.has(bytes.Compare(a.Data[lo:hi], b.Data[from:to])))
		}
	}
	return func(in *input, at int) truth {
		a, okA := s.text(in)
		b, okB := r.text(in)
		if !okA || !okB {
			return isUnknown
		}
		return truthOf(orders.has(bytes.Compare(a, b)))
	}
}

func (s *scalar) compareNumbers(op Op, r *scalar) func(*input, int) truth {
	orders := op.orders()
	if s.isInteger() && r.isInteger() { // 10 ns per row instead of 75 as Numbers
		return func(in *input, at int) truth {
			a, i, _ := s.values(in, at)
			b, j, _ := r.values(in, at)
			if a == nil || b == nil {
				return isUnknown
			}
			return truthOf(orders.has(cmp.Compare(a.Ints[i], b.Ints[j])))
		}
	}
	return func(in *input, at int) truth {
		a, ok := s.number(in, at)
		if !ok {
			return isUnknown
		}
		b, ok := r.number(in, at)
		if !ok {
			return isUnknown
		}
		return truthOf(orders.has(compareNumbers(&a, &b)))
	}
}

// compareElements compares the elements of a list: one that passes decides any, one that fails all.
func (s *scalar) compareElements(op Op, r *scalar) func(*input, int) truth {
	orders, any := op.orders(), s.subject.form == anyForm
	return func(in *input, at int) truth {
		c, lo, hi := s.values(in, at)
		b, ok := r.number(in, at)
		if c == nil || !ok {
			return isUnknown
		}
		for i := lo; i < hi; i++ {
			if a := numberAt(c, i); orders.has(compareNumbers(&a, &b)) == any {
				return truthOf(any)
			}
		}
		return truthOf(!any)
	}
}

// compareKeys compares partition keys: as numbers when both are.
func (s *scalar) compareKeys(op Op, r *scalar) func(*input, int) truth {
	numbers, texts := s.compareNumbers(op, r), s.compareTexts(op, r)
	return func(in *input, at int) truth {
		if t := numbers(in, at); t != isUnknown {
			return t
		}
		return texts(in, at)
	}
}

// A scalarNode is a condition on any scalars, evaluated row by row. With one feature it is evaluated once per slot,
// without features once.
type scalarNode struct {
	truth    func(in *input, at int) truth
	ofNull   truth // its value if a scalar is null
	computed bool  // so that null may come of what is not null
	features []int
}

func newScalarNode(ofNull truth, truth func(*input, int) truth, about ...*scalar) *scalarNode {
	n := &scalarNode{truth: truth, ofNull: ofNull}
	for _, s := range about {
		n.add(s)
	}
	return n
}

func (n *scalarNode) add(s *scalar) {
	switch {
	case s.op != "":
		n.computed = true
		n.add(s.left)
		n.add(s.right)
	case s.subject != nil && !slices.Contains(n.features, s.subject.feature):
		n.features = append(n.features, s.subject.feature)
	}
}

func (n *scalarNode) eval(x *Evaluator) ternary {
	if len(n.features) == 0 {
		return x.constant(n.truth(&x.in, 0))
	}
	t := x.get()
	if len(n.features) != 1 || x.in.columns[n.features[0]] == nil {
		n.fill(&x.in, t.yes, t.no, x.rows)
		return t
	}
	c := x.in.columns[n.features[0]]
	yes, no := x.slotBitmaps(c.Slots)
	x.in.slots = true
	n.fill(&x.in, yes, no, c.Slots)
	x.in.slots = false
	spread(t.yes, c, yes)
	spread(t.no, c, no)
	return t
}

func (n *scalarNode) fill(in *input, yes, no vector.Bitmap, count int) {
	for i := range count {
		switch n.truth(in, i) {
		case isTrue:
			yes.Set(i)
		case isFalse:
			no.Set(i)
		}
	}
}

// outcomes uses only the statistics of nulls.
func (n *scalarNode) outcomes(x *pruner) outcomes {
	if len(n.features) == 0 {
		return outcomeOf(n.truth(&input{partition: x.partition}, 0))
	}
	known, null := true, n.computed
	for _, f := range n.features {
		o := presence(x.stats(f))
		known = known && o&canBeTrue != 0
		null = null || o&canBeUnknown != 0
	}
	var out outcomes
	if known {
		out = canBeTrue | canBeFalse
	}
	if null {
		out |= outcomeOf(n.ofNull)
	}
	return out
}
