package expr

import (
	"slices"
	"strings"
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

// Arithmetic is the number Left Op Right.
//
//   - Integers are added, subtracted and multiplied exactly; a result beyond 64 bits and a sign is null.
//   - With a float, and in every division, both sides and the result are float64, with infinities and NaN as in
//     IEEE 754.
//   - Division by 0 is null, and so is any result computed from null.
//
// Parse computes expressions of literals, so Left and Right are never both Literals.
type Arithmetic struct {
	Left  Operand
	Op    ArithmeticOp
	Right Operand
}

func (e *Arithmetic) String() string { return operandText(e) }
func (e *Arithmetic) offset() int    { return e.Left.offset() }

func (e *Arithmetic) names(visit func(*Name)) { e.Left.names(visit); e.Right.names(visit) }

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

// operand parses sums and differences of products.
func (p *parser) operand() Operand { return p.chain(p.product, Plus, Minus) }
func (p *parser) product() Operand { return p.chain(p.factor, Times, Divide) }

// chain parses operands joined by one of two operators, and computes constant ones.
func (p *parser) chain(next func() Operand, a, b ArithmeticOp) Operand {
	left := next()
	for p.token.isSymbol(string(a)) || p.token.isSymbol(string(b)) {
		op := p.token
		p.operator()
		left = p.compute(left, op, next())
	}
	return left
}

// operator consumes the current token, an operator.
func (p *parser) operator() {
	// The tree is as deep as there are operators.
	if p.operators++; p.operators > MaxOperators {
		p.fail("more than %d of +, -, * and /", MaxOperators)
	}
	p.advance()
}

func (p *parser) compute(left Operand, op token, right Operand) Operand {
	for _, o := range []Operand{left, right} {
		switch o := o.(type) {
		case *Quantified:
			p.failAt(o.offset(), "%s stands on the left of a comparison, and nothing is computed from it", o)
		case *Literal:
			if o.Kind != NumberLiteral {
				p.failAt(o.Offset, "%s is no number to compute with", shorten(o.String()))
			}
		}
	}
	a, okA := left.(*Literal)
	b, okB := right.(*Literal)
	if !okA || !okB {
		return &Arithmetic{left, ArithmeticOp(op.text), right}
	}
	if op.text == string(Minus) {
		p.failAt(op.offset, "a constant is subtracted from a constant: write the difference, and quote dates and "+
			"other text as '...'")
	}
	return p.constant(a, op, b)
}

// constant computes a literal, which can be written as one.
func (p *parser) constant(a *Literal, op token, b *Literal) Operand {
	n, ok := ArithmeticOp(op.text).of(a.Number, b.Number)
	if !ok || n.Float-n.Float != 0 || n.Negative && n.Abs > 1<<63 {
		p.failAt(op.offset, "%s %s %s is no number of 64 bits", a, op.text, b)
	}
	return &Literal{Kind: NumberLiteral, Number: n, Offset: a.Offset}
}

// factor parses an atom, an operand in parentheses, or an operand with a sign.
func (p *parser) factor() Operand {
	switch {
	case p.token.isSymbol("("):
		return inParentheses(p, p.operand, p.notInOperand)
	case p.token.isSymbol("-"), p.token.isSymbol("+"):
		if p.peek().kind == tokenNumber {
			break // a literal with its sign
		}
		sign := p.token
		p.enter()
		defer p.leave()
		p.operator()
		if k := p.token.kind; k == tokenEnd || k == tokenString || k == tokenSymbol && !p.token.isSymbol("(") {
			p.fail("want a number after %s, found %s", sign.text, p.token.describe())
		}
		x := p.factor()
		if sign.text == "+" {
			return x
		}
		zero := &Literal{Kind: NumberLiteral, Number: Number{Integer: true}, Offset: sign.offset}
		if l, ok := x.(*Literal); ok && l.Kind == NumberLiteral {
			return p.constant(zero, sign, l) // -(60 * 60) is no date
		}
		return p.compute(zero, sign, x)
	}
	return p.atom()
}

// notInOperand returns the error for the token after an operand in parentheses.
func (p *parser) notInOperand() {
	if comparison(p.token) != "" {
		p.fail("a condition cannot be compared: join two with AND")
	}
	p.fail("want \")\", + - * or /, found %s", p.token.describe())
}

// opensOperand reports whether the parenthesis in hand is around an operand: what follows the one that closes
// it is what follows an operand, and not what follows a condition.
func (p *parser) opensOperand() bool {
	if p.groups == nil {
		p.groups = operandGroups(p.lexer, p.token)
	}
	return p.groups[p.token.offset]
}

// operandGroups finds the parentheses around operands, by where they open, from a token on. What is no token
// ends it: the parser reports it.
func operandGroups(ahead lexer, t token) map[int]bool {
	out := map[int]bool{}
	var open []int
	closed := -1 // the parenthesis that closed just before
	var err error
	for ; err == nil && t.kind != tokenEnd; t, err = ahead.next() {
		if closed >= 0 && followsOperand(t) {
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

// followsOperand reports whether the token follows an operand, and no condition.
func followsOperand(t token) bool {
	if comparison(t) != "" || slices.ContainsFunc([]string{"+", "-", "*", "/"}, t.isSymbol) || t.is("IS") ||
		t.is("NOT") {
		return true
	}
	for _, c := range conditions {
		if t.is(c.keyword) {
			return true
		}
	}
	return false
}
