package expr

import (
	"math"
	"strconv"
	"strings"
)

// An Expr is a parsed expression: *Or, *And, *Not, *Compare, *In, *Between, *Like, *IsNull, *Contains, *Sample, *Name or *Literal.
// String prints it so that Parse gives an equal one back. Do not write to one.
type Expr interface {
	String() string
	print(b *strings.Builder, outer precedence)
}

// An Operand is what a predicate compares: *Name, *Literal, *Len, *Quantified or *Arithmetic.
type Operand interface {
	String() string
	operand(b *strings.Builder)
	// offset is where the operand stands in the text it was parsed from.
	offset() int
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

// holds says whether the comparison is true of two values whose order is given: below 0, 0 or above 0.
func (o Op) holds(order int) bool {
	switch o {
	case Equal:
		return order == 0
	case NotEqual:
		return order != 0
	case Less:
		return order < 0
	case LessEqual:
		return order <= 0
	case Greater:
		return order > 0
	}
	return order >= 0
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

// Like is true when the string X matches the pattern; with Negated, when it does not.
type Like struct {
	X       Operand
	Negated bool
	Pattern string
}

// IsNull is true when X is null; with Negated, when it is not. It is never unknown.
type IsNull struct {
	X       Operand
	Negated bool
}

// Contains is true when the list holds the value.
type Contains struct {
	List  *Name
	Value *Literal
}

// A Name is a feature or a partition key. As an Expr it is a value that is itself true or false.
type Name struct {
	Name   string
	Offset int // in the text
}

// Len is the number of elements of a list.
type Len struct{ List *Name }

// Quantified stands for the elements of a list: the predicate holds for one, or with All for each.
type Quantified struct {
	All  bool
	List *Name
}

// LiteralKind says what a Literal is.
type LiteralKind int

// The kinds of literals.
const (
	StringLiteral LiteralKind = iota + 1
	NumberLiteral
	BoolLiteral
)

// A Literal is a constant.
type Literal struct {
	Kind   LiteralKind
	Text   string // StringLiteral
	Number Number // NumberLiteral
	Bool   bool   // BoolLiteral
	Offset int    // in the text
}

// A Number is an integer of 64 bits or a float64; integers are exact.
type Number struct {
	// Integer: the number is -Abs or Abs; else it is Float, which is finite.
	Integer  bool
	Negative bool // Integer only; false when Abs is 0
	Abs      uint64
	Float    float64
	// Text, of a number that was written with a point or an exponent, is that number, and Float the float64 next to it: floats are compared
	// with Float, integers and decimals with Text. It is Float's shortest form where that is the same number. Empty: the number is Float itself.
	Text string
}

func (e *Or) String() string         { return text(e) }
func (e *And) String() string        { return text(e) }
func (e *Not) String() string        { return text(e) }
func (e *Compare) String() string    { return text(e) }
func (e *In) String() string         { return text(e) }
func (e *Between) String() string    { return text(e) }
func (e *Like) String() string       { return text(e) }
func (e *IsNull) String() string     { return text(e) }
func (e *Contains) String() string   { return text(e) }
func (e *Name) String() string       { return text(e) }
func (e *Literal) String() string    { return text(e) }
func (e *Len) String() string        { return operandText(e) }
func (e *Quantified) String() string { return operandText(e) }

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

func (e *Compare) print(b *strings.Builder, _ precedence) {
	e.Left.operand(b)
	b.WriteString(" " + string(e.Op) + " ")
	e.Right.operand(b)
}

func not(negated bool) string {
	if negated {
		return " NOT"
	}
	return ""
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

func (e *Like) print(b *strings.Builder, _ precedence) {
	e.X.operand(b)
	b.WriteString(not(e.Negated) + " LIKE ")
	quote(b, e.Pattern, '\'')
}

func (e *IsNull) print(b *strings.Builder, _ precedence) {
	e.X.operand(b)
	b.WriteString(" IS" + not(e.Negated) + " NULL")
}

func (e *Contains) print(b *strings.Builder, _ precedence) {
	b.WriteString("contains(")
	e.List.operand(b)
	b.WriteString(", ")
	e.Value.operand(b)
	b.WriteByte(')')
}

func (e *Name) print(b *strings.Builder, _ precedence)    { e.operand(b) }
func (e *Literal) print(b *strings.Builder, _ precedence) { e.operand(b) }

func (e *Name) operand(b *strings.Builder) {
	if isPlainName(e.Name) {
		b.WriteString(e.Name)
		return
	}
	quote(b, e.Name, '"')
}

func (e *Len) operand(b *strings.Builder) {
	b.WriteString("len(")
	e.List.operand(b)
	b.WriteByte(')')
}

func (e *Quantified) operand(b *strings.Builder) {
	if e.All {
		b.WriteString("all(")
	} else {
		b.WriteString("any(")
	}
	e.List.operand(b)
	b.WriteByte(')')
}

func (e *Literal) operand(b *strings.Builder) {
	switch e.Kind {
	case StringLiteral:
		quote(b, e.Text, '\'')
	case NumberLiteral:
		b.WriteString(e.Number.String())
	case BoolLiteral:
		b.WriteString(strings.ToUpper(strconv.FormatBool(e.Bool)))
	}
}

func (e *Name) offset() int       { return e.Offset }
func (e *Literal) offset() int    { return e.Offset }
func (e *Len) offset() int        { return e.List.Offset }
func (e *Quantified) offset() int { return e.List.Offset }

// quote writes s between quotes, its own quotes doubled.
func quote(b *strings.Builder, s string, q byte) {
	b.WriteByte(q)
	b.WriteString(strings.ReplaceAll(s, string(q), string(q)+string(q)))
	b.WriteByte(q)
}

// String prints n so that it parses to the same kind of number: a float keeps a point or an exponent.
func (n Number) String() string {
	if n.Integer {
		s := strconv.FormatUint(n.Abs, 10)
		if n.Negative {
			s = "-" + s
		}
		return s
	}
	if n.Text != "" {
		return n.Text
	}
	s := strconv.FormatFloat(n.Float, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// compareNumbers returns the order of a and b, exactly, also between an integer and a float.
func compareNumbers(a, b Number) int {
	switch {
	case a.Text != "" && (b.Text != "" || b.Integer), a.Integer && b.Text != "":
		return parseDecimal(a.String()).compare(parseDecimal(b.String()))
	case a.Integer && b.Integer:
		return compareIntegers(a, b)
	case a.Integer:
		return compareIntegerFloat(a, b.Float)
	case b.Integer:
		return -compareIntegerFloat(b, a.Float)
	}
	return order(a.Float < b.Float, a.Float > b.Float)
}

func compareIntegers(a, b Number) int {
	switch {
	case a.Negative != b.Negative:
		return order(a.Negative, b.Negative)
	case a.Negative:
		return order(a.Abs > b.Abs, a.Abs < b.Abs)
	}
	return order(a.Abs < b.Abs, a.Abs > b.Abs)
}

// compareIntegerFloat splits f into its whole part, which a 64-bit integer holds when it is within range, and the rest.
func compareIntegerFloat(n Number, f float64) int {
	const beyond = 1 << 64
	if f >= beyond {
		return -1
	}
	if f <= -beyond {
		return 1
	}
	whole, fraction := math.Modf(f)
	w := Number{Integer: true, Negative: whole < 0, Abs: uint64(math.Abs(whole))}
	if c := compareIntegers(n, w); c != 0 {
		return c
	}
	return order(fraction > 0, fraction < 0)
}

func order(less, greater bool) int {
	switch {
	case less:
		return -1
	case greater:
		return 1
	}
	return 0
}
