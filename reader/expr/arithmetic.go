package expr

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// An ArithmeticOp computes a number from two.
type ArithmeticOp string

// The operators, as they are printed.
const (
	Plus   ArithmeticOp = "+"
	Minus  ArithmeticOp = "-"
	Times  ArithmeticOp = "*"
	Divide ArithmeticOp = "/"
)

// Arithmetic is the number that Left Op Right gives.
//
//   - Integers are added, subtracted and multiplied exactly; what is beyond 64 bits and a sign is null.
//   - With a float, and in every division, both sides are float64s, and so is what they give, infinities and NaN as IEEE 754 has them.
//   - What is divided by 0, whatever it is, is null, and so is what is computed from null.
//
// Parse computes what has no name: both sides are numbers, features or Arithmetic, not both of them Literals.
type Arithmetic struct {
	Left  Operand
	Op    ArithmeticOp
	Right Operand
}

func (e *Arithmetic) String() string { return operandText(e) }
func (e *Arithmetic) offset() int    { return e.Left.offset() }

func (o ArithmeticOp) binds() int {
	if o == Plus || o == Minus {
		return 0
	}
	return 1
}

func (e *Arithmetic) operand(b *strings.Builder) {
	side := func(o Operand, least int) {
		if x, ok := o.(*Arithmetic); ok && x.Op.binds() < least {
			b.WriteByte('(')
			defer b.WriteByte(')')
		}
		o.operand(b)
	}
	side(e.Left, e.Op.binds())
	b.WriteString(" " + string(e.Op) + " ")
	side(e.Right, e.Op.binds()+1)
}

// operand reads a number that may be computed: products of factors, added and subtracted.
func (p *parser) operand() (Operand, error) {
	left, err := p.product()
	for err == nil && (p.token.isSymbol("+") || p.token.isSymbol("-")) {
		left, err = p.computed(left, p.product)
	}
	return left, err
}

func (p *parser) product() (Operand, error) {
	left, err := p.factor()
	for err == nil && (p.token.isSymbol("*") || p.token.isSymbol("/")) {
		left, err = p.computed(left, p.factor)
	}
	return left, err
}

// computed reads what stands to the right of the operator in hand, and computes what is constant.
func (p *parser) computed(left Operand, next func() (Operand, error)) (Operand, error) {
	op := p.token
	if err := p.operator(); err != nil {
		return nil, err
	}
	right, err := next()
	if err != nil {
		return nil, err
	}
	return p.compute(left, op, right)
}

// operator takes the operator in hand.
func (p *parser) operator() error {
	// The tree of what is computed is as deep as it has operators.
	if p.operators++; p.operators > MaxOperators {
		return p.fail("more than %d of +, -, * and /", MaxOperators)
	}
	return p.advance()
}

func (p *parser) compute(left Operand, op token, right Operand) (Operand, error) {
	for _, o := range []Operand{left, right} {
		switch o := o.(type) {
		case *Quantified:
			return nil, p.lexer.fail(o.offset(), "%s stands on the left of a comparison, and nothing is computed from it", o)
		case *Literal:
			if o.Kind != NumberLiteral {
				return nil, p.lexer.fail(o.Offset, "%s is no number to compute with", shorten(o.String()))
			}
		}
	}
	a, okA := left.(*Literal)
	b, okB := right.(*Literal)
	if !okA || !okB {
		return &Arithmetic{left, ArithmeticOp(op.text), right}, nil
	}
	if op.text == string(Minus) {
		return nil, p.lexer.fail(op.offset, "a constant is subtracted from a constant: write the difference, and quote dates and other text as '...'")
	}
	return p.constant(a, op, b)
}

// constant computes a literal, which can be written as one.
func (p *parser) constant(a *Literal, op token, b *Literal) (Operand, error) {
	n, ok := ArithmeticOp(op.text).of(a.Number, b.Number)
	if !ok || n.Float-n.Float != 0 || n.Negative && n.Abs > 1<<63 {
		return nil, p.lexer.fail(op.offset, "%s %s %s is no number of 64 bits", a, op.text, b)
	}
	return &Literal{Kind: NumberLiteral, Number: n, Offset: a.Offset}, nil
}

