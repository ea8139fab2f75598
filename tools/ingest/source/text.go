package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// textReader reads delimited text: Hive's own layout, or CSV.
//
//	Hive   columns between ^A, items of lists and members of structs between ^B, a map's key and value between ^C, and one
//	       more control character for each further level; \N is null; the escape character, if any, makes the next literal
//	CSV    columns between commas, quoted where needed; a quoted column may hold line ends
type textReader struct {
	lines  *lineReader
	nodes  []*node
	wanted []bool
	opts   textLayout
	// undelimited: nobody said what is between columns, so that it is Hive's ^A, or a comma.
	undelimited bool
	empty       bool // there is not even a header
	limits      *Limits
	target      int64
	row         int64
	fields      []textField
}

// A textLayout is TextOptions with every default filled in.
type textLayout struct {
	csv        bool
	delimiter  []byte // between columns
	separators []byte // by level, from 1 on: items, keys, then those of nested values
	quote      byte   // CSV
	escape     byte
	hasEscape  bool
	null       []byte // nil: the empty column without quotes, where emptyNull is set
	emptyNull  bool   // CSV
	skip       int
	header     bool
	// ignoreExtra: columns beyond those of the schema are left out, as Hive does.
	ignoreExtra bool
}

// A textField is the raw text of a column.
type textField struct {
	text   []byte
	quoted bool // CSV: it is never null
}

func newTextLayout(t *TextOptions) (textLayout, error) {
	l := textLayout{csv: t.CSV, delimiter: []byte{1}, separators: []byte{1, 2, 3, 4, 5, 6, 7, 8}, quote: '"', null: []byte(`\N`), skip: t.SkipLines, header: t.Header, ignoreExtra: t.Extra == extraIgnore}
	if t.CSV {
		l.delimiter, l.null, l.emptyNull = []byte{','}, nil, !t.EmptyText
	}
	if t.Delimiter != "" {
		l.delimiter = []byte(t.Delimiter)
	}
	for i, s := range []string{t.Items, t.MapKeys} {
		if s != "" {
			l.separators[i+1] = s[0]
		}
	}
	if t.Quote != "" {
		l.quote = t.Quote[0]
	}
	if t.Escape != "" {
		l.escape, l.hasEscape = t.Escape[0], true
	}
	if t.HasNull {
		l.null, l.emptyNull = []byte(t.Null), false
	}
	if bytes.IndexByte(l.delimiter, '\n') >= 0 || l.csv && bytes.IndexByte(l.delimiter, l.quote) >= 0 || l.hasEscape && bytes.IndexByte(l.delimiter, l.escape) >= 0 {
		return l, fmt.Errorf("text: the delimiter %q has another meaning", l.delimiter)
	}
	return l, nil
}

