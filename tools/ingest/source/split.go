package source

import (
	"bytes"
	"fmt"
	"io"
)

// A splitter cuts the lines of a text into the fields of rows.
type splitter struct {
	lines  *lineReader
	layout textLayout
	fields []textField // of the row at hand: borrowed until the next line is read
}

// A textField is the raw text of a column.
type textField struct {
	text   []byte
	quoted bool // CSV: it is never null
}

// isNull reports whether the layout says that a column is null.
func (r *splitter) isNull(f textField) bool {
	return !f.quoted && (r.layout.null != nil && bytes.Equal(f.text, r.layout.null) || r.layout.emptyNull && len(f.text) == 0)
}

// cut splits text at the first separator that is not escaped.
func (r *splitter) cut(text []byte, sep byte) (before, after []byte, found bool) {
	if !r.layout.hasEscape || r.layout.csv {
		return bytes.Cut(text, []byte{sep})
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case r.layout.escape:
			i++
		case sep:
			return text[:i], text[i+1:], true
		}
	}
	return text, nil, false
}

// cutColumn is cut at the delimiter, which may be more than a byte.
func (r *splitter) cutColumn(text []byte) (before, after []byte, found bool) {
	delimiter := r.layout.delimiter
	if len(delimiter) == 1 {
		return r.cut(text, delimiter[0])
	}
	if !r.layout.hasEscape {
		return bytes.Cut(text, delimiter)
	}
	for i := 0; i < len(text); i++ {
		if text[i] == r.layout.escape {
			i++
		} else if bytes.HasPrefix(text[i:], delimiter) {
			return text[:i], text[i+len(delimiter):], true
		}
	}
	return text, nil, false
}

// unescape drops escape characters; as in Hive, an escaped n or r is a line end.
func unescape(text []byte, escape byte) []byte {
	if bytes.IndexByte(text, escape) < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == escape && i+1 < len(text) {
			i++
			switch c = text[i]; c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			}
		}
		out = append(out, c)
	}
	return out
}

// badText is a line that is not what the layout says; the lines after it may be.
type badText struct{ reason string }

func (e *badText) Error() string { return e.reason }

// split cuts a line into r.fields, reading more lines where a quoted column goes on.
func (r *splitter) split(line []byte) error {
	r.fields = r.fields[:0]
	if r.layout.csv {
		return r.splitCSV(line)
	}
	for more := true; more; {
		var f textField
		f.text, line, more = r.cutColumn(line)
		r.fields = append(r.fields, f)
	}
	return nil
}

// splitCSV follows RFC 4180: a quote within a quoted column is doubled, or escaped where there is an escape character.
func (r *splitter) splitCSV(line []byte) error {
	delimiter, quote, first := r.layout.delimiter, r.layout.quote, r.lines.line
	delimited := func(i int) bool {
		return line[i] == delimiter[0] && (len(delimiter) == 1 || bytes.HasPrefix(line[i:], delimiter))
	}
	// The parts of a column are put together here, since the line's own memory is borrowed.
	var out []byte
	i := 0
	for {
		f := textField{}
		start := len(out)
		if i < len(line) && line[i] == quote {
			f.quoted = true
			i++
			for {
				if i >= len(line) {
					// The line end belongs to the value, as it is in the file.
					out = append(out, r.lines.end...)
					total := int64(len(out))
					next, err := r.lines.next()
					if err == io.EOF {
						return &badText{fmt.Sprintf("a quoted column without its closing quote: the %d lines from here to the end are in it", r.lines.line-first+1)}
					}
					if err != nil {
						return err
					}
					if total+int64(len(next)) > r.lines.limit {
						return &badText{fmt.Sprintf("a line of more than %d bytes", r.lines.limit)}
					}
					line, i = next, 0
					continue
				}
				c := line[i]
				switch {
				case r.layout.hasEscape && c == r.layout.escape && r.layout.escape != quote && i+1 < len(line):
					out = append(out, line[i+1])
					i += 2
					continue
				case c == quote && i+1 < len(line) && line[i+1] == quote:
					out = append(out, quote)
					i += 2
					continue
				case c == quote:
					i++
				default:
					out = append(out, c)
					i++
					continue
				}
				break
			}
			if i < len(line) && !delimited(i) {
				return &badText{fmt.Sprintf("%q after the closing quote of column %d", line[i], len(r.fields)+1)}
			}
		} else {
			for i < len(line) && !delimited(i) {
				if r.layout.hasEscape && line[i] == r.layout.escape && i+1 < len(line) {
					i++
				}
				out = append(out, line[i])
				i++
			}
		}
		// out may move as it grows; the text of each column does not change after it was put down.
		f.text = out[start:len(out):len(out)]
		r.fields = append(r.fields, f)
		if i >= len(line) {
			return nil
		}
		i += len(delimiter)
		if i >= len(line) {
			r.fields = append(r.fields, textField{})
			return nil
		}
	}
}
