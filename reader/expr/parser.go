package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/internal/suggest"
)

// Limits of Parse.
const (
	MaxBytes     = 1 << 20 // of text
	MaxDepth     = 100     // of parentheses and NOTs inside one another
	MaxNodes     = 100_000 // operands, literals and conditions
	MaxOperators = 1000    // of arithmetic
)

// conditions are the conditions that start with a keyword after an operand. parse is called with the token after the
// keyword as the current one.
var conditions []struct {
	keyword string
	parse   func(p *parser, x Operand, negated bool) Expr
}

// functions are the conditions and operands that start with a name and a parenthesis. parse is called with the token
// after the parenthesis as the current one.
var functions []function

type function struct {
	name      string
	condition func(p *parser, offset int) Expr
	operand   func(p *parser) Operand
}

func init() { // the functions refer to the tables
	conditions = []struct {
		keyword string
		parse   func(p *parser, x Operand, negated bool) Expr
	}{
		{"IN", (*parser).in},
		{"BETWEEN", (*parser).between},
		{"LIKE", (*parser).like},
	}
	functions = []function{
		{name: "len", operand: func(p *parser) Operand { return &Len{p.list("len")} }},
		{name: "contains", condition: (*parser).contains},
		{name: "any", operand: func(p *parser) Operand { return &Quantified{false, p.list("any")} }},
		{name: "all", operand: func(p *parser) Operand { return &Quantified{true, p.list("all")} }},
		{name: "sample", condition: (*parser).sample},
		{name: "regexp_matches", condition: (*parser).regexpMatches},
	}
	keywords = []string{"AND", "OR", "NOT", "IS", "NULL", "TRUE", "FALSE"}
	for _, c := range conditions {
		keywords = append(keywords, c.keyword)
	}
}

// keywords are the words that are not names.
var keywords []string

func isKeyword(word string) bool {
	return slices.ContainsFunc(keywords, func(k string) bool { return strings.EqualFold(k, word) })
}

// Parse parses text. Every error is an *Error.
func Parse(text string) (Expr, error) {
	e, _, err := parse(text)
	return e, err
}

// parse is Parse, and returns the offset of the token that it ended with.
func parse(text string) (e Expr, read int, err error) {
	p, err := newParser(text)
	if err != nil {
		return nil, 0, err
	}
	e = p.or()
	if p.token.kind != tokenEnd {
		p.surplus()
	}
	if p.err != nil {
		return nil, p.token.offset, p.err
	}
	return e, p.token.offset, nil
}

// newParser returns a parser of text whose current token is the first.
func newParser(text string) (*parser, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("expression: %d bytes of text: want at most %d", len(text), MaxBytes)
	}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return nil, &Error{Text: text, Offset: i, Reason: fmt.Sprintf("byte 0x%02x is not UTF-8", text[i])}
		}
	}
	p := &parser{lexer: lexer{text: text}}
	p.advance()
	if p.token.kind == tokenEnd {
		p.fail("the expression is empty: want a condition, as in ds = '2026-11-01'")
	}
	return p, p.err
}

// A parser is a recursive-descent parser of the grammar in doc.go, with a current token and one token of look-ahead.
//
// After the first error the current token is always tokenEnd. What methods return after an error is not nil, and has no
// meaning.
type parser struct {
	lexer
	token     token // in hand
	err       error // the first one
	depth     int
	nodes     int
	operators int          // of arithmetic
	groups    map[int]bool // see opensOperand; nil: nobody has asked yet
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.token.offset, format, args...) }

func (p *parser) failAt(offset int, format string, args ...any) {
	if p.err == nil {
		p.stop(p.lexer.fail(offset, format, args...))
	}
}

func (p *parser) stop(err error) {
	p.err, p.token.kind, p.at = err, tokenEnd, len(p.text)
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	t, err := p.next()
	p.token = t
	if err != nil {
		p.stop(err)
	}
}

// accept consumes the keyword if it is the current token.
func (p *parser) accept(keyword string) bool {
	taken := p.token.is(keyword)
	if taken {
		p.advance()
	}
	return taken
}

// peek returns the token after the current one.
func (p *parser) peek() token {
	ahead := p.lexer
	t, err := ahead.next()
	if err != nil {
		p.stop(err)
	}
	return t
}

// symbol consumes a mark; where says what for, in errors.
func (p *parser) symbol(s, where string) {
	if !p.token.isSymbol(s) {
		p.fail("want %q %s, found %s", s, where, p.token.describe())
	}
	p.advance()
}

// surplus returns the error for a token after a complete condition.
func (p *parser) surplus() {
	switch {
	case p.token.isSymbol(")"):
		p.fail("\")\" closes nothing")
	case comparison(p.token) != "":
		p.fail("a condition cannot be compared: join two with AND")
	}
	p.fail("want AND, OR or the end of the expression, found %s", p.token.describe())
}

// node counts one more part of the expression.
func (p *parser) node() {
	if p.nodes++; p.nodes > MaxNodes {
		p.fail("more than %d parts", MaxNodes)
	}
}