// factor reads an operand that is not computed, one in parentheses, or one with a sign.
func (p *parser) factor() (Operand, error) {
	switch {
	case p.token.isSymbol("("):
		return inParentheses(p, p.operand, p.notInOperand)
	case p.token.isSymbol("-"), p.token.isSymbol("+"):
		ahead, err := p.peek()
		if err != nil {
			return nil, err
		}
		if ahead.kind == tokenNumber {
			break // a literal with its sign
		}
		sign := p.token
		if err := p.deeper(); err != nil {
			return nil, err
		}
		defer func() { p.depth-- }()
		if err := p.operator(); err != nil {
			return nil, err
		}
		if k := p.token.kind; k == tokenEnd || k == tokenString || k == tokenSymbol && !p.token.isSymbol("(") {
			return nil, p.fail("want a number after %s, found %s", sign.text, p.token.describe())
		}
		x, err := p.factor()
		if err != nil || sign.text == "+" {
			return x, err
		}
		zero := &Literal{Kind: NumberLiteral, Number: Number{Integer: true}, Offset: sign.offset}
		if l, ok := x.(*Literal); ok && l.Kind == NumberLiteral {
			return p.constant(zero, sign, l) // -(60 * 60) is no date
		}
		return p.compute(zero, sign, x)
	}
	return p.atom()
}

// notInOperand says what is wrong with the token after an operand in parentheses.
func (p *parser) notInOperand() error {
	if comparison(p.token) != "" {
		return p.fail("a condition cannot be compared: join two with AND")
	}
	return p.fail("want \")\", + - * or /, found %s", p.token.describe())
}

// opensOperand reports whether the parenthesis in hand is around an operand: what follows the one that closes it is what follows an operand, and
// not what follows a condition.
func (p *parser) opensOperand() bool {
	if p.groups == nil {
		p.groups = operandGroups(p.lexer, p.token)
	}
	return p.groups[p.token.offset]
}

