package text

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// sampleBytes is how much of a text is read to find its layout, and of a stream, to find its types.
const sampleBytes = 1 << 20

// delimiters are what may be found between columns, the likeliest first, and what messages call them.
var delimiters = []struct{ text, name, suffix string }{
	{",", "commas", ".csv"}, {"\t", "tabs", ".tsv"}, {";", "semicolons", ""}, {"|", "bars", ".psv"},
	{"::", `"::"`, ""}, // as in MovieLens
}

// blank is between columns where nothing else is: see tryBlanks.
const blank = " "

// find returns the layout of a text with what the mapping file does not say of it. That is taken from the text's first
// lines: the delimiter and the quotes with which most lines have as many columns as the first, which has the names.
func find(in *lines.Reader, path string, given *lines.Layout) (lines.Layout, error) {
	first, n, err := firstLine(in, given.SkipLines)
	if err != nil {
		return *given, err
	}
	if first == nil {
		empty := *given
		if len(given.Columns) == 0 { // there is not even a header
			empty.Header, empty.SkipLines = true, n
		}
		return empty, nil
	}
	if at := bytes.IndexByte(first, 0); at >= 0 {
		return *given, column.Refuse("", "its first line has bytes that are 0, as UTF-16 has: say {\"text\": "+
			"{\"encoding\": %q}} in a mapping file", []string{"utf-16be", "utf-16le"}[at%2])
	}
	if one := bytes.TrimSpace(first); len(given.Columns) == 0 && !given.Header && bytes.HasPrefix(one, []byte("{")) &&
		bytes.HasSuffix(one, []byte("}")) {
		return *given, column.Refuse("", "its first line is an object, not names: say --format jsonl for JSON lines")
	}
	if given.Delimiter == "" && bytes.IndexByte(first, 1) >= 0 {
		if len(given.Columns) > 0 {
			return *given, column.Refuse("", "its first line has Hive's delimiter ^A: say what is between columns, "+
				"{\"text\": {\"delimiter\": \"\\u0001\"}} or another, in the mapping file")
		}
		return *given, column.Refuse("", "its first line has Hive's delimiter ^A; Hive's text has no names and no "+
			"types: give --ddl FILE, or text.columns in a mapping file")
	}
	if delimiter, ok := excelDelimiter(first); ok && given.Delimiter == "" {
		below := *given
		below.Delimiter, below.SkipLines = delimiter, n
		return find(in, path, &below)
	}
	var best *trial
	tried := candidates(path, given)
	for _, delimiter := range tried {
		if !bytes.Contains(first, []byte(delimiter)) && given.Delimiter == "" {
			continue
		}
		t, err := tryQuotes(in, given, delimiter)
		if err != nil {
			return *given, err
		}
		if (t.columns() > 1 || given.Delimiter != "") && (best == nil || t.beats(best)) {
			best = t
		}
	}
	if best == nil {
		if best, err = tryBlanks(in, given, first); err != nil {
			return *given, err
		}
	}
	if best == nil {
		if best, err = oneColumn(in, given, tried); err != nil {
			return *given, err
		}
	}
	if best.err != nil {
		return *given, best.err
	}
	// Between commas quotes are what RFC 4180 says, wherever the first is. Most writers of other texts have none.
	best.layout.Unquoted = best.layout.CSV && !given.CSV && !best.sawQuotes &&
		best.layout.Delimiter != "," && best.layout.Delimiter != noDelimiter
	return best.layout, best.check(given)
}

// excelDelimiter returns what a first line says to Excel of the delimiter, as sep=; does.
func excelDelimiter(line []byte) (string, bool) {
	said, ok := bytes.CutPrefix(bytes.Trim(line, `"`), []byte("sep="))
	return string(said), ok && len(said) == 1
}

