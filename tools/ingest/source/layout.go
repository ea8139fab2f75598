package source

import (
	"bytes"
	"fmt"
)

// TextOptions say how delimited text is laid out. Zero fields take Hive's defaults, or those of CSV when CSV is set.
type TextOptions struct {
	CSV       bool   // quotes as in RFC 4180: set by a quote in the mapping, or by OpenCSVSerde
	Delimiter string // between columns, any number of bytes; default ^A, for CSV a comma
	Items     string // between the items of a list; default ^B
	MapKeys   string // between a key and its value; default ^C
	Quote     string // CSV; default "
	Escape    string // default none; for OpenCSVSerde a backslash
	Null      string // default \N, for CSV the empty unquoted value
	HasNull   bool
	EmptyText bool // CSV: an empty column is empty text, never null: set by OpenCSVSerde
	Header    bool // the first line names the columns
	// Infer: columns that the header names and nothing gives a type get the one that the values of all files have.
	Infer     bool
	SkipLines int // lines before the data, after which no header is expected
	// Extra says what columns beyond those of the schema do to a row: bad or ignore. Default bad, with a DDL ignore, as Hive does. One that is
	// empty, at the end, never counts.
	Extra   string
	Columns []TextColumn
	charset charset // a byte order mark in the text overrules it
}

// overlay returns t with what o sets in place of its own.
func (t *TextOptions) overlay(o *TextOptions) TextOptions {
	out := *t
	for _, f := range []struct{ to, from *string }{
		{&out.Delimiter, &o.Delimiter}, {&out.Items, &o.Items}, {&out.MapKeys, &o.MapKeys}, {&out.Quote, &o.Quote}, {&out.Escape, &o.Escape},
		{&out.Extra, &o.Extra},
	} {
		if *f.from != "" {
			*f.to = *f.from
		}
	}
	if o.HasNull {
		out.Null, out.HasNull = o.Null, true
	}
	out.CSV, out.EmptyText = out.CSV || o.CSV, out.EmptyText && !o.HasNull
	out.Header = out.Header || o.Header
	out.SkipLines = max(out.SkipLines, o.SkipLines)
	out.charset = o.charset
	return out
}

// A TextColumn is a column of delimited text, in the order of the line.
type TextColumn struct{ Name, Type string }

// What TextOptions.Extra may be.
const (
	extraBad    = "bad"
	extraIgnore = "ignore"
)

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
