package text

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// inBrackets returns what is between the brackets of a list as pandas, DuckDB, Python and JSON write it.
func inBrackets(text []byte) (inner []byte, ok bool) {
	t := bytes.TrimSpace(text)
	if len(t) < 2 || t[0] != '[' || t[len(t)-1] != ']' {
		return nil, false
	}
	return bytes.TrimSpace(t[1 : len(t)-1]), true
}

// A quotedItem is an item of a list of strings.
type quotedItem struct {
	text []byte
	null bool
}

// quotedItems returns the items of a list of strings, each in ' or ", or a number, or null: ['Action', "it's", None].
// ok is false where it is none. A comma at its end begins no item.
func quotedItems(list []byte) (items []quotedItem, ok bool) {
	for rest := list; len(rest) > 0; {
		var item quotedItem
		if rest[0] == '\'' || rest[0] == '"' {
			if item.text, rest, ok = unquote(rest); !ok {
				return nil, false
			}
		} else {
			end := bytes.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			item.text, rest = bytes.TrimSpace(rest[:end]), rest[end:]
			switch _, err := strconv.ParseFloat(string(item.text), 64); {
			case isNullItem(item.text):
				item.null = true
			case err != nil:
				return nil, false
			}
		}
		items = append(items, item)
		if rest = bytes.TrimSpace(rest); len(rest) > 0 {
			if rest[0] != ',' {
				return nil, false
			}
			rest = bytes.TrimSpace(rest[1:])
		}
	}
	return items, true
}

// escaped are the characters after a backslash, and what they stand for in Python and JSON.
const escaped, plain = `\'"/abfnrtv`, "\\'\"/\a\b\f\n\r\t\v"

// unquote returns the string at the start of s, in Python's or JSON's quotes, and what follows it. As in Python, a
// backslash before a character that it does not escape stays.
func unquote(s []byte) (text, rest []byte, ok bool) {
	quote := s[0]
	text = []byte{} // an empty string is no null
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return text, s[i+1:], true
		case c != '\\' || i+1 == len(s):
			text = append(text, c)
			continue
		}
		i++
		if at := bytes.IndexByte([]byte(escaped), s[i]); at >= 0 {
			text = append(text, plain[at])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		if digits == 0 {
			text = append(text, '\\', s[i])
			continue
		}
		r, ok := hexRune(s[i+1:], digits)
		if !ok {
			return nil, nil, false
		}
		i += digits
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if bytes.HasPrefix(s[i+1:], []byte(`\u`)) {
				low, _ = hexRune(s[i+3:], 4)
				i += 6
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return nil, nil, false
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return nil, nil, false
}

// hexRune returns the character that hexadecimal digits say.
func hexRune(s []byte, digits int) (rune, bool) {
	if len(s) < digits {
		return 0, false
	}
	v, err := strconv.ParseUint(string(s[:digits]), 16, 32)
	return rune(v), err == nil && v <= utf8.MaxRune
}

// appendStrings appends to a list of strings what is between the brackets of text, and reports whether it is such a
// list. One whose items are not quoted is an error, unless something other than Hive's ^B separates items: sep.
func (r *Reader) appendStrings(a *column.Array, text []byte, sep byte) (done bool, err error) {
	inner, ok := inBrackets(text)
	if !ok {
		return false, nil
	}
	items, ok := quotedItems(inner)
	if !ok {
		if sep != hiveItems || bytes.IndexByte(text, hiveItems) >= 0 {
			return false, nil
		}
		return false, fmt.Errorf("%s is no list of quoted strings, as ['a', \"b\"] is", column.Quote(string(text)))
	}
	for _, item := range items {
		if item.null {
			a.Children[0].AppendNull()
		} else if err := column.AppendText(a.Children[0], item.text, r.limits); err != nil {
			return false, err
		}
	}
	a.AppendEntry(true)
	return true, nil
}

// hiveItems is between the items of Hive's lists where nothing is said.
const hiveItems = 2
