package expr

import (
	"strings"
	"unicode/utf8"
)

// Like is true when the string X matches the pattern; with Negated, when it does not.
type Like struct {
	X       Operand
	Negated bool
	Pattern string
}

func (e *Like) String() string { return text(e) }

func (e *Like) print(b *strings.Builder, _ precedence) {
	e.X.operand(b)
	b.WriteString(not(e.Negated) + " LIKE ")
	quote(b, e.Pattern, '\'')
}

func (p *parser) like(x Operand, negated bool) Expr {
	if p.token.kind != tokenString {
		p.fail("want a pattern in '...' after LIKE, found %s", p.token.describe())
	}
	pattern := p.token.text
	if (len(pattern)-len(strings.TrimRight(pattern, `\`)))%2 == 1 {
		p.fail("the pattern ends in \\, which takes the next character as it is: write \\\\ for a \\")
	}
	p.advance()
	return &Like{x, negated, pattern}
}

func (e *Like) operands(visit func(Operand)) { visit(e.X) }

func (e *Like) bind(b *binder) (node, error) {
	pattern := parsePattern(e.Pattern)
	return b.matches("LIKE", e.X, e.Negated, func(v []byte) bool { return pattern.matches(string(v)) })
}

// A pattern is a parsed LIKE pattern.
type pattern []patternPart

type patternPart struct {
	char rune // when neither any nor one
	any  bool // %: any characters, also none
	one  bool // _: one character
}

// parsePattern reads % and _, and \ before a character that stands for itself.
func parsePattern(s string) pattern {
	var p pattern
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			p = append(p, patternPart{char: r})
			escaped = false
		case r == '\\':
			escaped = true
		case r == '%':
			if len(p) == 0 || !p[len(p)-1].any {
				p = append(p, patternPart{any: true})
			}
		case r == '_':
			p = append(p, patternPart{one: true})
		default:
			p = append(p, patternPart{char: r})
		}
	}
	return p
}

// matches reports whether the whole of s matches, in time proportional to len(s) * len(p) at most: a mismatch goes back
// to the last % only, which then takes one character more. A byte that is not UTF-8 counts as one character.
func (p pattern) matches(s string) bool {
	i, at := 0, 0
	lastAny, resume := -1, 0
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case i < len(p) && p[i].any:
			lastAny, resume = i, at
			i++
		case i < len(p) && (p[i].one || p[i].char == r && (r != utf8.RuneError || size > 1)):
			i++
			at += size
		case lastAny >= 0:
			_, taken := utf8.DecodeRuneInString(s[resume:])
			resume += taken
			i, at = lastAny+1, resume
		default:
			return false
		}
	}
	for i < len(p) && p[i].any {
		i++
	}
	return i == len(p)
}