// enter starts a nested condition or operand, which leave ends.
func (p *parser) enter() {
	if p.depth++; p.depth > MaxDepth {
		p.fail("more than %d parentheses and NOTs inside one another", MaxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) or() Expr {
	terms := p.terms("OR", p.and)
	if len(terms) == 1 {
		return terms[0]
	}
	return &Or{terms}
}

func (p *parser) and() Expr {
	terms := p.terms("AND", p.not)
	if len(terms) == 1 {
		return terms[0]
	}
	return &And{terms}
}

// terms reads one term or more, joined by the keyword.
func (p *parser) terms(keyword string, term func() Expr) []Expr {
	terms := []Expr{term()}
	for p.accept(keyword) {
		terms = append(terms, term())
	}
	return terms
}

func (p *parser) not() Expr {
	if !p.token.is("NOT") {
		return p.predicate()
	}
	p.enter()
	defer p.leave()
	p.node()
	p.advance()
	return &Not{p.not()}
}

func (p *parser) predicate() Expr {
	p.node()
	if p.token.isSymbol("(") && !p.opensOperand() {
		return inParentheses(p, p.or, p.surplus)
	}
	start := p.token.offset
	if f := p.call(func(f *function) bool { return f.condition != nil }); f != nil {
		return f.condition(p, start)
	}
	x := p.operand()
	if op := comparison(p.token); op != "" {
		p.advance()
		right := p.operand()
		p.noElements(right, "a comparison")
		return &Compare{x, op, right}
	}
	if p.accept("IS") {
		return p.isNull(x)
	}
	negated := p.accept("NOT")
	for _, c := range conditions {
		if p.accept(c.keyword) {
			return c.parse(p, x, negated)
		}
	}
	if negated {
		var names []string
		for _, c := range conditions {
			names = append(names, c.keyword)
		}
		p.fail("want %s after NOT, found %s", suggest.OneOf(names, "or"), p.token.describe())
	}
	switch x := x.(type) {
	case *Name:
		return x
	case *Literal:
		if x.Kind == BoolLiteral {
			return x
		}
	}
	p.failAt(start, "%s is not a condition: compare it with something", shorten(x.String()))
	return &Literal{}
}

// noElements refuses elements of a list on the right of what.
func (p *parser) noElements(o Operand, what string) {
	if q, ok := o.(*Quantified); ok {
		p.failAt(q.offset(), "%s stands on the left of %s", q, what)
	}
}

// inParentheses reads what inner reads, and the parentheses around it. surplus says what is wrong with a token
// instead of the second.
func inParentheses[T any](p *parser, inner func() T, surplus func()) T {
	p.enter()
	defer p.leave()
	opened := p.token.offset
	p.advance()
	x := inner()
	switch {
	case p.token.kind == tokenEnd:
		p.failAt(opened, "the parenthesis that opens here is not closed")
	case !p.token.isSymbol(")"):
		surplus()
	}
	p.advance()
	return x
}

// call consumes the name of a function and its parenthesis if a call of a suitable function is next.
func (p *parser) call(suits func(*function) bool) *function {
	i := slices.IndexFunc(functions, func(f function) bool { return p.token.is(f.name) && suits(&f) })
	if i < 0 || !p.peek().isSymbol("(") {
		return nil
	}
	p.advance()
	p.advance()
	return &functions[i]
}

// atom parses a literal, a name, or a function that is an operand.
func (p *parser) atom() Operand {
	p.node()
	if f := p.call(func(f *function) bool { return f.operand != nil }); f != nil {
		return f.operand(p)
	}
	switch {
	case p.token.kind == tokenString, p.token.kind == tokenNumber, p.token.isSymbol("-"), p.token.isSymbol("+"),
		p.token.is("TRUE"), p.token.is("FALSE"):
		return p.literal("")
	}
	return p.name("")
}

// list parses the argument of a function of one list.
func (p *parser) list(function string) *Name {
	list := p.name(" in " + function + "(name)")
	p.symbol(")", "after "+function+"(name")
	return list
}

const nullCompared = "nothing compares with NULL: write IS NULL or IS NOT NULL"

// name parses a name; where, which starts with a space or is empty, says what for, in errors.
func (p *parser) name(where string) *Name {
	t := p.token
	switch {
	case t.kind == tokenName:
	case t.is("NULL"):
		p.fail(nullCompared)
	case t.kind == tokenWord && isKeyword(t.text):
		p.fail("want a name or a value%s, found %q: quote a name that is a keyword as \"%s\"", where, t.text, t.text)
	case t.kind == tokenWord:
		if p.peek().isSymbol("(") {
			var names []string
			for _, f := range functions {
				names = append(names, f.name)
			}
			p.fail("%s(...) is not known here: there are %s", shorten(t.text), suggest.OneOf(names, "and"))
		}
	case where == "":
		p.fail("want a name or a value, found %s", t.describe())
	default:
		p.fail("want a name%s, found %s", where, t.describe())
	}
	p.advance()
	return &Name{t.text, t.offset}
}

// literal parses a constant; where, which starts with a space or is empty, says what for, in errors.
func (p *parser) literal(where string) *Literal {
	p.node()
	start := p.token
	l := &Literal{Offset: start.offset}
	switch {
	case start.kind == tokenString:
		l.Kind, l.Text = StringLiteral, start.text
	case start.is("TRUE"), start.is("FALSE"):
		l.Kind, l.Bool = BoolLiteral, start.is("TRUE")
	case start.kind == tokenNumber, start.isSymbol("-"), start.isSymbol("+"):
		if start.kind == tokenSymbol {
			if p.advance(); p.token.kind != tokenNumber {
				p.fail("want a number after %s, found %s", start.text, p.token.describe())
			}
		}
		n, err := parseNumber(p.token.text, start.isSymbol("-"))
		if err != nil {
			p.failAt(start.offset, "%v", err)
		}
		l.Kind, l.Number = NumberLiteral, n
	case start.is("NULL"):
		p.fail(nullCompared)
	case start.kind == tokenName || start.kind == tokenWord:
		p.fail("want a string or a number%s, found %s: quote strings as '...'", where, start.describe())
	default:
		p.fail("want a string or a number%s, found %s", where, start.describe())
	}
	p.advance()
	return l
}
