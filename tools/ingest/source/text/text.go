package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// Reader reads delimited text: Hive's own layout, or CSV.
//
//	Hive   columns between ^A, items of lists and members of structs between ^B, a map's key and value between ^C,
//	       and one more control character for each further level; \N is null; the escape character makes the
//	       next literal
//	CSV    columns between commas, quoted where needed; a quoted column may hold line ends
type Reader struct {
	lines.Splitter
	lines.Rows
	// undelimited: nobody said what is between columns, so that it is Hive's ^A, or a comma.
	undelimited bool
	empty       bool     // there is not even a header
	names       []string // of the header, without blanks around them
	// sampled reports whether the type of a column is that of a stream's first values. nil: of none.
	sampled func(name string) bool
	limits  *column.Limits
}

// NewReader reads the header, if the layout has one. nodes are the columns by the DDL or the mapping; typeOf gives
// the type of a column that the header names.
func NewReader(in *lines.Reader, nodes []*column.Type, t *lines.Layout, typeOf typeOf,
	opts *column.ReadOptions) (*Reader, error) {
	layout, err := lines.NewRules(t)
	if err != nil {
		return nil, err
	}
	r := &Reader{Splitter: lines.Splitter{Lines: in, Layout: layout},
		Rows: lines.Rows{Nodes: nodes, Target: opts.ChunkBytes}, undelimited: t.Delimiter == "", limits: &opts.Limits}
	for range layout.Skip {
		if _, err := in.Next(); err != nil && err != io.EOF {
			return nil, err
		}
	}
	if layout.Header {
		line, err := in.Next()
		if err == io.EOF {
			r.empty = true
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if err := r.Split(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", in.Line, err)
		}
		if err := r.bindHeader(typeOf); err != nil {
			return nil, err
		}
	}
	if len(r.Nodes) == 0 {
		return nil, errors.New("text has no schema of its own: give --ddl FILE, or text.columns in a mapping file")
	}
	return r, nil
}

// bindHeader takes the columns from the header line, in its order.
func (r *Reader) bindHeader(typeOf typeOf) error {
	known := map[string]*column.Type{}
	var names []string
	for _, n := range r.Nodes {
		known[n.Name] = n
		names = append(names, n.Name)
	}
	if len(r.Fields) == 1 && r.undelimited && !r.Fields[0].Quoted && bytes.ContainsAny(r.Fields[0].Text, ",;|\t") {
		return fmt.Errorf("line %d: its only column would be %s: text.delimiter in the mapping file, or text.quote "+
			"for commas, says what is between columns",
			r.Lines.Line, column.Quote(string(r.Fields[0].Text)))
	}
	var nodes []*column.Type
	taken := map[string]bool{}
	for i, f := range r.Fields {
		name := string(f.Text)
		if !f.Quoted {
			name = column.TrimBlanks(name)
		}
		if name == "" {
			name = fmt.Sprintf("_c%d", i) // as in Spark; the index that pandas writes has no name
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("line %d: the name %q is not UTF-8: text.encoding in the mapping file says what it is, "+
				"as in \"latin1\"", r.Lines.Line, name)
		}
		if taken[name] {
			return fmt.Errorf("line %d: two columns have the name %q: give all of them names with {\"text\": "+
				"{\"skip_lines\": %d, \"columns\": [{\"name\": \"...\"}, ...]}} in a mapping file", r.Lines.Line, name,
				r.Layout.Skip+1)
		}
		taken[name] = true
		r.names = append(r.names, string(bytes.TrimSpace(f.Text)))
		n := known[name]
		switch {
		case n == nil && len(known) > 0:
			return fmt.Errorf("line %d: the schema has no column%s", r.Lines.Line, column.DidYouMean(name, names))
		case n == nil:
			var err error
			if n, err = typeOf(name); err != nil {
				return err
			}
			n.Name = name
		}
		nodes = append(nodes, n)
	}
	r.Nodes = nodes
	return nil
}

func (r *Reader) IsEmpty() bool { return r.empty }

func (r *Reader) Close() error { return r.Lines.Close() }

func (r *Reader) Next(ctx context.Context) (*column.Batch, error) {
	return r.Batch(ctx, r.appendRow)
}

// appendRow appends the next row.
func (r *Reader) appendRow(b *column.Batch) (line, size int64, err error) {
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
		if i >= len(r.Fields) {
			a.AppendNull()
			continue
		}
		if err := r.appendField(a, r.Fields[i]); err != nil {
			var text *textError
			if name := r.Nodes[i].Name; r.sampled != nil && r.sampled(name) && !errors.As(err, &text) {
				err = fmt.Errorf("%w, which is what the stream's first values are; {\"columns\": {%q: {\"type\": "+
					"%q}}} in a mapping file takes both", err, name, widerType(string(r.Fields[i].Text)))
			}
			b.Bad = append(b.Bad, column.BadRow{Row: b.Rows, Column: r.Nodes[i].Name, Err: err})
		}
		size += int64(len(r.Fields[i].Text)) + 8
	}
	return line, size, nil
}

