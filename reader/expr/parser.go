package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of what Parse takes.
const (
	MaxBytes = 1 << 20 // of text
	MaxDepth = 100     // of parentheses and NOTs inside one another
	MaxNodes = 100_000 // operands, literals and conditions

	MaxOperators = 1000 // of arithmetic
)

// Parse returns the expression that text says, or an *Error that says what is wrong and where.
func Parse(text string) (Expr, error) {
	e, _, err := parse(text)
	return e, err
}

// parse is Parse, and says where the token stands that it ended with.
func parse(text string) (e Expr, read int, err error) {
	p, err := newParser(text)
	if err != nil {
		return nil, 0, err
	}
	if e, err = p.or(); err == nil && p.token.kind != tokenEnd {
		err = p.surplus()
	}
	if err != nil {
		return nil, p.token.offset, err
	}
	return e, p.token.offset, nil
}

// newParser returns a parser of text with its first token in hand.
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
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind == tokenEnd {
		return nil, p.fail("the expression is empty: want a condition, as in ds = '2026-11-01'")
	}
	return p, nil
}

// parser is a recursive descent over the grammar of doc.go with one token in hand and one to look ahead.
type parser struct {
	lexer
	token token // in hand
	depth int
	nodes int

	operators int          // of arithmetic
	groups    map[int]bool // see opensOperand; nil: nobody has asked yet
}

func (p *parser) fail(format string, args ...any) error {
	return p.lexer.fail(p.token.offset, format, args...)
}

func (p *parser) advance() error {
	t, err := p.next()
	p.token = t
	return err
}

// peek returns the token after the one in hand.
func (p *parser) peek() (token, error) {
	ahead := p.lexer
	return ahead.next()
}

// surplus explains the token in hand where a whole condition has just ended.
func (p *parser) surplus() error {
	switch {
	case p.token.isSymbol(")"):
		return p.fail("\")\" closes nothing")
	case comparison(p.token) != "":
		return p.fail("a condition cannot be compared: join two with AND")
	}
	return p.fail("want AND, OR or the end of the expression, found %s", p.token.describe())
}

// node counts one more part of the expression.
func (p *parser) node() error {
	if p.nodes++; p.nodes > MaxNodes {
		return p.fail("more than %d parts", MaxNodes)
	}
	return nil
}

// deeper is called before a nested condition and undone by p.depth--.
func (p *parser) deeper() error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail("more than %d parentheses and NOTs inside one another", MaxDepth)
	}
	return nil
}

func (p *parser) or() (Expr, error) {
	terms, err := p.terms("OR", p.and)
	if err != nil || len(terms) == 1 {
		return first(terms), err
	}
	return &Or{terms}, nil
}

func (p *parser) and() (Expr, error) {
	terms, err := p.terms("AND", p.not)
	if err != nil || len(terms) == 1 {
		return first(terms), err
	}
	return &And{terms}, nil
}

func first(terms []Expr) Expr {
	if len(terms) == 0 {
		return nil
	}
	return terms[0]
}

