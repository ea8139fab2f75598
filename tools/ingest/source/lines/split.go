package lines

import (
	"bytes"
	"fmt"
	"io"
)

// A Splitter cuts the lines of a text into the fields of rows.
type Splitter struct {
	Lines  *Reader
	Layout Rules
	Fields []Field // of the row at hand: borrowed until the next line is read
}

// A Field is the raw text of a column.
type Field struct {
	Text   []byte
	Quoted bool // CSV: it is never null
	// Null: the layout says that the column is null, by what is in the file: \N has a backslash that escapes nothing.
	Null bool
}

// isNull reports whether the text of a column without quotes is null. Blanks around a word for null do not count, but
// in Hive's own text.
func (l *Rules) isNull(text []byte) bool {
	if l.trimNull {
		text = bytes.TrimSpace(text)
	}
	return l.Null != nil && bytes.Equal(text, l.Null) || l.emptyNull && len(text) == 0
}

// Cut splits text at the first separator that is not escaped.
func (r *Splitter) Cut(text []byte, sep byte) (before, after []byte, found bool) {
	if r.Layout.Csv {
		return bytes.Cut(text, []byte{sep})
	}
	return r.cut(text, []byte{sep})
}

// cut splits text at the first separator that is not escaped.
func (r *Splitter) cut(text, sep []byte) (before, after []byte, found bool) {
	if !r.Layout.HasEscape {
		return bytes.Cut(text, sep)
	}
	for i := 0; i < len(text); i++ {
		if text[i] == r.Layout.Escape {
			i++
		} else if text[i] == sep[0] && bytes.HasPrefix(text[i:], sep) {
			return text[:i], text[i+len(sep):], true
		}
	}
	return text, nil, false
}

// Unescape drops escape characters; as in Hive, an escaped n or r is a line end.
func Unescape(text []byte, escape byte) []byte {
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

// BadText is a line that is not what the layout says; the lines after it may be.
type BadText struct{ reason string }

func (e *BadText) Error() string { return e.reason }

// Split cuts a line into r.Fields, reading more lines where a quoted column goes on.
func (r *Splitter) Split(line []byte) error {
	r.Fields = r.Fields[:0]
	if r.Layout.Csv {
		return r.splitCSV(line)
	}
	for more := true; more; {
		var f Field
		f.Text, line, more = r.cut(line, r.Layout.delimiter)
		f.Null = r.Layout.isNull(f.Text)
		r.Fields = append(r.Fields, f)
	}
	return nil
}

// escapes reports whether the escape character escapes the next one, in a quoted column or another.
func (l *Rules) escapes(next byte, quoted bool) bool {
	return !l.escapeQuotes || quoted && (next == l.quote || next == l.Escape)
}

// quotesUnseen says what to do about a wrong quote where the first lines have none.
func (l *Rules) quotesUnseen() string {
	if !l.unquoted {
		return ""
	}
	return `, and no column in the text's first lines has quotes: {"text": {"quote": ""}} in a mapping file takes ` +
		`quotes for text, {"text": {"quote": "\""}} takes quoted columns over line ends`
}

// swallowed says which lines are in the row that began in line first, if it is more than one.
func (r *Splitter) swallowed(first int64) string {
	if r.Lines.Line == first {
		return ""
	}
	return fmt.Sprintf(", a row that has lines %d to %d in it, as a quote before was not closed", first, r.Lines.Line)
}

// splitCSV follows RFC 4180: a quote within a quoted column is doubled, or escaped where there is an escape character.
func (r *Splitter) splitCSV(line []byte) error {
	delimiter, quote, first := r.Layout.delimiter, r.Layout.quote, r.Lines.Line
	escape := r.Layout.HasEscape
	delimited := func(i int) bool {
		return line[i] == delimiter[0] && (len(delimiter) == 1 || bytes.HasPrefix(line[i:], delimiter))
	}
	// The parts of a column are put together here, since the line's own memory is borrowed.
	var out []byte
	i := 0
	for {
		f := Field{}
		start := len(out)
		if i < len(line) && line[i] == quote && !r.Layout.noQuotes {
			f.Quoted = true
			i++
			for {
				if i >= len(line) {
					if r.Layout.unquoted {
						return &BadText{fmt.Sprintf("the quote before column %d is not closed in its line%s",
							len(r.Fields)+1, r.Layout.quotesUnseen())}
					}
					// The line end belongs to the value, as it is in the file.
					out = append(out, r.Lines.end...)
					total := int64(len(out))
					next, err := r.Lines.Next()
					if err == io.EOF {
						return &BadText{fmt.Sprintf("a quoted column without its closing quote: the %d lines from "+
							"here to the end are in it", r.Lines.Line-first+1)}
					}
					if err != nil {
						return err
					}
					if total+int64(len(next)) > r.Lines.limit {
						return &BadText{fmt.Sprintf("a line of more than %d bytes%s", r.Lines.limit,
							r.swallowed(first))}
					}
					line, i = next, 0
					continue
				}
				c := line[i]
				switch {
				case escape && c == r.Layout.Escape && i+1 < len(line) && r.Layout.escapes(line[i+1], true):
					out = append(out, line[i+1])
					i += 2
					continue
				case escape && c == r.Layout.Escape && i+1 == len(line):
					i++ // it escapes the line end, as MySQL does
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
				return &BadText{fmt.Sprintf("%q after the closing quote of column %d%s%s", line[i], len(r.Fields)+1,
					r.swallowed(first), r.Layout.quotesUnseen())}
			}
		} else {
			from := i
			for i < len(line) && !delimited(i) {
				if escape && line[i] == r.Layout.Escape && i+1 < len(line) && r.Layout.escapes(line[i+1], false) {
					i++
				}
				out = append(out, line[i])
				i++
			}
			f.Null = r.Layout.isNull(line[from:i])
		}
		// out may move as it grows; the text of each column does not change after it was put down.
		f.Text = out[start:len(out):len(out)]
		r.Fields = append(r.Fields, f)
		if i >= len(line) {
			return nil
		}
		i += len(delimiter)
		if i >= len(line) {
			r.Fields = append(r.Fields, Field{Null: r.Layout.isNull(nil)})
			return nil
		}
	}
}