// newTextReader reads the header, if the layout has one. nodes are the columns by the DDL or the mapping; typeOf gives
// the type of a column that the header names.
func newTextReader(lines *lineReader, nodes []*node, t *TextOptions, typeOf func(name string) (*node, error), opts *Options) (*textReader, error) {
	layout, err := newTextLayout(t)
	if err != nil {
		return nil, err
	}
	r := &textReader{lines: lines, nodes: nodes, opts: layout, undelimited: t.Delimiter == "", limits: &opts.Limits, target: opts.ChunkBytes}
	lines.oldEnds()
	for range layout.skip {
		if _, err := lines.next(); err != nil && err != io.EOF {
			return nil, err
		}
	}
	if layout.header {
		line, err := lines.next()
		if err == io.EOF {
			r.empty = true
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if err := r.split(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", lines.line, err)
		}
		if err := r.bindHeader(typeOf); err != nil {
			return nil, err
		}
	}
	if len(r.nodes) == 0 {
		return nil, errors.New("text has no schema of its own: give --ddl FILE, or text.columns or text.header in a mapping file, " +
			`as {"text": {"quote": "\"", "header": true, "infer": true}} for CSV that begins with names`)
	}
	return r, nil
}

// bindHeader takes the columns from the header line, in its order.
func (r *textReader) bindHeader(typeOf func(string) (*node, error)) error {
	known := map[string]*node{}
	var names []string
	for _, n := range r.nodes {
		known[n.name] = n
		names = append(names, n.name)
	}
	if len(r.fields) == 1 && r.undelimited && !r.fields[0].quoted && bytes.ContainsAny(r.fields[0].text, ",;|\t") {
		return fmt.Errorf("line %d: its only column would be %s: text.delimiter in the mapping file, or text.quote for commas, says what is between columns",
			r.lines.line, quoteCell(string(r.fields[0].text)))
	}
	var nodes []*node
	taken := map[string]bool{}
	for i, f := range r.fields {
		name := string(f.text)
		if name == "" {
			name = fmt.Sprintf("_c%d", i) // as in Spark; the index that pandas writes has no name
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("line %d: the name %q is not UTF-8: text.encoding in the mapping file says what it is, as in \"latin1\"", r.lines.line, name)
		}
		if taken[name] {
			return fmt.Errorf("line %d: two columns have the name %q: give all of them names with text.columns in the mapping file, \"skip_lines\": %d and no header",
				r.lines.line, name, r.opts.skip+1)
		}
		taken[name] = true
		n := known[name]
		switch {
		case n == nil && len(known) > 0:
			return fmt.Errorf("line %d: the schema has no column%s", r.lines.line, didYouMean(name, names))
		case n == nil:
			var err error
			if n, err = typeOf(name); err != nil {
				return err
			}
			n.name = name
		}
		nodes = append(nodes, n)
	}
	r.nodes = nodes
	return nil
}

func (r *textReader) columns() []*node { return r.nodes }

func (r *textReader) want(wanted []bool) error {
	r.wanted = wanted
	return nil
}

func (r *textReader) hasNothing() bool { return r.empty }

func (r *textReader) close() error { return r.lines.close() }

func (r *textReader) next(ctx context.Context) (*batch, error) {
	b := &batch{rowGroup: -1, row: r.row}
	for i, n := range r.nodes {
		var a *array
		if r.wanted == nil || r.wanted[i] {
			a = newArray(n)
		}
		b.arrays = append(b.arrays, a)
	}
	for size := int64(0); size < r.target && b.rows < maxRows; {
		if b.rows%256 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		first, bad, err := r.nextRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if bad != nil {
			b.bad = append(b.bad, badRow{b.rows, "", bad})
		}
		for i, a := range b.arrays {
			if a == nil {
				continue
			}
			if i >= len(r.fields) {
				a.appendNull()
				continue
			}
			if err := r.appendField(a, r.fields[i]); err != nil {
				b.bad = append(b.bad, badRow{b.rows, r.nodes[i].name, err})
			}
			size += int64(len(r.fields[i].text)) + 8
		}
		b.lines = append(b.lines, first)
		b.rows++
	}
	if b.rows == 0 {
		return nil, io.EOF
	}
	r.row += int64(b.rows)
	return b, nil
}

// nextRow puts the columns of the next row into r.fields, and returns the number of its first line, what is wrong with the row as
// such, and io.EOF after the last.
func (r *textReader) nextRow() (first int64, bad, err error) {
	for {
		line, err := r.lines.next()
		if err != nil {
			return 0, nil, err
		}
		// To Hive an empty line is a row of nulls; to what writes CSV or a header it is none.
		if (r.opts.csv || r.opts.header) && len(line) == 0 && len(r.nodes) > 1 {
			continue
		}
		first := r.lines.line
		err = r.split(line)
		var wrong *badText
		switch {
		case errors.As(err, &wrong):
			r.fields = r.fields[:0]
			return first, err, nil
		case err != nil:
			return 0, nil, err
		case len(r.fields) > len(r.nodes):
			// A delimiter at the end of every line, as in the files of TPC-H, ends the last column and begins none.
			last := r.fields[len(r.nodes)]
			if !r.opts.ignoreExtra && (len(r.fields) > len(r.nodes)+1 || len(last.text) > 0 || last.quoted) {
				return first, fmt.Errorf("%d columns, the schema has %d; \"text\": {\"extra\": \"ignore\"} in a mapping file leaves the others out", len(r.fields), len(r.nodes)), nil
			}
			r.fields = r.fields[:len(r.nodes)]
		}
		return first, nil, nil
	}
}

// isNull reports whether the layout says that a column is null.
func (r *textReader) isNull(f textField) bool {
	return !f.quoted && (r.opts.null != nil && bytes.Equal(f.text, r.opts.null) || r.opts.emptyNull && len(f.text) == 0)
}

// appendField appends a column's value; on an error, a null.
func (r *textReader) appendField(a *array, f textField) error {
	if r.isNull(f) {
		a.appendNull()
		return nil
	}
	before := a.n
	if err := r.appendValue(a, f.text, 1); err != nil {
		a.truncate(before)
		a.appendNull()
		return err
	}
	return nil
}

// appendValue appends a value whose parts are separated by the character of the given level.
func (r *textReader) appendValue(a *array, text []byte, level int) error {
	n := a.node
	if n.unread {
		a.appendNull()
		return nil
	}
	if n.shape == shapeNull {
		if len(text) > 0 {
			return fmt.Errorf("%s in a column of type void", quoteCell(string(text)))
		}
		a.appendNull()
		return nil
	}
	if n.shape != shapeList && n.shape != shapeMap && n.shape != shapeStruct {
		if r.opts.hasEscape && !r.opts.csv {
			text = unescape(text, r.opts.escape)
		}
		// As in Hive, no text but blanks is no number; an empty string and empty bytes are values.
		if (n.shape == shapeNumber || n.shape == shapeBytes && n.logical != "") && len(bytes.TrimSpace(text)) == 0 {
			a.appendNull()
			return nil
		}
		return appendText(a, text, r.limits)
	}
	if level >= len(r.opts.separators) || n.shape == shapeMap && level+1 >= len(r.opts.separators) {
		return fmt.Errorf("nested deeper than the %d separators of Hive's text", len(r.opts.separators))
	}
	sep := r.opts.separators[level]
	switch n.shape {
	case shapeList:
		for rest, more := text, len(text) > 0; more; {
			var item []byte
			item, rest, more = r.cut(rest, sep)
			if err := r.appendPart(a.children[0], item, level+1); err != nil {
				return err
			}
		}
	case shapeMap:
		for rest, more := text, len(text) > 0; more; {
			var item []byte
			item, rest, more = r.cut(rest, sep)
			key, value, ok := r.cut(item, r.opts.separators[level+1])
			if err := r.appendPart(a.children[0], key, level+2); err != nil {
				return err
			}
			if !ok {
				a.children[1].appendNull()
			} else if err := r.appendPart(a.children[1], value, level+2); err != nil {
				return err
			}
		}
	case shapeStruct:
		rest, more := text, true
		for _, c := range a.children {
			if !more {
				c.appendNull()
				continue
			}
			var item []byte
			item, rest, more = r.cut(rest, sep)
			if err := r.appendPart(c, item, level+1); err != nil {
				return err
			}
		}
		if more && !r.opts.ignoreExtra {
			return fmt.Errorf("more than the %d members of a struct", len(a.children))
		}
	}
	a.appendEntry(true)
	return nil
}

func (r *textReader) appendPart(a *array, text []byte, level int) error {
	null := r.opts.null
	if null == nil {
		null = []byte(`\N`)
	}
	if bytes.Equal(text, null) {
		a.appendNull()
		return nil
	}
	return r.appendValue(a, text, level)
}

// cut splits text at the first separator that is not escaped.
func (r *textReader) cut(text []byte, sep byte) (before, after []byte, found bool) {
	if !r.opts.hasEscape || r.opts.csv {
		return bytes.Cut(text, []byte{sep})
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case r.opts.escape:
			i++
		case sep:
			return text[:i], text[i+1:], true
		}
	}
	return text, nil, false
}

// cutColumn is cut at the delimiter, which may be more than a byte.
func (r *textReader) cutColumn(text []byte) (before, after []byte, found bool) {
	delimiter := r.opts.delimiter
	if len(delimiter) == 1 {
		return r.cut(text, delimiter[0])
	}
	if !r.opts.hasEscape {
		return bytes.Cut(text, delimiter)
	}
	for i := 0; i < len(text); i++ {
		if text[i] == r.opts.escape {
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
func (r *textReader) split(line []byte) error {
	r.fields = r.fields[:0]
	if r.opts.csv {
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
func (r *textReader) splitCSV(line []byte) error {
	delimiter, quote, first := r.opts.delimiter, r.opts.quote, r.lines.line
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
					if total+int64(len(next)) > r.limits.LineBytes {
						return &badText{fmt.Sprintf("a line of more than %d bytes", r.limits.LineBytes)}
					}
					line, i = next, 0
					continue
				}
				c := line[i]
				switch {
				case r.opts.hasEscape && c == r.opts.escape && r.opts.escape != quote && i+1 < len(line):
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
				if r.opts.hasEscape && line[i] == r.opts.escape && i+1 < len(line) {
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
