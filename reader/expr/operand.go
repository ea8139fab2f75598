package expr

import (
	"strconv"
	"strings"
)

// A Name is a feature or a partition key. As an Expr it is a value that is itself true or false.
type Name struct {
	Name   string
	Offset int // in the text
}

// Len is the number of elements of a list.
type Len struct{ List *Name }

// Quantified stands for the elements of a list: the condition holds for one, or with All for each.
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

// A Literal is a constant. As an Expr it is TRUE or FALSE.
type Literal struct {
	Kind   LiteralKind
	Text   string // StringLiteral
	Number Number // NumberLiteral
	Bool   bool   // BoolLiteral
	Offset int    // in the text
}

func (e *Name) String() string       { return text(e) }
func (e *Literal) String() string    { return text(e) }
func (e *Len) String() string        { return operandText(e) }
func (e *Quantified) String() string { return operandText(e) }

func (e *Name) print(b *strings.Builder, _ precedence)    { e.operand(b) }
func (e *Literal) print(b *strings.Builder, _ precedence) { e.operand(b) }

func (e *Name) operand(b *strings.Builder) {
	if isPlainName(e.Name) {
		b.WriteString(e.Name)
		return
	}
	quote(b, e.Name, '"')
}

func (e *Len) operand(b *strings.Builder) { b.WriteString("len(" + e.List.String() + ")") }

func (e *Quantified) operand(b *strings.Builder) {
	function := "any("
	if e.All {
		function = "all("
	}
	b.WriteString(function + e.List.String() + ")")
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

func (e *Name) names(visit func(*Name))       { visit(e) }
func (e *Literal) names(func(*Name))          {}
func (e *Len) names(visit func(*Name))        { visit(e.List) }
func (e *Quantified) names(visit func(*Name)) { visit(e.List) }

func (e *Name) operands(visit func(Operand)) { visit(e) }
func (e *Literal) operands(func(Operand))    {}

func (e *Name) bind(b *binder) (node, error) {
	if b.fields[e.Name].Partition {
		return b.compare(e, Equal, &Literal{Kind: BoolLiteral, Bool: true, Offset: e.Offset})
	}
	s, err := b.subject(e)
	if err != nil {
		return nil, err
	}
	if s.class != boolClass {
		return nil, b.fail(e.Offset, "%s is %v, not true or false: compare it with something", e, s.field.Type)
	}
	return s.leaf(false, spans[int64]{{1, 1}}), nil
}

func (e *Literal) bind(*binder) (node, error) {
	result := truthOf(e.Bool)
	return &scalarNode{truth: func(*input, int) truth { return result }}, nil
}