// widerType returns a type in Hive's spelling that numbers and a text have in common.
func widerType(text string) string {
	if _, err := column.ParseFloat(column.TrimBlanks(text), 64); err == nil {
		return "double"
	}
	return "string"
}

// nextRow puts the columns of the next row into r.Fields, and returns the number of its first line, what is wrong with
// the row as such, and io.EOF after the last.
func (r *Reader) nextRow() (first int64, bad, err error) {
	for {
		line, err := r.Lines.Next()
		if err != nil {
			return 0, nil, err
		}
		// To Hive an empty line is a row of nulls; to what writes CSV or a header it is none.
		if !r.hives() && len(line) == 0 && len(r.Nodes) > 1 {
			continue
		}
		first := r.Lines.Line
		err = r.Split(line)
		var wrong *lines.BadText
		switch {
		case errors.As(err, &wrong):
			r.Fields = r.Fields[:0]
			return first, err, nil
		case err != nil:
			return 0, nil, err
		case len(r.Fields) > len(r.Nodes):
			// A delimiter at the end of every line, as in the files of TPC-H, ends the last column and begins none.
			last := r.Fields[len(r.Nodes)]
			if !r.Layout.IgnoreExtra && (len(r.Fields) > len(r.Nodes)+1 || len(last.Text) > 0 || last.Quoted) {
				return first, fmt.Errorf("%s, the schema has %d; \"text\": {\"extra\": \"ignore\"} in a "+
					"mapping file leaves the others out", columns(len(r.Fields)), len(r.Nodes)), nil
			}
			r.Fields = r.Fields[:len(r.Nodes)]
		case len(r.Fields) < len(r.Nodes) && r.Layout.BadShort:
			return first, fmt.Errorf("%s, the schema has %d: leave such rows out with --on-bad-row "+
				"quarantine; if they are whole, \"text\": {\"short\": \"null\"} in a mapping file takes the missing "+
				"columns for null", columns(len(r.Fields)), len(r.Nodes)), nil
		case r.repeatsNames():
			return first, errors.New("the names of the columns again, as where files were put together: take the " +
				"line out, or leave it out with --on-bad-row quarantine; if it is a row, text.skip_lines and " +
				"text.columns in a mapping file give the names"), nil
		}
		return first, nil, nil
	}
}

// repeatsNames reports whether the row at hand has the names of the header.
func (r *Reader) repeatsNames() bool {
	if len(r.names) < 2 || len(r.Fields) != len(r.names) {
		return false
	}
	for i, f := range r.Fields {
		text := f.Text
		if i == 0 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if string(bytes.TrimSpace(text)) != r.names[i] {
			return false
		}
	}
	return true
}

// hives reports whether the layout may be that of Hive's own text, which has no quotes, no names and no brackets.
func (r *Reader) hives() bool { return !r.Layout.Csv && !r.Layout.Header && !r.Layout.BadShort }

