package expr

import "strings"

// Op is a comparison.
type Op string

// The comparisons, as they are printed.
const (
	Equal        Op = "="
	NotEqual     Op = "!="
	Less         Op = "<"
	LessEqual    Op = "<="
	Greater      Op = ">"
	GreaterEqual Op = ">="
)

// An orders is the set of orders of two values for which a comparison is true: bit 0 is below, 1 equal, 2 above, and 3
// unordered, which NaN is with every number.
type orders uint8

// noOrder is the order of NaN and a number; others are below 0, 0 and above 0, as -1, 0 and 1.
const noOrder = 2

func (o orders) has(order int) bool { return o>>uint(order+1)&1 != 0 }

// orders returns the orders for which the comparison is true.
func (o Op) orders() orders {
	switch o {
	case Equal:
		return 0b0010
	case NotEqual:
		return 0b1101
	case Less:
		return 0b0001
	case LessEqual:
		return 0b0011
	case Greater:
		return 0b0100
	}
	return 0b0110
}

// flipped is the comparison with its sides exchanged.
func (o Op) flipped() Op {
	switch o {
	case Less:
		return Greater
	case LessEqual:
		return GreaterEqual
	case Greater:
		return Less
	case GreaterEqual:
		return LessEqual
	}
	return o
}

// comparison returns the operator that the token is, or "".
func comparison(t token) Op {
	if t.kind != tokenSymbol {
		return ""
	}
	switch t.text {
	case "==":
		return Equal
	case "<>":
		return NotEqual
	case "=", "!=", "<", "<=", ">", ">=":
		return Op(t.text)
	}
	return ""
}

// Compare is Left Op Right.
type Compare struct {
	Left  Operand
	Op    Op
	Right Operand
}

// In is true when X equals one of List, which has an entry or more; with Negated, when it equals none.
type In struct {
	X       Operand
	Negated bool
	List    []*Literal
}

// Between is true when X is at least Low and at most High; with Negated, when it is not.
type Between struct {
	X         Operand
	Negated   bool
	Low, High Operand
}

func (e *Compare) String() string { return text(e) }
func (e *In) String() string      { return text(e) }
func (e *Between) String() string { return text(e) }

func (e *Compare) print(b *strings.Builder, _ precedence) {
	e.Left.operand(b)
	b.WriteString(" " + string(e.Op) + " ")
	e.Right.operand(b)
}

func (e *In) print(b *strings.Builder, _ precedence) {
	e.X.operand(b)
	b.WriteString(not(e.Negated) + " IN (")
	for i, l := range e.List {
		if i > 0 {
			b.WriteString(", ")
		}
		l.operand(b)
	}
	b.WriteByte(')')
}

func (e *Between) print(b *strings.Builder, _ precedence) {
	e.X.operand(b)
	b.WriteString(not(e.Negated) + " BETWEEN ")
	e.Low.operand(b)
	b.WriteString(" AND ")
	e.High.operand(b)
}

func (p *parser) in(x Operand, negated bool) Expr {
	p.symbol("(", "after IN")
	e := &In{X: x, Negated: negated}
	for p.err == nil {
		e.List = append(e.List, p.literal(" in the list of IN"))
		if p.token.isSymbol(")") {
			p.advance()
			break
		}
		p.symbol(",", "or \")\" in the list of IN")
	}
	return e
}

func (p *parser) between(x Operand, negated bool) Expr {
	low := p.operand()
	if !p.accept("AND") {
		p.fail("want AND between the two ends of BETWEEN, found %s", p.token.describe())
	}
	high := p.operand()
	p.noElements(low, "BETWEEN")
	p.noElements(high, "BETWEEN")
	return &Between{x, negated, low, high}
}

func (e *Compare) operands(visit func(Operand)) { visit(e.Left); visit(e.Right) }
func (e *In) operands(visit func(Operand))      { visit(e.X) }
func (e *Between) operands(visit func(Operand)) { visit(e.X); visit(e.Low); visit(e.High) }

func (e *Compare) bind(b *binder) (node, error) { return b.compare(e.Left, e.Op, e.Right) }

func (e *In) bind(b *binder) (node, error) { return b.in(e.X, e.List, e.Negated) }

// bind makes the two comparisons of BETWEEN. Of elements of a list they are made of each element by itself.
func (e *Between) bind(b *binder) (node, error) {
	low, okLow := e.Low.(*Literal)
	high, okHigh := e.High.(*Literal)
	switch q, elements := e.X.(*Quantified); {
	case okLow && okHigh && b.isFeature(e.X):
		s, err := b.subject(e.X)
		if err != nil {
			return nil, err
		}
		from, err := b.values(s, GreaterEqual, low)
		if err != nil {
			return nil, err
		}
		to, err := b.values(s, LessEqual, high)
		if err != nil {
			return nil, err
		}
		return s.leaf(e.Negated, from.and(to)), nil
	case elements && b.isFeature(q):
		return nil, b.fail(q.offset(), "%s is compared with values, not with features, by BETWEEN", q)
	}
	from, err := b.compare(e.X, GreaterEqual, e.Low)
	if err != nil {
		return nil, err
	}
	to, err := b.compare(e.X, LessEqual, e.High)
	if err != nil {
		return nil, err
	}
	return negate(e.Negated, &chainNode{terms: []node{from, to}}), nil
}

// compare types a comparison. That of a feature with a constant is a leaf, which statistics may decide.
func (b *binder) compare(left Operand, op Op, right Operand) (node, error) {
	if _, constant := left.(*Literal); constant {
		if _, both := right.(*Literal); !both {
			left, op, right = right, op.flipped(), left
		}
	}
	if l, ok := right.(*Literal); ok && b.isFeature(left) {
		if op == NotEqual {
			return b.in(left, []*Literal{l}, true)
		}
		s, err := b.subject(left)
		if err != nil {
			return nil, err
		}
		t, err := b.values(s, op, l)
		if err != nil {
			return nil, err
		}
		return s.leaf(false, t), nil
	}
	return b.compareScalars(left, op, right)
}

// in types X IN a list.
func (b *binder) in(x Operand, list []*Literal, negated bool) (node, error) {
	if !b.isFeature(x) {
		return b.scalarIn(x, list, negated)
	}
	s, err := b.subject(x)
	if err != nil {
		return nil, err
	}
	var t test
	for _, l := range list {
		one, err := b.values(s, Equal, l)
		if err != nil {
			return nil, err
		}
		if t == nil {
			t = one
		} else {
			t = t.or(one)
		}
	}
	return s.leaf(negated, t), nil
}
