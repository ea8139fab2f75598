package expr

import (
	"regexp"
	"strings"
)

// RegexpMatches is true when a part of the string X matches the regular expression, in the syntax of RE2.
type RegexpMatches struct {
	X       Operand
	Pattern string
}

func (e *RegexpMatches) String() string { return text(e) }

func (e *RegexpMatches) print(b *strings.Builder, _ precedence) {
	b.WriteString("regexp_matches(" + e.X.String() + ", ")
	quote(b, e.Pattern, '\'')
	b.WriteByte(')')
}

// maxPattern limits the text of a regular expression, because its program takes about 100 times as much memory.
const maxPattern = 4096

func (p *parser) regexpMatches(int) Expr {
	x := p.operand()
	p.symbol(",", "in regexp_matches(name, 'pattern')")
	pattern := p.token
	if pattern.kind != tokenString {
		p.fail("want a pattern in '...' in regexp_matches(name, 'pattern'), found %s", pattern.describe())
	}
	if len(pattern.text) > maxPattern {
		p.fail("a regular expression of %d bytes: want at most %d", len(pattern.text), maxPattern)
	} else if _, err := regexp.Compile(pattern.text); err != nil {
		p.fail("%s", strings.ReplaceAll(shorten(strings.TrimPrefix(err.Error(), "error parsing regexp: ")), "\n", " "))
	}
	p.advance()
	p.symbol(")", "after regexp_matches(name, 'pattern'")
	return &RegexpMatches{x, pattern.text}
}

func (e *RegexpMatches) operands(visit func(Operand)) { visit(e.X) }

func (e *RegexpMatches) bind(b *binder) (node, error) {
	pattern, err := regexp.Compile(e.Pattern)
	if err != nil {
		return nil, err // of an Expr that Parse did not return
	}
	return b.matches("regexp_matches(...)", e.X, false, pattern.Match)
}
