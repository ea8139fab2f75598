package lines

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// A Layout describes the format of delimited text. Zero fields take Hive's defaults, or those of CSV when CSV is set.
type Layout struct {
	CSV       bool   // quotes as in RFC 4180: set by a quote in the mapping, or by OpenCSVSerde
	Delimiter string // between columns, any number of bytes; default ^A, for CSV a comma
	Items     string // between the items of a list; default ^B
	MapKeys   string // between a key and its value; default ^C
	Quote     string // CSV; default "
	NoQuotes  bool   // quotes are text: set by an empty quote in the mapping
	// Unquoted: CSV that was found in a text whose first lines have no quoted column: one that does not end in its line
	// is a bad row.
	Unquoted bool
	Escape   string // default none; for OpenCSVSerde a backslash
	// EscapeQuotes: in CSV, quotes and the escape character itself are escaped, in quotes, as in Spark. Default: any
	// character is.
	EscapeQuotes bool
	Null         string // default \N, for CSV the empty unquoted value
	HasNull      bool
	EmptyText    bool // CSV: an empty column is empty text, never null: set by OpenCSVSerde
	Header       bool // the first line names the columns
	// Infer: columns that have a name and no type get the one that the values of all files have. Default: where the
	// layout is found in the text (ToFind).
	Infer, HasInfer bool
	SkipLines       int // lines before the data, after which no header is expected
	// Extra says what columns beyond those of the schema do to a row: bad or ignore. Default bad, with a DDL ignore, as
	// Hive does. One that is empty, at the end, never counts.
	Extra string
	// Short says what a row is of fewer columns than the schema: ShortNull, its last ones are null, as in Hive, or
	// ShortBad. Default null, bad where the layout is found in the text.
	Short   string
	Columns []Column
	Charset charset // a byte order mark in the text overrules it
}

// ToFind reports whether t says too little to read by: neither all columns with their types, nor a header with what is
// between its names. The rest is found in the text.
func (t *Layout) ToFind() bool {
	typed := slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Type != "" })
	return !typed && (!t.Header || t.Delimiter == "" && !t.CSV)
}

// Overlay returns t with what o sets in place of its own.
func (t *Layout) Overlay(o *Layout) Layout {
	out := *t
	out.Delimiter, out.Items = cmp.Or(o.Delimiter, t.Delimiter), cmp.Or(o.Items, t.Items)
	out.MapKeys, out.Quote = cmp.Or(o.MapKeys, t.MapKeys), cmp.Or(o.Quote, t.Quote)
	out.NoQuotes = t.NoQuotes || o.NoQuotes
	out.Escape, out.Extra = cmp.Or(o.Escape, t.Escape), cmp.Or(o.Extra, t.Extra)
	out.Short = cmp.Or(o.Short, t.Short)
	if o.HasNull {
		out.Null, out.HasNull = o.Null, true
	}
	out.CSV, out.EmptyText = out.CSV || o.CSV, out.EmptyText && !o.HasNull
	out.Header = out.Header || o.Header
	out.SkipLines = max(out.SkipLines, o.SkipLines)
	return out
}

// A Column is a column of delimited text, in the order of the line. Type may be empty.
type Column struct{ Name, Type string }

// What Layout.Extra and Layout.Short may be.
const (
	ExtraBad    = "bad"
	ExtraIgnore = "ignore"
	ShortBad    = "bad"
	ShortNull   = "null"
)

// A Rules is Layout with every default filled in.
type Rules struct {
	Csv        bool
	delimiter  []byte // between columns
	Separators []byte // by level, from 1 on: items, keys, then those of nested values
	quote      byte   // CSV
	noQuotes   bool   // see Layout.NoQuotes
	unquoted   bool   // see Layout.Unquoted
	Escape     byte
	HasEscape  bool
	// escapeQuotes: see Layout.EscapeQuotes.
	escapeQuotes bool
	Null         []byte // nil: the empty column without quotes, where emptyNull is set
	emptyNull    bool   // CSV
	trimNull     bool   // see isNull
	Skip         int
	Header       bool
	// IgnoreExtra: columns beyond those of the schema are left out, as Hive does.
	IgnoreExtra bool
	// BadShort: a row of fewer columns than the schema is bad.
	BadShort bool
}

// NewRules returns the rules that a layout stands for, or an error where they contradict each other.
func NewRules(t *Layout) (Rules, error) {
	l := Rules{Csv: t.CSV, delimiter: []byte{1}, Separators: []byte{1, 2, 3, 4, 5, 6, 7, 8}, quote: '"',
		Null: []byte(`\N`), Skip: t.SkipLines, Header: t.Header, IgnoreExtra: t.Extra == ExtraIgnore,
		BadShort: t.Short == ShortBad, escapeQuotes: t.EscapeQuotes, noQuotes: t.NoQuotes,
		unquoted: t.Unquoted}
	if t.CSV {
		l.delimiter, l.Null, l.emptyNull = []byte{','}, nil, !t.EmptyText
	}
	if t.Delimiter != "" {
		l.delimiter = []byte(t.Delimiter)
	}
	for i, s := range []string{t.Items, t.MapKeys} {
		if s != "" {
			l.Separators[i+1] = s[0]
		}
	}
	if t.Quote != "" {
		l.quote = t.Quote[0]
	}
	// A quote that escapes is a doubled quote, as it always is.
	if t.Escape != "" && !(l.Csv && t.Escape[0] == l.quote) {
		l.Escape, l.HasEscape = t.Escape[0], true
	}
	if t.HasNull {
		l.Null, l.emptyNull = []byte(t.Null), false
	}
	l.trimNull = len(bytes.TrimSpace(l.Null)) > 0 && len(bytes.TrimSpace(l.Null)) == len(l.Null) &&
		(l.Csv || l.Header || l.BadShort)
	if bytes.IndexByte(l.delimiter, '\n') >= 0 || l.Csv && bytes.IndexByte(l.delimiter, l.quote) >= 0 || l.HasEscape &&
		bytes.IndexByte(l.delimiter, l.Escape) >= 0 {
		return l, fmt.Errorf("text: the delimiter %q has another meaning", l.delimiter)
	}
	return l, nil
}
