package expr

import "strings"

// An Expr is a parsed expression: *And, *Or, *Not, or a condition: *Compare, *In, *Between, *Like,
// *RegexpMatches, *IsNull, *Contains, *Sample, *Name or *Literal. String prints it so that Parse gives an equal
// one back. Do not write to one.
//
// The methods are all that the package asks of a condition. One that lacks a method does not compile, so that a new
// condition is its type and an entry of conditions or functions (parser.go).
type Expr interface {
	String() string
	// print appends the text, in parentheses where it binds less tightly than outer.
	print(b *strings.Builder, outer precedence)
	// operands calls visit for the operands of the expression, in the order of the text.
	operands(visit func(Operand))
	// bind types the expression.
	bind(b *binder) (node, error)
}

// An Operand is what a condition compares: *Name, *Literal, *Len, *Quantified or *Arithmetic.
type Operand interface {
	String() string
	operand(b *strings.Builder)
	// offset is the position of the operand in the text that it was parsed from.
	offset() int
	// names calls visit for the names in the operand, in order.
	names(visit func(*Name))
}

// precedence says how tightly an expression binds; a looser one inside a tighter one is printed in parentheses.
type precedence int

const (
	looseOr precedence = iota
	looseAnd
	looseNot
	tight
)

// Or is true when a term is. It has two terms or more.
type Or struct{ Terms []Expr }

// And is true when every term is. It has two terms or more.
type And struct{ Terms []Expr }

// Not is true when X is false.
type Not struct{ X Expr }

func (e *Or) String() string  { return text(e) }
func (e *And) String() string { return text(e) }
func (e *Not) String() string { return text(e) }

func text(e Expr) string {
	var b strings.Builder
	e.print(&b, looseOr)
	return b.String()
}

func operandText(o Operand) string {
	var b strings.Builder
	o.operand(&b)
	return b.String()
}

func (e *Or) print(b *strings.Builder, outer precedence) {
	printTerms(b, e.Terms, " OR ", looseOr, outer)
}
func (e *And) print(b *strings.Builder, outer precedence) {
	printTerms(b, e.Terms, " AND ", looseAnd, outer)
}

// printTerms prints each term tighter than own, so that a chain inside a chain of its own kind keeps its parentheses.
func printTerms(b *strings.Builder, terms []Expr, between string, own, outer precedence) {
	if outer > own {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	for i, t := range terms {
		if i > 0 {
			b.WriteString(between)
		}
		t.print(b, own+1)
	}
}

func (e *Not) print(b *strings.Builder, outer precedence) {
	if outer > looseNot {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	b.WriteString("NOT ")
	e.X.print(b, looseNot)
}

func (e *Or) operands(visit func(Operand)) {
	for _, t := range e.Terms {
		t.operands(visit)
	}
}

func (e *And) operands(visit func(Operand)) {
	for _, t := range e.Terms {
		t.operands(visit)
	}
}

func (e *Not) operands(visit func(Operand)) { e.X.operands(visit) }

func (e *Or) bind(b *binder) (node, error)  { return b.chain(e.Terms, true) }
func (e *And) bind(b *binder) (node, error) { return b.chain(e.Terms, false) }

func (e *Not) bind(b *binder) (node, error) {
	x, err := b.condition(e.X)
	return negate(true, x), err
}

// quote writes s between quotes, its own quotes doubled.
func quote(b *strings.Builder, s string, q byte) {
	b.WriteByte(q)
	b.WriteString(strings.ReplaceAll(s, string(q), string(q)+string(q)))
	b.WriteByte(q)
}

func not(negated bool) string {
	if negated {
		return " NOT"
	}
	return ""
}
