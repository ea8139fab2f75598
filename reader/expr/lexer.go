package expr

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind int

const (
	tokenEnd    tokenKind = iota
	tokenWord             // a name or a keyword, as written
	tokenName             // a quoted name, its quotes undone
	tokenString           // a string, its quotes undone
	tokenNumber           // digits, point, exponent; no sign
	tokenSymbol           // an operator or a punctuation mark
)

type token struct {
	kind   tokenKind
	text   string
	offset int
}

// is reports whether the token is the keyword, in any case.
func (t token) is(keyword string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, keyword)
}

// isSymbol reports whether the token is the operator or mark.
func (t token) isSymbol(s string) bool { return t.kind == tokenSymbol && t.text == s }

// describe names the token in a message.
func (t token) describe() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the expression"
	case tokenString:
		return "string '" + shorten(t.text) + "'"
	case tokenName:
		return "name \"" + shorten(t.text) + "\""
	case tokenNumber:
		return "number " + shorten(t.text)
	}
	return fmt.Sprintf("%q", shorten(t.text))
}

// shorten shortens a part of an expression for a message.
func shorten(s string) string {
	const longest = 40
	if len(s) <= longest {
		return s
	}
	cut := longest
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

func startsWord(r rune) bool { return r == '_' || unicode.IsLetter(r) }
func inWord(r rune) bool     { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
func isDigit(c byte) bool    { return c >= '0' && c <= '9' }

// wordLength returns how many bytes at the head of s make an unquoted name: words joined by points.
func wordLength(s string) int {
	n := 0
	first := true
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		if first && !startsWord(r) {
			break
		}
		first = false
		if inWord(r) {
			n += size
			continue
		}
		next, nextSize := utf8.DecodeRuneInString(s[n+size:])
		if r != '.' || !inWord(next) || next == utf8.RuneError && nextSize <= 1 {
			break
		}
		n += size
	}
	return n
}

// isPlainName reports whether a name needs no quotes.
func isPlainName(name string) bool {
	return name != "" && wordLength(name) == len(name) && !isKeyword(name)
}

// lexer splits an expression into tokens, one at a time.
type lexer struct {
	text string
	at   int
}

func (l *lexer) fail(offset int, format string, args ...any) error {
	return &Error{Text: l.text, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

// next returns the next token; after the last it always returns tokenEnd.
func (l *lexer) next() (token, error) {
	for l.at < len(l.text) && strings.IndexByte(" \t\r\n", l.text[l.at]) >= 0 {
		l.at++
	}
	start := l.at
	if start == len(l.text) {
		return token{kind: tokenEnd, offset: start}, nil
	}
	rest := l.text[start:]
	switch c := rest[0]; {
	case c == '\'':
		s, err := l.quoted('\'', "string")
		return token{tokenString, s, start}, err
	case c == '"' || c == '`':
		s, err := l.quoted(c, "quoted name")
		if err == nil && s == "" {
			err = l.fail(start, "a quoted name is empty")
		}
		return token{tokenName, s, start}, err
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number()
	}
	if n := wordLength(rest); n > 0 {
		l.at += n
		return token{tokenWord, rest[:n], start}, nil
	}
	if strings.HasPrefix(rest, "--") {
		return token{}, l.fail(start, "-- begins a comment in SQL, and there are none here: to subtract what has a "+
			"sign, write - -1 or -(-x)")
	}
	for _, symbol := range []string{"==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "-", "+", "*", "/"} {
		if strings.HasPrefix(rest, symbol) {
			l.at += len(symbol)
			return token{tokenSymbol, symbol, start}, nil
		}
	}
	for symbol, word := range map[string]string{"&": "AND", "|": "OR", "!": "NOT"} {
		if strings.HasPrefix(rest, symbol) {
			return token{}, l.fail(start, "%q is not SQL: write %s", symbol, word)
		}
	}
	r, size := utf8.DecodeRuneInString(rest)
	if r == utf8.RuneError && size == 1 {
		return token{}, l.fail(start, "byte 0x%02x is not UTF-8", rest[0])
	}
	return token{}, l.fail(start, "unexpected character %q", r)
}

// quoted reads a string or a name in quotes. A doubled quote is one quote.
func (l *lexer) quoted(q byte, what string) (string, error) {
	start := l.at
	var b strings.Builder
	for i := start + 1; i < len(l.text); {
		n := strings.IndexByte(l.text[i:], q)
		if n < 0 {
			break
		}
		b.WriteString(l.text[i : i+n])
		i += n + 1
		if i == len(l.text) || l.text[i] != q {
			l.at = i
			return b.String(), nil
		}
		b.WriteByte(q)
		i++
	}
	return "", l.fail(start, "the %s that begins here has no closing %c", what, q)
}

// number reads digits, a fraction and an exponent.
func (l *lexer) number() (token, error) {
	start := l.at
	i := start
	digits := func() {
		for i < len(l.text) && isDigit(l.text[i]) {
			i++
		}
	}
	digits()
	if i < len(l.text) && l.text[i] == '.' {
		i++
		digits()
	}
	if i < len(l.text) && (l.text[i] == 'e' || l.text[i] == 'E') {
		mark := i
		i++
		if i < len(l.text) && (l.text[i] == '+' || l.text[i] == '-') {
			i++
		}
		if i == len(l.text) || !isDigit(l.text[i]) {
			return token{}, l.fail(mark, "an exponent has no digits")
		}
		digits()
	}
	if r, _ := utf8.DecodeRuneInString(l.text[i:]); inWord(r) || r == '.' {
		return token{}, l.fail(start, "a number runs into %q: quote strings as '...' and names as \"...\"", r)
	}
	l.at = i
	return token{tokenNumber, l.text[start:i], start}, nil
}