// firstLine returns the first line that is not skipped and not empty, borrowed, and its number. nil: there is none, and
// the number is that of all lines.
func firstLine(in *lines.Reader, skip int) (line []byte, n int, err error) {
	sample, whole, err := in.Sample(sampleBytes)
	for n := 1; ; n++ {
		line, end := sample.Next()
		switch {
		case end != nil && err != nil:
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		case end != nil && !whole:
			return nil, 0, fmt.Errorf("line %d: the names do not end within %d bytes: say how the text is laid out, "+
				`as {"text": {"delimiter": ",", "quote": "\"", "header": true, "infer": true}} in a mapping file does`,
				n, sampleBytes)
		case end != nil:
			return nil, n - 1, nil
		case n > skip && len(line) > 0:
			return line, n, nil
		}
	}
}

// candidates are the delimiters to try.
func candidates(path string, given *lines.Layout) (out []string) {
	if given.Delimiter != "" {
		return []string{given.Delimiter}
	}
	for _, d := range delimiters {
		if d.suffix != "" && strings.Contains(path, d.suffix) {
			out = slices.Insert(out, 0, d.text)
		} else {
			out = append(out, d.text)
		}
	}
	return out
}

// quotes are what to try around columns. "": nothing.
func quotes(given *lines.Layout) []string {
	if given.NoQuotes {
		return []string{""}
	}
	if given.CSV {
		return []string{cmp.Or(given.Quote, `"`)}
	}
	return []string{`"`, `'`, ""}
}

// delimiterName is what a message calls what is between columns.
func delimiterName(delimiter string) string {
	if delimiter == blank {
		return "blanks"
	}
	for _, d := range delimiters {
		if d.text == delimiter {
			return d.name
		}
	}
	return strconv.Quote(delimiter)
}

// layoutName says what was found.
func layoutName(l *lines.Layout) string {
	name := delimiterName(l.Delimiter)
	switch {
	case l.Delimiter == noDelimiter:
		return "one column"
	case l.Quote == "":
		return name + ", no quotes"
	case l.Quote != `"`:
		name += ", quotes " + l.Quote
	}
	if l.Escape != "" {
		name += ", escapes " + l.Escape
	}
	return name
}

// A trial is how a text's first lines read in a layout.
type trial struct {
	layout lines.Layout
	err    error    // the first line has no columns in this layout
	names  []string // the columns of the first line
	first  int64    // the number of that line
	lines  int64    // how many there are from the first on, empty ones left out
	fits   int64    // those of rows that have as many columns as there should be
	broken int64    // how many rows are none in this layout
	quotes int64    // how many columns, in rows that are, have quotes
	width  int      // how many the second row has
	even   bool     // all after it have as many
	quoted bool     // the quotes are used
	// sawQuotes: a name or a value begins with a quote, in rows that are none too.
	sawQuotes bool
	// values: by column, whether all below the first line are numbers, dates or booleans.
	values []bool
	whole  bool    // each line below the first is such a value as it stands: a time has a blank in it
	long   []bool  // by column: a value below the first line is longer than most names
	again  []int64 // for each column, the line in which its name is a value, too; 0: none
}

// columns returns how many columns rows should have.
func (t *trial) columns() int { return cmp.Or(len(t.layout.Columns), len(t.names)) }

// beats reports whether t is likelier than o, which was tried before.
func (t *trial) beats(o *trial) bool {
	if t.fits == o.fits && t.quoted != o.quoted {
		return t.quoted
	}
	return cmp.Or(cmp.Compare(t.fits, o.fits), cmp.Compare(t.columns(), o.columns()),
		cmp.Compare(t.valued(), o.valued())) > 0
}

// valued returns of how many columns it is known that all are values.
func (t *trial) valued() (n int) {
	for _, v := range t.values {
		if v {
			n++
		}
	}
	return n
}

