// Package jsontext writes JSON by hand, where the reflection of encoding/json on first use of a type takes longer
// than all else, in a process that opens a table and reads a few rows of it.
package jsontext

import (
	"strconv"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// AppendString appends s as encoding/json does without the escaping of HTML: what is not UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		var r rune
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch {
		case r == utf8.RuneError:
			dst = append(dst, `\ufffd`...)
		case c >= utf8.RuneSelf: // line and paragraph separator
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[r&0xF])
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&0xF])
		}
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// AppendMember appends what separates a member from the one before, and its name, which needs no escapes.
func AppendMember(dst []byte, name string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

// AppendText appends a member that is a string.
func AppendText(dst []byte, name, value string) []byte {
	return AppendString(AppendMember(dst, name), value)
}

// AppendUint appends a member that is a number.
func AppendUint(dst []byte, name string, value uint64) []byte {
	return strconv.AppendUint(AppendMember(dst, name), value, 10)
}
