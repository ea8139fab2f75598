package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// textReader reads delimited text: Hive's own layout, or CSV.
//
//	Hive   columns between ^A, items of lists and members of structs between ^B, a map's key and value between ^C, and one
//	       more control character for each further level; \N is null; the escape character, if any, makes the next literal
//	CSV    columns between commas, quoted where needed; a quoted column may hold line ends
type textReader struct {
	splitter
	rowReader
	// undelimited: nobody said what is between columns, so that it is Hive's ^A, or a comma.
	undelimited bool
	empty       bool // there is not even a header
	limits      *column.Limits
}

// newTextReader reads the header, if the layout has one. nodes are the columns by the DDL or the mapping; typeOf gives
// the type of a column that the header names.
func newTextReader(lines *lineReader, nodes []*column.Type, t *TextOptions, typeOf func(name string) (*column.Type, error), opts *column.ReadOptions) (*textReader, error) {
	layout, err := newTextLayout(t)
	if err != nil {
		return nil, err
	}
	r := &textReader{splitter: splitter{lines: lines, layout: layout}, rowReader: rowReader{nodes: nodes, target: opts.ChunkBytes}, undelimited: t.Delimiter == "", limits: &opts.Limits}
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
func (r *textReader) bindHeader(typeOf func(string) (*column.Type, error)) error {
	known := map[string]*column.Type{}
	var names []string
	for _, n := range r.nodes {
		known[n.Name] = n
		names = append(names, n.Name)
	}
	if len(r.fields) == 1 && r.undelimited && !r.fields[0].quoted && bytes.ContainsAny(r.fields[0].text, ",;|\t") {
		return fmt.Errorf("line %d: its only column would be %s: text.delimiter in the mapping file, or text.quote for commas, says what is between columns",
			r.lines.line, column.Quote(string(r.fields[0].text)))
	}
	var nodes []*column.Type
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
				r.lines.line, name, r.layout.skip+1)
		}
		taken[name] = true
		n := known[name]
		switch {
		case n == nil && len(known) > 0:
			return fmt.Errorf("line %d: the schema has no column%s", r.lines.line, column.DidYouMean(name, names))
		case n == nil:
			var err error
			if n, err = typeOf(name); err != nil {
				return err
			}
			n.Name = name
		}
		nodes = append(nodes, n)
	}
	r.nodes = nodes
	return nil
}

func (r *textReader) HasNothing() bool { return r.empty }

func (r *textReader) Close() error { return r.lines.close() }

func (r *textReader) Next(ctx context.Context) (*column.Batch, error) {
	return r.batch(ctx, r.appendRow)
}

// appendRow appends the next row.
func (r *textReader) appendRow(b *column.Batch) (line, size int64, err error) {
	line, bad, err := r.nextRow()
	if err != nil {
		return 0, 0, err
	}
	if bad != nil {
		b.Bad = append(b.Bad, column.BadRow{Row: b.Rows, Column: "", Err: bad})
	}
	for i, a := range b.Arrays {
		if a == nil {
			continue
		}
		if i >= len(r.fields) {
			a.AppendNull()
			continue
		}
		if err := r.appendField(a, r.fields[i]); err != nil {
			b.Bad = append(b.Bad, column.BadRow{Row: b.Rows, Column: r.nodes[i].Name, Err: err})
		}
		size += int64(len(r.fields[i].text)) + 8
	}
	return line, size, nil
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
		if (r.layout.csv || r.layout.header) && len(line) == 0 && len(r.nodes) > 1 {
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
			if !r.layout.ignoreExtra && (len(r.fields) > len(r.nodes)+1 || len(last.text) > 0 || last.quoted) {
				return first, fmt.Errorf("%d columns, the schema has %d; \"text\": {\"extra\": \"ignore\"} in a mapping file leaves the others out", len(r.fields), len(r.nodes)), nil
			}
			r.fields = r.fields[:len(r.nodes)]
		}
		return first, nil, nil
	}
}

// appendField appends a column's value; on an error, a null.
func (r *textReader) appendField(a *column.Array, f textField) error {
	if r.isNull(f) {
		a.AppendNull()
		return nil
	}
	before := a.Len
	if err := r.appendValue(a, f.text, 1); err != nil {
		a.Truncate(before)
		a.AppendNull()
		return err
	}
	return nil
}

// appendValue appends a value whose parts are separated by the character of the given level.
func (r *textReader) appendValue(a *column.Array, text []byte, level int) error {
	n := a.Type
	if n.Unread {
		a.AppendNull()
		return nil
	}
	if n.Shape == column.Null {
		if len(text) > 0 {
			return fmt.Errorf("%s in a column of type void", column.Quote(string(text)))
		}
		a.AppendNull()
		return nil
	}
	if n.Shape != column.List && n.Shape != column.Map && n.Shape != column.Struct {
		if r.layout.hasEscape && !r.layout.csv {
			text = unescape(text, r.layout.escape)
		}
		// As in Hive, no text but blanks is no number; an empty string and empty bytes are values.
		if (n.Shape == column.Number || n.Shape == column.Bytes && n.Logical != "") && len(bytes.TrimSpace(text)) == 0 {
			a.AppendNull()
			return nil
		}
		return column.AppendText(a, text, r.limits)
	}
	if level >= len(r.layout.separators) || n.Shape == column.Map && level+1 >= len(r.layout.separators) {
		return fmt.Errorf("nested deeper than the %d separators of Hive's text", len(r.layout.separators))
	}
	sep := r.layout.separators[level]
	switch n.Shape {
	case column.List:
		for rest, more := text, len(text) > 0; more; {
			var item []byte
			item, rest, more = r.cut(rest, sep)
			if err := r.appendPart(a.Children[0], item, level+1); err != nil {
				return err
			}
		}
	case column.Map:
		for rest, more := text, len(text) > 0; more; {
			var item []byte
			item, rest, more = r.cut(rest, sep)
			key, value, ok := r.cut(item, r.layout.separators[level+1])
			if err := r.appendPart(a.Children[0], key, level+2); err != nil {
				return err
			}
			if !ok {
				a.Children[1].AppendNull()
			} else if err := r.appendPart(a.Children[1], value, level+2); err != nil {
				return err
			}
		}
	case column.Struct:
		rest, more := text, true
		for _, c := range a.Children {
			if !more {
				c.AppendNull()
				continue
			}
			var item []byte
			item, rest, more = r.cut(rest, sep)
			if err := r.appendPart(c, item, level+1); err != nil {
				return err
			}
		}
		if more && !r.layout.ignoreExtra {
			return fmt.Errorf("more than the %d members of a struct", len(a.Children))
		}
	}
	a.AppendEntry(true)
	return nil
}

func (r *textReader) appendPart(a *column.Array, text []byte, level int) error {
	null := r.layout.null
	if null == nil {
		null = []byte(`\N`)
	}
	if bytes.Equal(text, null) {
		a.AppendNull()
		return nil
	}
	return r.appendValue(a, text, level)
}
