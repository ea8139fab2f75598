package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// jsonKind tells JSON values apart by their first byte.
type jsonKind uint8

const (
	jsonNull jsonKind = iota + 1
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

func (k jsonKind) String() string {
	return [...]string{"nothing", "null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// A parser reads JSON values from a line: numbers keep every digit, duplicate keys are errors.
type parser struct {
	buf      []byte
	pos      int
	depth    int
	maxDepth int
	text     []byte // scratch of strings
}

func (p *parser) reset(line []byte) { p.buf, p.pos, p.depth = line, 0, 0 }

// wantJSONLines says what JSON on several lines, or in one list, has to become.
const wantJSONLines = "JSON lines have an object a line; jq -c . FILE writes them so, or jq -c '.[]' FILE where the " +
	"file is one list"

func (p *parser) fail(what string) error {
	if p.pos >= len(p.buf) {
		return fmt.Errorf("the line ends where %s should be: %s", what, wantJSONLines)
	}
	return fmt.Errorf("%q at byte %d where %s should be%s", p.buf[p.pos], p.pos, what, asPython(p.buf[p.pos:]))
}

// asPython says what to do with objects in Python's notation, if a text begins with what only that has.
func asPython(text []byte) string {
	for _, word := range []string{"'", "u'", `u"`, "True", "False", "None"} {
		if bytes.HasPrefix(text, []byte(word)) {
			return `: that is Python's notation; python3 -c "import ast, json, sys; ` +
				`[print(json.dumps(ast.literal_eval(l))) for l in sys.stdin]" makes JSON lines of it`
		}
	}
	return ""
}

func (p *parser) space() {
	for p.pos < len(p.buf) {
		switch p.buf[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) kind() (jsonKind, error) {
	p.space()
	if p.pos < len(p.buf) {
		switch c := p.buf[p.pos]; {
		case c == 'n':
			return jsonNull, nil
		case c == 't' || c == 'f':
			return jsonBool, nil
		case c == '-' || c >= '0' && c <= '9' || c == 'N' || c == 'I':
			return jsonNumber, nil
		case c == '"':
			return jsonString, nil
		case c == '[':
			return jsonArray, nil
		case c == '{':
			return jsonObject, nil
		}
	}
	return 0, p.fail("a value")
}

// at reports whether the next byte is c.
func (p *parser) at(c byte) bool { return p.pos < len(p.buf) && p.buf[p.pos] == c }

func (p *parser) literal(word string) error {
	if len(p.buf)-p.pos < len(word) || string(p.buf[p.pos:p.pos+len(word)]) != word {
		return p.fail(word)
	}
	p.pos += len(word)
	return nil
}

func (p *parser) bool() (bool, error) {
	if p.buf[p.pos] == 't' {
		return true, p.literal("true")
	}
	return false, p.literal("false")
}

// number returns the text of a number, borrowed, and whether it is an integer without fraction and exponent. NaN,
// Infinity and -Infinity are numbers: JSON has none of them, and Python and Java write them all the same.
func (p *parser) number() (text []byte, whole bool, err error) {
	start := p.pos
	digits := func() bool {
		from := p.pos
		for p.pos < len(p.buf) && p.buf[p.pos] >= '0' && p.buf[p.pos] <= '9' {
			p.pos++
		}
		return p.pos > from
	}
	if p.at('-') {
		p.pos++
	}
	switch first := p.pos; {
	case p.at('N') && p.pos == start:
		err = p.literal("NaN")
		return p.buf[start:p.pos], false, err
	case p.at('I'):
		err = p.literal("Infinity")
		return p.buf[start:p.pos], false, err
	case !digits():
		return nil, false, p.fail("a digit")
	case p.buf[first] == '0' && p.pos > first+1:
		p.pos = first + 1
		return nil, false, p.fail("the end of a number")
	}
	whole = true
	if p.at('.') {
		whole = false
		if p.pos++; !digits() {
			return nil, false, p.fail("a digit")
		}
	}
	if p.at('e') || p.at('E') {
		whole = false
		if p.pos++; p.at('+') || p.at('-') {
			p.pos++
		}
		if !digits() {
			return nil, false, p.fail("a digit")
		}
	}
	return p.buf[start:p.pos], whole, nil
}

// string returns the value of a string, borrowed until the next call.
func (p *parser) string() ([]byte, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.buf) && p.buf[p.pos] != '"' && p.buf[p.pos] != '\\' && p.buf[p.pos] >= 0x20 {
		p.pos++
	}
	if p.at('"') {
		text := p.buf[start:p.pos]
		p.pos++
		return text, p.valid(text)
	}
	p.text = append(p.text[:0], p.buf[start:p.pos]...)
	for p.pos < len(p.buf) {
		c := p.buf[p.pos]
		switch {
		case c == '"':
			p.pos++
			return p.text, p.valid(p.text)
		case c < 0x20:
			return nil, &badString{fmt.Sprintf("control character %#02x at byte %d of a string", c, p.pos)}
		case c != '\\':
			p.text = append(p.text, c)
			p.pos++
			continue
		}
		if err := p.escape(); err != nil {
			return nil, err
		}
	}
	return nil, p.fail("the end of a string")
}

func (p *parser) valid(text []byte) error {
	if !utf8.Valid(text) {
		return &badString{"a string that is not UTF-8"}
	}
	return nil
}

// escape appends what the escape sequence at pos stands for.
func (p *parser) escape() error {
	p.pos++
	if p.pos >= len(p.buf) {
		return p.fail("an escaped character")
	}
	c := p.buf[p.pos]
	p.pos++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		p.text = append(p.text, "\"\\/\b\f\n\r\t"[i])
		return nil
	}
	if c != 'u' {
		p.pos--
		return p.fail("an escaped character")
	}
	r, err := p.hex4()
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		var low rune
		if bytes.HasPrefix(p.buf[p.pos:], []byte(`\u`)) {
			p.pos += 2
			if low, err = p.hex4(); err != nil {
				return err
			}
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return &badString{"half of a surrogate pair in a string"}
		}
	}
	p.text = utf8.AppendRune(p.text, r)
	return nil
}

func (p *parser) hex4() (rune, error) {
	if len(p.buf)-p.pos < 4 {
		p.pos = len(p.buf)
		return 0, p.fail("four hexadecimal digits")
	}
	v, err := strconv.ParseUint(string(p.buf[p.pos:p.pos+4]), 16, 16)
	if err != nil {
		return 0, p.fail("four hexadecimal digits")
	}
	p.pos += 4
	return rune(v), nil
}

// enter goes into the list or object at pos, and reports whether there is an element in it before closes.
func (p *parser) enter(closes byte) (some bool, err error) {
	p.pos++
	if p.depth++; p.depth > p.maxDepth {
		return false, fmt.Errorf("nested deeper than %d", p.maxDepth)
	}
	if p.space(); !p.at(closes) {
		return true, nil
	}
	p.pos++
	p.depth--
	return false, nil
}

// next goes on behind an element, and reports whether there is another before closes.
func (p *parser) next(closes byte) (more bool, err error) {
	p.space()
	switch {
	case p.at(','):
		p.pos++
		return true, nil
	case p.at(closes):
		p.pos++
		p.depth--
		return false, nil
	}
	return false, p.fail(", or " + string(closes))
}

// array calls visit at each element of the list at pos.
func (p *parser) array(visit func() error) error {
	more, err := p.enter(']')
	for more && err == nil {
		if err = visit(); err == nil {
			more, err = p.next(']')
		}
	}
	return err
}

// object calls visit with each key of the object at pos; the key is borrowed.
func (p *parser) object(visit func(key []byte) error) error {
	more, err := p.enter('}')
	for more && err == nil {
		if p.space(); !p.at('"') {
			return p.fail("a key")
		}
		key, err := p.string()
		if err != nil {
			return err
		}
		if p.space(); !p.at(':') {
			return p.fail(":")
		}
		p.pos++
		if err := visit(key); err != nil {
			return err
		}
		if more, err = p.next('}'); err != nil {
			return err
		}
	}
	return err
}

// skip passes over any value.
func (p *parser) skip() error {
	k, err := p.kind()
	if err != nil {
		return err
	}
	switch k {
	case jsonNull:
		return p.literal("null")
	case jsonBool:
		_, err = p.bool()
	case jsonNumber:
		_, _, err = p.number()
	case jsonString:
		_, err = p.string()
	case jsonArray:
		err = p.array(p.skip)
	case jsonObject:
		err = p.object(func([]byte) error { return p.skip() })
	}
	return err
}

// pass passes over a value that nobody wants, to any depth: its strings and brackets count, and nothing else in it.
func (p *parser) pass() error {
	if p.space(); p.pos >= len(p.buf) {
		return p.fail("a value")
	}
	var open []byte
	for start := p.pos; p.pos < len(p.buf); {
		switch c := p.buf[p.pos]; c {
		case '"':
			for p.pos++; p.pos < len(p.buf) && p.buf[p.pos] != '"'; p.pos++ {
				if p.buf[p.pos] == '\\' {
					p.pos++
				}
			}
			if p.pos >= len(p.buf) {
				return p.fail("the end of a string")
			}
			p.pos++
		case '[', '{':
			open = append(open, c+2) // the bracket that closes it
			p.pos++
		case ']', '}':
			if len(open) == 0 && p.pos > start {
				return nil
			}
			if len(open) == 0 || open[len(open)-1] != c {
				return p.fail("another bracket")
			}
			open = open[:len(open)-1]
			p.pos++
		case ',':
			if len(open) == 0 && p.pos > start {
				return nil
			}
			if len(open) == 0 {
				return p.fail("a value")
			}
			p.pos++
			continue
		default:
			p.pos++
			continue
		}
		if len(open) == 0 {
			return nil
		}
	}
	if len(open) > 0 {
		return p.fail("a closing bracket")
	}
	return nil
}

// whole returns an error unless the line is one value. What is wrong within a string is a memberError.
func (p *parser) whole() error {
	if k, err := p.kind(); err != nil || k != jsonObject {
		if err := p.skip(); err != nil {
			return err
		}
		return p.end()
	}
	err := p.object(func(key []byte) error {
		name := string(key)
		err := p.skip()
		var bad *badString
		if errors.As(err, &bad) {
			return &memberError{name, err}
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.end()
}

// A badString says what is wrong within a string, where the rest of the line may be right.
type badString struct{ what string }

func (e *badString) Error() string { return e.what }

// end returns an error unless only space is left.
func (p *parser) end() error {
	if p.space(); p.pos < len(p.buf) {
		return p.fail("the end of the line")
	}
	return nil
}

// appendValue appends the value at p to a. On an error a may be left with part of it.
func appendValue(a *column.Array, p *parser, limits *column.Limits) error {
	k, err := p.kind()
	if err != nil {
		return err
	}
	n := a.Type
	if n.Unread {
		a.AppendNull()
		return p.pass()
	}
	if k == jsonNull {
		a.AppendNull()
		return p.literal("null")
	}
	mismatch := func() error { return fmt.Errorf("%v where the schema has %v", k, n) }
	switch n.Shape {
	case column.List:
		if k != jsonArray {
			return mismatch()
		}
		before := a.Children[0].Len
		if err := p.array(func() error { return appendValue(a.Children[0], p, limits) }); err != nil {
			return err
		}
		if int64(a.Children[0].Len-before) > limits.CellValues {
			return fmt.Errorf("a list of more than %d values", limits.CellValues)
		}
	case column.Map:
		if k != jsonObject {
			return mismatch()
		}
		err := p.object(func(key []byte) error {
			if err := column.AppendText(a.Children[0], key, limits); err != nil {
				return fmt.Errorf("key: %w", err)
			}
			return appendValue(a.Children[1], p, limits)
		})
		if err != nil {
			return err
		}
	case column.Struct:
		if k != jsonObject {
			return mismatch()
		}
		if err := appendMembers(a.Children, nil, a.Len, p, limits); err != nil {
			return err
		}
	case column.Number:
		return appendNumber(a, k, p, mismatch, limits)
	case column.String, column.Bytes:
		var text []byte
		switch {
		case k == jsonString:
			text, err = p.string()
		case k == jsonNumber && (n.Logical != "" || n.Given):
			text, _, err = p.number() // a decimal, or a string that is sometimes written without quotes
		case n.AnyJSON:
			from := p.pos
			err = p.skip()
			text = p.buf[from:p.pos]
		default:
			return mismatch()
		}
		if err != nil {
			return err
		}
		return column.AppendText(a, text, limits)
	default:
		return mismatch()
	}
	a.AppendEntry(true)
	return nil
}

func appendNumber(a *column.Array, k jsonKind, p *parser, mismatch func() error, limits *column.Limits) error {
	n := a.Type
	switch {
	case k == jsonBool && n.Elem == vector.Bool:
		v, err := p.bool()
		if err != nil {
			return err
		}
		a.AppendBool(v)
		return nil
	case k == jsonString && (n.Logical != "" || n.Given):
		text, err := p.string()
		if err != nil {
			return err
		}
		return column.AppendText(a, text, limits)
	case k != jsonNumber || n.Elem == vector.Bool:
		return mismatch()
	}
	text, whole, err := p.number()
	if err != nil {
		return err
	}
	if whole && !n.Elem.IsInteger() {
		if v, err := strconv.ParseInt(string(text), 10, 64); err != nil || !column.ExactFloat(n.Elem, v) {
			return fmt.Errorf("the integer %s is not exact in %v; give the column a type in a mapping file", text,
				n.Elem)
		}
	}
	if err := column.AppendText(a, text, limits); err != nil {
		if !whole && n.Elem.IsInteger() && !n.Given {
			return fmt.Errorf("%s where the lines before it have integers; give the column the type double in a "+
				"mapping file", column.Quote(string(text)))
		}
		return err
	}
	return nil
}

// appendMembers appends the members of the object at p to the arrays of a struct or of a row; those that are missing
// get null. rows is how many entries the arrays have; a nil array is passed over. index says where a key goes; nil:
// where the member of that name is.
func appendMembers(members []*column.Array, index map[string]int, rows int, p *parser, limits *column.Limits) error {
	err := p.object(func(key []byte) error {
		i, ok := index[string(key)]
		if index == nil {
			i = slices.IndexFunc(members, func(m *column.Array) bool { return m.Type.Name == string(key) })
			ok = i >= 0
		}
		if !ok {
			return fmt.Errorf("the key %q is not in the schema; give its type in a mapping file", key)
		}
		m := members[i]
		if m == nil {
			return p.pass()
		}
		if m.Len > rows {
			return &memberError{m.Type.Name, errors.New("the key twice in an object")}
		}
		if err := appendValue(m, p, limits); err != nil {
			return &memberError{m.Type.Name, err}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range members {
		if m != nil && m.Len == rows {
			m.AppendNull()
		}
	}
	return nil
}

// A memberError says under which key an error happened; the outermost one is the column.
type memberError struct {
	key string
	err error
}

func (e *memberError) Error() string {
	var inner *memberError
	if errors.As(e.err, &inner) {
		return e.key + "." + e.err.Error()
	}
	return fmt.Sprintf("%s: %v", e.key, e.err)
}

func (e *memberError) Unwrap() error { return e.err }