// columns says how many columns there are.
func columns(n int) string {
	if n == 1 {
		return "1 column"
	}
	return fmt.Sprintf("%d columns", n)
}

// appendField appends a column's value; on an error, a null.
func (r *Reader) appendField(a *column.Array, f lines.Field) error {
	if f.Null {
		a.AppendNull()
		return nil
	}
	before := a.Len
	err := refuseText(a.Type, f.Text)
	if err == nil {
		err = r.appendValue(a, f.Text, 1)
	}
	if err != nil {
		a.Truncate(before)
		a.AppendNull()
	}
	return err
}

// A textError says that a value is text, which the type of its column was inferred without.
type textError struct{ text, table string }

func (e *textError) Error() string {
	return fmt.Sprintf("%s is text, and the table has %s", column.Quote(e.text), e.table)
}

// refuseText returns an error for what the inference left out of a column: types are read less strictly.
func refuseText(n *column.Type, text []byte) error {
	if n.NoText == "" {
		return nil
	}
	s := column.TrimBlanks(string(text))
	if s == "" || !isText(s) && (s != "-0" || n.Elem == vector.Float32 || n.Elem == vector.Float64) {
		return nil
	}
	return &textError{s, n.NoText}
}

// appendValue appends a value whose parts are separated by the character of the given level.
func (r *Reader) appendValue(a *column.Array, text []byte, level int) error {
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
		if r.Layout.HasEscape && !r.Layout.Csv {
			text = lines.Unescape(text, r.Layout.Escape)
		}
		// As in Hive, no text but blanks is no number; an empty string and empty bytes are values.
		if (n.Shape == column.Number || n.Shape == column.Bytes && n.Logical != "") && len(bytes.TrimSpace(text)) == 0 {
			a.AppendNull()
			return nil
		}
		return column.AppendText(a, text, r.limits)
	}
	if level >= len(r.Layout.Separators) || n.Shape == column.Map && level+1 >= len(r.Layout.Separators) {
		return fmt.Errorf("nested deeper than the %d separators of Hive's text", len(r.Layout.Separators))
	}
	sep := r.Layout.Separators[level]
	switch n.Shape {
	case column.List:
		rest, bracketed := text, false
		if inner, ok := inBrackets(text); ok && !r.hives() && a.Children[0].Type.Shape == column.Number {
			rest, sep, bracketed = inner, ',', true
		}
		if a.Children[0].Type.Shape == column.String && !r.hives() {
			if done, err := r.appendStrings(a, text, sep); done || err != nil {
				return err
			}
		}
		for more := len(rest) > 0; more; {
			var item []byte
			item, rest, more = r.Cut(rest, sep)
			if bracketed && isNullItem(bytes.TrimSpace(item)) {
				a.Children[0].AppendNull()
				continue
			}
			if err := r.appendPart(a.Children[0], item, level+1); err != nil {
				if level == 1 && a.Children[0].Type.Shape == column.Number {
					err = fmt.Errorf("%w%s", err, itemsHint(text))
				}
				return err
			}
		}
	case column.Map:
		for rest, more := text, len(text) > 0; more; {
			var item []byte
			item, rest, more = r.Cut(rest, sep)
			key, value, ok := r.Cut(item, r.Layout.Separators[level+1])
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
			item, rest, more = r.Cut(rest, sep)
			if err := r.appendPart(c, item, level+1); err != nil {
				return err
			}
		}
		if more && !r.Layout.IgnoreExtra {
			return fmt.Errorf("more than the %d members of a struct", len(a.Children))
		}
	}
	a.AppendEntry(true)
	return nil
}

func (r *Reader) appendPart(a *column.Array, text []byte, level int) error {
	null := r.Layout.Null
	if null == nil {
		null = []byte(`\N`)
	}
	if bytes.Equal(text, null) {
		a.AppendNull()
		return nil
	}
	return r.appendValue(a, text, level)
}