// operandGroups finds the parentheses around operands, by where they open, from a token on. What is no token ends it: who reads on finds it.
func operandGroups(ahead lexer, t token) map[int]bool {
	out := map[int]bool{}
	var open []int
	closed := -1 // the parenthesis that closed just before
	var err error
	for ; err == nil && t.kind != tokenEnd; t, err = ahead.next() {
		if closed >= 0 && follows(t) {
			out[closed] = true
		}
		closed = -1
		switch {
		case t.isSymbol("("):
			open = append(open, t.offset)
		case t.isSymbol(")") && len(open) > 0:
			closed = open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	return out
}

// follows reports whether the token follows an operand, and no condition.
func follows(t token) bool {
	return comparison(t) != "" || slices.ContainsFunc([]string{"+", "-", "*", "/"}, t.isSymbol) ||
		slices.ContainsFunc([]string{"IS", "IN", "NOT", "BETWEEN", "LIKE"}, t.is)
}

// of computes a number; false: it is null.
func (o ArithmeticOp) of(a, b Number) (Number, bool) {
	if o == Divide || !a.Integer || !b.Integer {
		return o.ofFloats(a.float(), b.float())
	}
	switch o {
	case Times:
		hi, lo := bits.Mul64(a.Abs, b.Abs)
		return Number{Integer: true, Negative: a.Negative != b.Negative && lo > 0, Abs: lo}, hi == 0
	case Minus:
		b.Negative = !b.Negative
	}
	if a.Negative == b.Negative {
		sum, carry := bits.Add64(a.Abs, b.Abs, 0)
		return Number{Integer: true, Negative: a.Negative && sum > 0, Abs: sum}, carry == 0
	}
	if a.Abs < b.Abs {
		a, b = b, a
	}
	n := Number{Integer: true, Abs: a.Abs - b.Abs}
	n.Negative = a.Negative && n.Abs > 0
	return n, true
}

func (o ArithmeticOp) ofFloats(a, b float64) (Number, bool) {
	switch o {
	case Plus:
		a += b
	case Minus:
		a -= b
	case Times:
		a *= b
	case Divide:
		if b == 0 {
			return Number{}, false
		}
		a /= b
	}
	return Number{Float: a}, true
}

// float returns the float64 next to n.
func (n Number) float() float64 {
	switch {
	case !n.Integer:
		return n.Float
	case n.Negative:
		return -float64(n.Abs)
	}
	return float64(n.Abs)
}

// A term gives a number in each row: a constant, of a feature, or computed.
type term struct {
	op          ArithmeticOp // empty: it is not computed
	left, right *term
	subject     *subject // nil: a constant
	constant    Number
}

// term types what a number is computed from, and adds the features among that.
func (b *binder) term(o Operand, features *[]int) (*term, error) {
	switch o := o.(type) {
	case *Literal:
		if o.Kind != NumberLiteral {
			return nil, b.fail(o.Offset, "%s is compared with a number", o)
		}
		return &term{constant: o.Number}, nil
	case *Arithmetic:
		left, err := b.term(o.Left, features)
		if err != nil {
			return nil, err
		}
		right, err := b.term(o.Right, features)
		if err != nil {
			return nil, err
		}
		return &term{op: o.Op, left: left, right: right}, nil
	case *Quantified:
		return nil, b.fail(o.offset(), "%s is compared with values, not with what is computed", o)
	}
	s, err := b.subject(o)
	if err != nil {
		return nil, err
	}
	if s.class != numberClass {
		return nil, b.fail(o.offset(), "%s is %s: only numbers are computed with", o, s.typeName())
	}
	if !slices.Contains(*features, s.feature) {
		*features = append(*features, s.feature)
	}
	return &term{subject: s}, nil
}

// at returns the number in a row, or with slots in a slot; false: it is null.
func (t *term) at(columns []*vector.Column, at int, slots bool) (Number, bool) {
	switch {
	case t.op != "":
		a, ok := t.left.at(columns, at, slots)
		if !ok {
			return a, false
		}
		b, ok := t.right.at(columns, at, slots)
		if !ok {
			return b, false
		}
		return t.op.of(a, b)
	case t.subject == nil:
		return t.constant, true
	}
	c := columns[t.subject.feature]
	if c == nil {
		return Number{}, false
	}
	if !slots {
		at = c.Slot(at)
	}
	if c.Present != nil && !c.Present.Get(at) {
		return Number{}, false
	}
	lo, hi := c.SlotRange(at)
	if t.subject.form == lengthForm {
		return Number{Integer: true, Abs: uint64(hi - lo)}, true
	}
	return numberAt(c, lo), true
}

// A computedNode compares computed numbers, or asks whether one is null.
type computedNode struct {
	left, right *term // right nil: IS NULL
	op          Op
	negated     bool // IS NOT NULL
	features    []int
}

// computed types a condition about what is computed.
func (b *binder) computed(left Operand, op Op, right Operand) (node, error) {
	n := &computedNode{op: op}
	var err error
	if n.left, err = b.term(left, &n.features); err != nil {
		return nil, err
	}
	if right != nil {
		n.right, err = b.term(right, &n.features)
	}
	return n, err
}

func isComputed(o Operand) bool {
	_, ok := o.(*Arithmetic)
	return ok
}

// computedIn is equality of what is computed with one of a list.
func (b *binder) computedIn(e *In) (node, error) {
	n := &chainNode{any: true}
	for _, l := range e.List {
		x, err := b.computed(e.X, Equal, l)
		if err != nil {
			return nil, err
		}
		n.terms = append(n.terms, x)
	}
	if e.Negated {
		return &notNode{n}, nil
	}
	return n, nil
}

func (n *computedNode) truth(columns []*vector.Column, at int, slots bool) truth {
	a, ok := n.left.at(columns, at, slots)
	switch {
	case n.right == nil:
		return truthOf(ok == n.negated)
	case !ok:
		return isUnknown
	}
	b, ok := n.right.at(columns, at, slots)
	if !ok {
		return isUnknown
	}
	return truthOf(compareFloating(a, n.op, b))
}

func (n *computedNode) eval(x *Evaluator) ternary {
	t := x.get()
	fill := func(yes, no vector.Bitmap, count int, slots bool) {
		for i := range count {
			switch n.truth(x.columns, i, slots) {
			case isTrue:
				yes.Set(i)
			case isFalse:
				no.Set(i)
			}
		}
	}
	if len(n.features) != 1 || x.columns[n.features[0]] == nil {
		fill(t.yes, t.no, x.rows, false)
		return t
	}
	// Of one feature: once a slot, however many rows have it.
	c := x.columns[n.features[0]]
	yes, no := x.slotBitmaps(c.Slots)
	fill(yes, no, c.Slots, true)
	spread(t.yes, c, yes)
	spread(t.no, c, no)
	return t
}

// outcomes: statistics say of what is computed only where it is null throughout.
func (n *computedNode) outcomes(x *pruner) outcomes {
	for _, f := range n.features {
		if presence(x.stats(f)) == canBeUnknown {
			if n.right == nil {
				return outcomeOf(truthOf(!n.negated))
			}
			return canBeUnknown
		}
	}
	if n.right == nil {
		return canBeTrue | canBeFalse
	}
	return canBeTrue | canBeFalse | canBeUnknown
}
