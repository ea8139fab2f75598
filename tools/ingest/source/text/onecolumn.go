package text

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// noDelimiter is between the columns of a text of one column.
const noDelimiter = "\x01"

// unnamed reports whether nothing but the text itself names its columns.
func unnamed(given *lines.Layout) bool { return !given.Header && len(given.Columns) == 0 }

// tryBlanks returns the trial with single blanks between columns, nil where it is not likely: texts have blanks too, so
// that all columns have to be numbers, unless the mapping file says how many columns there are. Where a name is a
// number, and all below it are, check refuses the text: it has no names.
func tryBlanks(in *lines.Reader, given *lines.Layout, first []byte) (*trial, error) {
	if given.Delimiter != "" || given.Items == blank || len(given.Columns) == 1 ||
		!bytes.Contains(first, []byte(blank)) {
		return nil, nil
	}
	t, err := tryQuotes(in, given, blank)
	if err != nil || t.err != nil {
		return nil, err
	}
	named := t.names
	if last := len(named) - 1; last > 0 && named[last] == "" {
		named = named[:last] // the line ends with a blank
	}
	switch {
	case t.columns() < 2, 10*t.fits < 9*t.lines, slices.Contains(named, ""):
		return nil, nil
	case len(given.Columns) > 0:
	case t.whole || isValue(string(first)): // times
		return nil, nil
	case len(t.values) < len(named):
		return nil, nil
	case slices.Contains(t.values[:len(named)], false):
		for i, name := range named {
			if t.values[i] && isValue(name) {
				return t, nil
			}
		}
		return nil, nil
	}
	return t, nil
}

// lookAt notes which columns of a row are values, of a row that has as many columns as there are names; below a single
// name, as the first row.
func (t *trial) lookAt(row []lines.Field) {
	n := t.columns()
	if n == 1 {
		n = t.width
	}
	if last := len(row) - 1; last == n && len(row[last].Text) == 0 {
		row = row[:last] // the line ends with a delimiter
	}
	if len(row) != n {
		return
	}
	if t.values == nil {
		t.values = slices.Repeat([]bool{true}, n)
	}
	for i, f := range row {
		t.values[i] = t.values[i] && isValue(string(f.Text))
	}
}

// oneColumn returns how a text of one column reads. It is an error where its lines have more, and its first has not.
func oneColumn(in *lines.Reader, given *lines.Layout, tried []string) (*trial, error) {
	if len(given.Columns) != 1 && given.Items != blank {
		if err := blankRuns(in, given.SkipLines); err != nil {
			return nil, err
		}
	}
	for _, delimiter := range append(tried, blank) {
		t, err := try(in, given, delimiter, quotes(given)[0])
		if err != nil {
			return nil, err
		}
		likely := t.even && t.width > 1 && unnamed(given)
		switch {
		case delimiter == "::":
			likely = likely && slices.Contains(t.values, true) && (t.width > 2 || !slices.Contains(t.values, false))
		case delimiter == blank:
			likely = likely && t.width > 2 && given.Items != blank && !t.whole && !slices.Contains(t.values, false)
		}
		if likely {
			return nil, column.Refuse("", "line %d is one column, and the lines below it have %d between %s: if it is "+
				"a title, pass over it with {\"text\": {\"skip_lines\": %[1]d}} in a mapping file; if it is the name "+
				"of their only column, say {\"text\": {\"header\": true}}", t.first, t.width,
				delimiterName(delimiter))
		}
	}
	t, err := tryQuotes(in, given, noDelimiter)
	if err == nil && t.err == nil && unnamed(given) {
		err = t.checkOnly(in, tried)
	}
	return t, err
}

// sampled calls visit with each of a text's first lines and its number, empty ones and those to skip left out, until it
// returns false.
func sampled(in *lines.Reader, skip int, visit func(line []byte, n int64) bool) {
	sample, _, _ := in.Sample(sampleBytes)
	for {
		line, err := sample.Next()
		if err != nil {
			return
		}
		if sample.Line > int64(skip) && len(line) > 0 && !visit(line, sample.Line) {
			return
		}
	}
}

// blankRuns returns an error where columns of numbers are between any number of blanks, as in tables of fixed width.
func blankRuns(in *lines.Reader, skip int) error {
	width, rows, runs, first := 0, 0, false, int64(0)
	sampled(in, skip, func(line []byte, n int64) bool {
		fields := bytes.Fields(line)
		if runs = runs || bytes.Contains(line, []byte("  ")) || line[0] == ' '; width == 0 {
			width, first = len(fields), n
		} else if rows++; slices.ContainsFunc(fields, func(f []byte) bool { return !isValue(string(f)) }) ||
			isValue(string(line)) {
			width = 1
		}
		if len(fields) != width {
			width = 1
		}
		return width > 1
	})
	if width < 2 || rows == 0 || !runs {
		return nil
	}
	return column.Refuse("", "from line %d on, it has %d columns of numbers between runs of blanks: `awk '{$1=$1; "+
		"print}' OFS='\\t' FILE` puts one tab between them", first, width)
}

// checkOnly returns an error where the only name is a comment, or begins with a digit: such a text is a log that has no
// names, or none in its first line. tried are the delimiters that its first line does not have.
func (t *trial) checkOnly(in *lines.Reader, tried []string) error {
	name := ""
	if len(t.names) > 0 {
		name = column.TrimBlanks(t.names[0])
	}
	switch {
	case name == "" || isValue(name): // check says it
		return nil
	case name[0] == '#':
		skip := t.first
		sampled(in, int(t.first), func(line []byte, n int64) bool {
			if line[0] == '#' {
				skip = n
			}
			return line[0] == '#'
		})
		return column.Refuse("", "line %d begins with # as a comment does: pass over the lines before the names with "+
			"{\"text\": {\"skip_lines\": %d}} in a mapping file; if no line has the names, say {\"text\": "+
			"{\"skip_lines\": %[2]d, \"columns\": [{\"name\": \"...\"}, ...]}}; if the line is the name of the only "+
			"column, say {\"text\": {\"header\": true}}", t.first, skip)
	}
	if digits := strings.TrimLeft(name, "+-."); digits == "" || digits[0] < '0' || digits[0] > '9' {
		return nil
	}
	why := ""
	if words := strings.Fields(name); len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool {
		return !isValue(w)
	}) {
		why = ". Its numbers are between blanks, and lines have more and fewer of them: {\"text\": {\"items\": " +
			"\" \", \"columns\": [{\"name\": \"...\", \"type\": \"array<bigint>\"}]}} in a mapping file makes a " +
			"list of each line; for columns, write lines of as many values"
	} else {
		sampled(in, int(t.first), func(line []byte, n int64) bool {
			for _, d := range tried {
				if parts := bytes.Count(line, []byte(d)) + 1; parts > 1 {
					why = fmt.Sprintf(". Line %d has %d columns between %s: write lines of as many columns", n, parts,
						delimiterName(d))
				}
			}
			return why == ""
		})
	}
	return column.Refuse("", "line %d looks like values, not names: %s%s; if the line is the name of the only column, "+
		"say {\"text\": {\"header\": true}} in a mapping file", t.first, column.Quote(name), why)
}