// terms reads one term or more, joined by the keyword.
func (p *parser) terms(keyword string, term func() (Expr, error)) ([]Expr, error) {
	var terms []Expr
	for {
		e, err := term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, e)
		if !p.token.is(keyword) {
			return terms, nil
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

func (p *parser) not() (Expr, error) {
	if !p.token.is("NOT") {
		return p.predicate()
	}
	if err := p.deeper(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	if err := p.node(); err != nil {
		return nil, err
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	x, err := p.not()
	if err != nil {
		return nil, err
	}
	return &Not{x}, nil
}

func (p *parser) predicate() (Expr, error) {
	if err := p.node(); err != nil {
		return nil, err
	}
	if p.token.isSymbol("(") && !p.opensOperand() {
		return inParentheses(p, p.or, p.surplus)
	}
	if function, err := p.callOf("contains"); err != nil {
		return nil, err
	} else if function {
		return p.contains()
	}
	start := p.token
	if function, err := p.callOf("sample"); err != nil {
		return nil, err
	} else if function {
		return p.sample(start.offset)
	}
	x, err := p.operand()
	if err != nil {
		return nil, err
	}
	if op := comparison(p.token); op != "" {
		if err := p.advance(); err != nil {
			return nil, err
		}
		right, err := p.operand()
		if err != nil {
			return nil, err
		}
		if q, ok := right.(*Quantified); ok {
			return nil, p.lexer.fail(q.offset(), "%s stands on the left of a comparison", q)
		}
		return &Compare{x, op, right}, nil
	}
	if p.token.is("IS") {
		return p.isNull(x)
	}
	negated := p.token.is("NOT")
	if negated {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	switch {
	case p.token.is("IN"):
		return p.in(x, negated)
	case p.token.is("BETWEEN"):
		return p.between(x, negated)
	case p.token.is("LIKE"):
		return p.like(x, negated)
	case negated:
		return nil, p.fail("want IN, BETWEEN or LIKE after NOT, found %s", p.token.describe())
	}
	switch x := x.(type) {
	case *Name:
		return x, nil
	case *Literal:
		if x.Kind == BoolLiteral {
			return x, nil
		}
	}
	return nil, p.lexer.fail(start.offset, "%s is not a condition: compare it with something", shorten(x.String()))
}

// inParentheses reads what inner reads, and the parentheses around it. surplus says what is wrong with a token in the place of the second.
func inParentheses[T any](p *parser, inner func() (T, error), surplus func() error) (x T, err error) {
	if err := p.deeper(); err != nil {
		return x, err
	}
	defer func() { p.depth-- }()
	opened := p.token.offset
	if err := p.advance(); err != nil {
		return x, err
	}
	if x, err = inner(); err != nil {
		return x, err
	}
	switch {
	case p.token.kind == tokenEnd:
		return x, p.lexer.fail(opened, "the parenthesis that opens here is not closed")
	case !p.token.isSymbol(")"):
		return x, surplus()
	}
	return x, p.advance()
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

func (p *parser) isNull(x Operand) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	negated := p.token.is("NOT")
	if negated {
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if !p.token.is("NULL") {
		return nil, p.fail("want NULL or NOT NULL after IS, found %s", p.token.describe())
	}
	return &IsNull{x, negated}, p.advance()
}

func (p *parser) in(x Operand, negated bool) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if err := p.symbol("(", "after IN"); err != nil {
		return nil, err
	}
	e := &In{X: x, Negated: negated}
	for {
		l, err := p.literal("in the list of IN")
		if err != nil {
			return nil, err
		}
		e.List = append(e.List, l)
		if p.token.isSymbol(")") {
			return e, p.advance()
		}
		if err := p.symbol(",", "or \")\" in the list of IN"); err != nil {
			return nil, err
		}
	}
}

func (p *parser) between(x Operand, negated bool) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	low, err := p.operand()
	if err != nil {
		return nil, err
	}
	if !p.token.is("AND") {
		return nil, p.fail("want AND between the two ends of BETWEEN, found %s", p.token.describe())
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	high, err := p.operand()
	if err != nil {
		return nil, err
	}
	for _, end := range []Operand{low, high} {
		if q, ok := end.(*Quantified); ok {
			return nil, p.lexer.fail(q.offset(), "%s stands on the left of BETWEEN", q)
		}
	}
	return &Between{x, negated, low, high}, nil
}

func (p *parser) like(x Operand, negated bool) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.token.kind != tokenString {
		return nil, p.fail("want a pattern in '...' after LIKE, found %s", p.token.describe())
	}
	pattern := p.token.text
	if (len(pattern)-len(strings.TrimRight(pattern, `\`)))%2 == 1 {
		return nil, p.fail("the pattern ends in \\, which takes the next character as it is: write \\\\ for a \\")
	}
	return &Like{x, negated, pattern}, p.advance()
}

func (p *parser) contains() (Expr, error) {
	if err := p.advance(); err != nil { // past the opening parenthesis
		return nil, err
	}
	list, err := p.name("in contains(name, value)")
	if err != nil {
		return nil, err
	}
	if err := p.symbol(",", "in contains(name, value)"); err != nil {
		return nil, err
	}
	value, err := p.literal("in contains(name, value)")
	if err != nil {
		return nil, err
	}
	return &Contains{list, value}, p.symbol(")", "after contains(name, value")
}

// callOf takes the function's name and leaves "(" in hand when a call of it comes next.
func (p *parser) callOf(function string) (bool, error) {
	if !p.token.is(function) {
		return false, nil
	}
	t, err := p.peek()
	if err != nil || !t.isSymbol("(") {
		return false, err
	}
	return true, p.advance()
}

// atom reads an operand that is not computed.
func (p *parser) atom() (Operand, error) {
	if err := p.node(); err != nil {
		return nil, err
	}
	for _, function := range []string{"len", "any", "all"} {
		called, err := p.callOf(function)
		if err != nil {
			return nil, err
		}
		if !called {
			continue
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		list, err := p.name("in " + function + "(name)")
		if err != nil {
			return nil, err
		}
		if err := p.symbol(")", "after "+function+"(name"); err != nil {
			return nil, err
		}
		if function == "len" {
			return &Len{list}, nil
		}
		return &Quantified{function == "all", list}, nil
	}
	switch {
	case p.token.kind == tokenString, p.token.kind == tokenNumber, p.token.isSymbol("-"), p.token.isSymbol("+"),
		p.token.is("TRUE"), p.token.is("FALSE"):
		return p.literal("")
	}
	return p.name("")
}

// name takes a name; where says what for.
func (p *parser) name(where string) (*Name, error) {
	t := p.token
	switch {
	case t.kind == tokenName:
	case t.is("NULL"):
		return nil, p.fail("nothing compares with NULL: write IS NULL or IS NOT NULL")
	case t.kind == tokenWord && isKeyword(t.text):
		return nil, p.fail("want a name or a value%s, found %q: quote a name that is a keyword as \"%s\"", after(where), t.text, t.text)
	case t.kind == tokenWord:
		ahead, err := p.peek()
		if err != nil {
			return nil, err
		}
		if ahead.isSymbol("(") {
			return nil, p.fail("%s(...) is not known here: there are len, contains, any, all and sample", shorten(t.text))
		}
	case where == "":
		return nil, p.fail("want a name or a value, found %s", t.describe())
	default:
		return nil, p.fail("want a name%s, found %s", after(where), t.describe())
	}
	return &Name{t.text, t.offset}, p.advance()
}

func after(where string) string {
	if where == "" {
		return ""
	}
	return " " + where
}

// literal takes a constant; where says what for.
func (p *parser) literal(where string) (*Literal, error) {
	if err := p.node(); err != nil {
		return nil, err
	}
	start := p.token
	l := &Literal{Offset: start.offset}
	switch {
	case start.kind == tokenString:
		l.Kind, l.Text = StringLiteral, start.text
	case start.is("TRUE"), start.is("FALSE"):
		l.Kind, l.Bool = BoolLiteral, start.is("TRUE")
	case start.kind == tokenNumber, start.isSymbol("-"), start.isSymbol("+"):
		if start.kind == tokenSymbol {
			if err := p.advance(); err != nil {
				return nil, err
			}
			if p.token.kind != tokenNumber {
				return nil, p.fail("want a number after %s, found %s", start.text, p.token.describe())
			}
		}
		n, err := parseNumber(p.token.text, start.isSymbol("-"))
		if err != nil {
			return nil, p.lexer.fail(start.offset, "%v", err)
		}
		l.Kind, l.Number = NumberLiteral, n
	case start.is("NULL"):
		return nil, p.fail("nothing compares with NULL: write IS NULL or IS NOT NULL")
	case start.kind == tokenName || start.kind == tokenWord:
		return nil, p.fail("want a string or a number%s, found %s: quote strings as '...'", after(where), start.describe())
	default:
		return nil, p.fail("want a string or a number%s, found %s", after(where), start.describe())
	}
	return l, p.advance()
}

// parseNumber reads an unsigned number and gives it the sign.
func parseNumber(text string, negative bool) (Number, error) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Number{}, fmt.Errorf("number %s is beyond what a float64 holds", shorten(text))
		}
		if negative {
			f, text = -f, "-"+text
		}
		n := Number{Float: f}
		if short := n.String(); parseDecimal(short) == parseDecimal(text) {
			text = short
		}
		n.Text = text
		return n, nil
	}
	abs, err := strconv.ParseUint(text, 10, 64)
	if err != nil || negative && abs > 1<<63 {
		sign := ""
		if negative {
			sign = "-"
		}
		return Number{}, fmt.Errorf("integer %s%s is beyond 64 bits", sign, shorten(text))
	}
	return Number{Integer: true, Negative: negative && abs > 0, Abs: abs}, nil
}

// symbol takes the mark; where says what for.
func (p *parser) symbol(s, where string) error {
	if !p.token.isSymbol(s) {
		return p.fail("want %q %s, found %s", s, where, p.token.describe())
	}
	return p.advance()
}