// tryQuotes returns the likeliest trial with a delimiter.
func tryQuotes(in *lines.Reader, given *lines.Layout, delimiter string) (best *trial, err error) {
	for _, quote := range quotes(given) {
		// Quotes that are all right are quotes, whatever number of columns rows have. So are those of which few are
		// not: rows that are bad are said, values with quotes around them are not.
		if best != nil && (best.quoted && best.broken == 0 || best.fits == best.lines && quote == "" ||
			best.quotes > fewBroken*best.broken) {
			break
		}
		t, err := try(in, given, delimiter, quote)
		if err != nil {
			return nil, err
		}
		if t.broken > 0 && quote == `"` && given.Escape == "" { // as Spark and MySQL write them
			escaping := *given
			escaping.Escape, escaping.EscapeQuotes = `\`, true
			if e, err := try(in, &escaping, delimiter, quote); err != nil {
				return nil, err
			} else if e.quoted && e.broken == 0 {
				return e, nil
			}
		}
		if best == nil || t.beats(best) {
			best = t
		}
	}
	return best, nil
}

// fewBroken is how many columns in quotes there are for each row whose quotes are wrong, where they are quotes.
const fewBroken = 10

// try reads the first lines with a delimiter and a quote.
func try(in *lines.Reader, given *lines.Layout, delimiter, quote string) (*trial, error) {
	t := &trial{layout: *given}
	l := &t.layout
	l.Delimiter, l.Quote, l.CSV = delimiter, quote, quote != ""
	// Of the others, names and values tell nothing that the number of columns does not. MovieLens has bars in columns.
	looks := delimiter == blank || delimiter == "::" || delimiter == "|"
	l.Header, l.Short = len(given.Columns) == 0 || given.Header, cmp.Or(given.Short, lines.ShortBad)
	if !l.CSV && !l.HasNull {
		l.HasNull = true // the empty column is null, with quotes and without
	}
	rules, err := lines.NewRules(l)
	if err != nil {
		return nil, err
	}
	sample, whole, _ := in.Sample(sampleBytes)
	var wrong int64 // lines of the last row, where it is none
	s := lines.Splitter{Lines: sample, Layout: rules}
	var plain, quoted []bool // by column: some value has no quotes, some has; as long as again
	for {
		line, err := sample.Next()
		if err != nil { // the end, or one that is too long, which is said when its row is read
			break
		}
		begin := sample.Line
		switch {
		case begin <= int64(l.SkipLines):
			continue
		case len(line) == 0 && t.names == nil:
			l.SkipLines++
			continue
		case len(line) == 0:
			t.lines--
			continue
		}
		if looks && begin > t.first && t.names != nil {
			t.whole = (t.whole || t.width == 0) && isValue(string(line))
		}
		err = s.Split(line)
		t.sawQuotes = t.sawQuotes || err != nil || slices.ContainsFunc(s.Fields, func(f lines.Field) bool {
			return f.Quoted
		})
		if t.names == nil {
			if t.first = begin; err != nil {
				t.err = fmt.Errorf("line %d: %w", begin, err)
				break
			}
			for _, f := range s.Fields {
				t.names = append(t.names, string(f.Text))
			}
			n := t.columns()
			plain, quoted, t.again, t.long = make([]bool, n), make([]bool, n), make([]int64, n), make([]bool, n)
		}
		if wrong = 0; err != nil {
			t.broken, wrong = t.broken+1, sample.Line-begin+1
			continue
		}
		if n := len(s.Fields); n == t.columns() || n == t.columns()+1 && len(s.Fields[n-1].Text) == 0 {
			t.fits += sample.Line - begin + 1
		}
		if begin == t.first {
			continue
		}
		if t.even = t.width == 0 || t.even && t.width == len(s.Fields); t.width == 0 {
			t.width = len(s.Fields)
		}
		if looks {
			t.lookAt(s.Fields)
		}
		for i, f := range s.Fields[:min(len(s.Fields), len(plain))] {
			plain[i], quoted[i] = plain[i] || !f.Quoted && len(f.Text) > 0, quoted[i] || f.Quoted
			if f.Quoted {
				t.quotes++
			}
			t.long[i] = t.long[i] || len(f.Text) > 64 && longName(string(f.Text))
			if t.again[i] == 0 && i < len(t.names) && len(f.Text) > 0 && string(f.Text) == t.names[i] {
				t.again[i] = begin
			}
		}
	}
	t.lines += sample.Line - t.first + 1
	if !whole && wrong > 0 { // the sample ends within it
		t.lines, t.broken = t.lines-wrong, t.broken-1
	}
	for i, q := range quoted {
		// Apostrophes are quotes only where a column has them around all of its values.
		t.quoted = t.quoted || q && (quote == `"` || !plain[i])
	}
	if quote == "'" && !t.quoted {
		t.fits = 0
	}
	return t, nil
}

// check returns an error where the layout is not likely, or where nobody says that the first line has the names and it
// does not look so: one of them would be a number, a date, a boolean, a URL or JSON, or half of them are values of
// their columns, too, or long texts among others.
func (t *trial) check(given *lines.Layout) error {
	if given.Header {
		return nil
	}
	if len(given.Columns) > 0 {
		return t.checkGiven(given)
	}
	if 2*t.fits < t.lines {
		or := ""
		if t.even && t.width == len(t.names)+1 { // as R writes the names of rows
			or = fmt.Sprintf(", or give all columns names with {\"text\": {\"skip_lines\": %d, \"columns\": "+
				"[{\"name\": \"...\"}, ...]}}", t.first)
		}
		return column.Refuse("", "line %d has %d columns between %s, and most lines below it have another number: say "+
			"with {\"text\": {\"delimiter\": ...}} in a mapping file what is between columns, or pass over lines "+
			"before the names with {\"text\": {\"skip_lines\": ...}}%s", t.first, t.columns(),
			delimiterName(t.layout.Delimiter), or)
	}
	what, named, again, first, together, long, longest := "", 0, 0, 0, 0, 0, ""
	for i, name := range t.names {
		if what == "" && (isValue(name) || isContent(name)) {
			what = fmt.Sprintf("it has %s", column.Quote(name))
		}
		if t.long[i] && longName(name) {
			long, longest = long+1, cmp.Or(longest, name)
		}
		if name != "" {
			named++
		}
		if t.again[i] > 0 {
			if again++; again == 1 {
				first = i
			}
			if t.again[i] == t.again[first] {
				together++
			}
		}
	}
	switch {
	case what != "":
	case named == 0:
		what = "it is empty"
	case 2*long >= named:
		what = fmt.Sprintf("it has %s", column.Quote(longest))
	case together == named && named > 1:
		return column.Refuse("", "line %d has the names of line %d again, as where files were put together: ingest "+
			"them one by one, or take that line out", t.again[first], t.first)
	case 2*again >= named:
		what = fmt.Sprintf("its %s is a value of the same column in line %d", column.Quote(t.names[first]),
			t.again[first])
	default:
		return nil
	}
	return column.Refuse("", "line %d looks like values, not names: %s. A file without names gets them with "+
		"{\"text\": {\"columns\": [{\"name\": \"...\"}, ...]}} in a mapping file (--mapping), one for each of its "+
		"columns, of which it has %d; if the line has the names, say {\"text\": {\"header\": true}}", t.first, what,
		len(t.names))
}

// checkGiven returns an error where the first line has the names that the mapping file gives: it would be a row.
func (t *trial) checkGiven(given *lines.Layout) error {
	if len(t.names) != len(given.Columns) {
		return nil
	}
	for i, c := range given.Columns {
		if !strings.EqualFold(column.TrimBlanks(t.names[i]), c.Name) {
			return nil
		}
	}
	return column.Refuse("", "line %d has the names that text.columns of the mapping file gives: say {\"text\": "+
		"{\"header\": true}} there too", t.first)
}

// longName reports whether a text is longer than most names. Questions of surveys are names as long.
func longName(s string) bool { return utf8.RuneCountInString(s) > 64 }

// isContent reports whether a text is a URL, a list or an object in JSON, or a list in Python's quotes.
func isContent(s string) bool {
	s = column.TrimBlanks(s)
	if scheme, _, ok := strings.Cut(s, "://"); ok && scheme != "" && !strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		return true
	}
	if s == "" || s[0] != '[' && s[0] != '{' {
		return false
	}
	inner, ok := inBrackets([]byte(s))
	if ok {
		_, ok = quotedItems(inner)
	}
	return ok || json.Valid([]byte(s))
}

// isValue reports whether a text is a number, a date, a time or a boolean.
func isValue(s string) bool {
	var v textValues
	v.add(s, place{})
	_, err := column.ParseFloat(column.TrimBlanks(s), 64)
	return v.some && !v.isText() || err == nil || errors.Is(err, strconv.ErrRange)
}
