package text

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
	"github.com/dsistore/dsistore/tools/ingest/source/lines"
)

// An inference finds the types of text columns from the values that all files of a dump have in them: every value is
// read once before any is read for its row. Of a stream, which is read once, its first sampleBytes say the types.
type inference struct {
	d *input.Set

	// mu guards the rest, and is held while files are read.
	mu     sync.Mutex
	shown  *shown
	faults map[string]error // by file: why it does not go with the others
}

// shown is what the values of text show.
type shown struct {
	columns map[string]*textValues
	order   []string // of the columns
	rows    int64
	files   int
	layout  string // empty: files differ
}

// textValues is what the values of a column can be all together. Nulls, and no text at all, can be anything.
type textValues struct {
	textFacts
	some, empty bool  // there was a value; there was one of no text
	first       place // the first value
	// broke is the first value with which they are a string, where those before it were something narrower.
	broke place
	null  place // the first of nullWords, which make them a string whatever the others are
	// minusZero is the first -0, which is a number among those with a fraction, and a name among integers.
	minusZero place
	lists     lists
	times     times
	// leaves: the table's feature is a scalar, so that text is left out with the bad rows. floats: it is a float.
	leaves, floats bool
	// rest is the values without those that are text by themselves. nil: there is no such value.
	rest *textValues
}

// textFacts is what values are not, all together.
type textFacts struct {
	not        textType
	timestamps column.TimestampRange // of those that are timestamps
	fraction   bool                  // there is a number with a fraction or an exponent, NaN or an infinity
}

// A place is a value and where it stands.
type place struct {
	value, file string
	line        int64
}

func (p place) String() string {
	return fmt.Sprintf("%s, line %d: %s", p.file, p.line, column.Quote(p.value))
}

// isNullWord reports whether other programs write null so. Here it is text, unless the mapping file says so.
func isNullWord(text []byte) bool {
	switch string(text) {
	case "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "None", `\N`:
		return true
	}
	return false
}

// A textType is a set of types of text.
type textType uint8

const (
	textBool textType = 1 << iota
	textInt
	textUint
	textSingle // numbers that float32 holds, integers exactly
	textFloat
	textDate
	textTimestamp
	textAny = 1<<iota - 1
	// textWhole is an integer, or one with a fraction of zeros: pandas writes 17850.0 where the column has a null. It
	// is no type of its own.
	textWhole = 1 << (iota - 1)
)

// A typeOf gives the type of a column that a header names.
type typeOf func(name string) (*column.Type, error)

// types returns what gives the type of a column of a file by its values in all files that go together, and the error of
// the one that is to be opened: see Set.Fault.
func (t *inference) types(ctx context.Context, path string, given typeOf) (typeOf, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown == nil {
		files, err := t.scan(ctx, given)
		if err != nil {
			return nil, err
		}
		t.shown, t.faults = files.table()
		t.tell(t.shown, false)
	}
	return t.typeOf(t.shown, given), t.d.Fault(t.faults, path)
}

// typeOf returns what gives the type of a column by what its values show, where the mapping file says nothing.
func (t *inference) typeOf(s *shown, given typeOf) typeOf {
	known := t.known()
	return func(name string) (*column.Type, error) {
		if t.given(name) {
			return given(name)
		}
		n, rest := t.both(s, name, known(name))
		if rest != nil && t.d.Lenient {
			n = rest
		}
		return n, nil
	}
}

// both returns the type that holds all values of a column, and rest, that of the values that are left where text is
// left out with the bad rows; nil where none is.
func (t *inference) both(s *shown, name string, known catalog.Feature) (n, rest *column.Type) {
	c, unit := s.columns[name], t.d.TimestampUnit(name)
	n = c.node(known, unit)
	if c == nil || n.Shape != column.String || c.rest == nil || c.null.line > 0 {
		return n, nil
	}
	// No row is lost with a mapping file that says how lists or times are written, where the table has such.
	if _, fits := t.hint(c, name, known); fits {
		return n, nil
	}
	values := *c.rest
	values.empty = c.empty
	if rest = values.node(known, unit); rest.Shape != column.String {
		rest.NoText = cmp.Or(known.Logical, known.Type.String())
	}
	return n, rest
}

// hint says how a column of text is read as lists or times, empty where it does not look like them. fits reports
// whether what is read so goes with the table.
func (t *inference) hint(c *textValues, name string, known catalog.Feature) (hint string, fits bool) {
	if known.Type.Kind == vector.String {
		return "", false
	}
	if hint, fits = c.listHint(name, t.d.Mapping.Text.Items, known.Type); hint != "" {
		return hint, fits
	}
	unit := t.d.TimestampUnit(name)
	cm := t.d.Mapping.Columns[name]
	if zoned, ok := strings.CutPrefix(known.Logical, "timestamp["); ok && (cm == nil || cm.Timestamp == "") {
		unit = strings.TrimSuffix(zoned, "]")
	}
	hint = c.timeHint(name, unit, known.Logical)
	return hint, hint != "" && isTime(known)
}

func isTime(f catalog.Feature) bool {
	return f.Logical == "date32" || column.TimestampUnit(f.Logical) != ""
}

// mixes reports whether a type goes with the table's feature.
func (t *inference) mixes(n *column.Type, name string, f catalog.Feature) bool {
	elem, logical := n.Elem, n.Logical
	if cm := t.d.Mapping.Columns[name]; cm != nil {
		if elem = cmp.Or(cm.Elem, elem); column.TimestampUnit(logical) != "" {
			logical = cmp.Or(cm.Timestamp, logical)
		}
	}
	_, err := vector.Widen(f.Type, vector.Type{Kind: vector.Dense, Elem: elem})
	return n.Shape == column.Number && logical == f.Logical && err == nil
}

// known returns what gives the table's feature that a column becomes; the zero Feature where it has none.
func (t *inference) known() func(name string) catalog.Feature {
	known := map[string]catalog.Feature{}
	for _, f := range t.d.Features() {
		known[f.Name] = f
	}
	return func(name string) catalog.Feature {
		if cm := t.d.Mapping.Columns[name]; cm != nil && cm.Rename != "" {
			name = cm.Rename
		}
		return known[name]
	}
}

// given reports whether the mapping file says the type of a column, or that it is none.
func (t *inference) given(name string) bool {
	cm := t.d.Mapping.Columns[name]
	return cm != nil && (cm.Type != "" || cm.Hash || cm.Drop || cm.Kind == vector.String || cm.Kind == vector.Bytes)
}

// tell says what was inferred.
func (t *inference) tell(s *shown, sample bool) {
	if t.d.Inferred == nil || len(s.order) == 0 { // that none can be read is said when one is opened
		return
	}
	known := t.known()
	out := input.Inferred{Format: name, Rows: s.rows, Files: s.files, Sample: sample, Layout: s.layout}
	for _, name := range s.order {
		if t.given(name) {
			continue
		}
		f, v := known(name), s.columns[name]
		n, rest := t.both(s, name, f)
		c := input.InferredColumn{Name: name, Leaves: rest != nil && t.mixes(rest, name, f)}
		if rest != nil && t.d.Lenient {
			n, v = rest, v.rest
		}
		c.Type = n.String()
		switch {
		case n.Shape == column.String:
			v.explain(&c)
			if c.Hint != "" {
				without := v.remaining().node(f, t.d.TimestampUnit(name))
				c.Fits = without.Shape == column.Null || t.mixes(without, name, f)
			}
			if hint, fits := t.hint(v, name, f); hint != "" {
				c.Hint, c.Fits = hint, fits
			}
		case n.Elem == vector.Float64 && v.some && v.not&textWhole == 0 && f.Name == "" &&
			(t.d.Mapping.Columns[name] == nil || t.d.Mapping.Columns[name].Elem == 0):
			c.Hint = fmt.Sprintf(`float64, though every value is whole; {"columns": {%q: {"type": "bigint"}}} `+
				"in a mapping file makes integers of ids", name)
		}
		out.Columns = append(out.Columns, c)
	}
	t.d.Inferred(out)
}

// filesAtOnce bounds what is held of files before it is merged, in their order.
const filesAtOnce = 16

// scan reads all files. It is called with mu held.
func (t *inference) scan(ctx context.Context, given typeOf) (*families, error) {
	all := newFamilies(t)
	for some := range slices.Chunk(t.d.Files(name), filesAtOnce) {
		each := make([]*shown, len(some))
		err := t.d.Scan(ctx, some, func(ctx context.Context, i int, in input.File) {
			each[i], _ = t.file(ctx, in, given)
		})
		if err != nil {
			return nil, err
		}
		for i, s := range each {
			if s != nil {
				all.add(some[i].Path, s)
			}
		}
	}
	return all, nil
}

// merge takes over what the next file shows.
func (s *shown) merge(o *shown) {
	if s.files == 0 {
		s.layout = o.layout
	} else if s.layout != o.layout {
		s.layout = ""
	}
	s.rows, s.files = s.rows+o.rows, s.files+o.files
	for _, name := range o.order {
		if c := s.columns[name]; c != nil {
			c.merge(o.columns[name])
		} else {
			s.columns[name] = o.columns[name]
			s.order = append(s.order, name)
		}
	}
}

// file returns what the values of a file show, up to where it can be read.
func (t *inference) file(ctx context.Context, in input.File, given typeOf) (*shown, error) {
	lines, err := t.lines(ctx, in)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	layout, err := t.layout(lines, in.Path)
	if err != nil {
		return nil, err
	}
	return t.values(ctx, lines, in.Path, &layout, given)
}

// values returns what the values of lines show.
func (t *inference) values(ctx context.Context, in *lines.Reader, path string, layout *lines.Layout, given typeOf) (
	*shown, error) {
	r, err := t.reader(in, layout, given)
	if err != nil {
		return nil, err
	}
	s := &shown{columns: map[string]*textValues{}, files: 1}
	if t.finds() {
		s.layout = layoutName(layout)
	}
	values, known := make([]*textValues, len(r.Nodes)), t.known()
	for i, n := range r.Nodes {
		values[i] = newTextValues(known(n.Name))
		if r.hives() {
			values[i].lists.noBrackets()
		}
		s.columns[n.Name] = values[i]
		s.order = append(s.order, n.Name)
	}
	hasNull := t.d.Mapping.Text.HasNull // another word cannot stand for null, too
	for n := 0; !r.empty; n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return s, err
			}
		}
		line, bad, err := r.nextRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return s, err
		}
		if bad != nil {
			continue
		}
		s.rows++
		for i, f := range r.Fields {
			switch at := (place{file: path, line: line}); {
			case f.Null:
			case !f.Quoted && !hasNull && isNullWord(bytes.TrimSpace(f.Text)):
				if values[i].null.line == 0 {
					at.value = string(bytes.TrimSpace(f.Text))
					values[i].null = at
				}
			default:
				values[i].add(string(f.Text), at)
			}
		}
	}
	return s, nil
}

// newTextValues returns what no value of a column shows yet.
func newTextValues(known catalog.Feature) *textValues {
	leaves := known.Type.Kind == vector.Dense && (known.Logical == "" || isTime(known))
	return &textValues{leaves: leaves, floats: known.Type.Elem == vector.Float32 || known.Type.Elem == vector.Float64}
}

// add takes a value into account, without the blanks around it. Numbers are those that are printed again as they are
// written: 007 and +1 are names.
func (c *textValues) add(s string, at place) {
	if s = column.TrimBlanks(s); s == "" {
		c.empty = true
		return
	}
	sampled := c.lists.seen < listSample
	if sampled {
		c.lists.add(s)
	}
	if c.rest != nil {
		c.addRest(s, at)
	}
	if c.some && c.isText() {
		if sampled {
			c.times.add(s)
		}
		return
	}
	isFirst, before := !c.some, c.textFacts
	c.take(s, at)
	if c.leaves && c.rest == nil && (c.isText() || s == "-0" && !c.floats) {
		c.rest = &textValues{textFacts: before, some: !isFirst}
		if !isFirst {
			c.rest.first = c.first
		}
		if c.floats {
			c.rest.minusZero = c.minusZero
		}
		c.addRest(s, at)
	}
	if c.isText() && !sampled { // numbers up to here, and now several between bars
		c.lists.add(s)
	}
	if isFirst && c.isText() {
		c.times.add(s)
	} else { // a number or a date as it is expected, now or before
		c.times.none()
	}
}

// take takes a value into account that is not empty, for the type of all.
func (c *textValues) take(s string, at place) {
	isFirst := !c.some
	c.some = true
	if s == "-0" && c.minusZero.line == 0 {
		c.minusZero = at
		c.minusZero.value = s
	}
	if c.narrow(s); isFirst || c.isText() {
		at.value = strings.Clone(s[:min(len(s), 128)])
	}
	if isFirst {
		c.first = at
	} else if c.isText() {
		c.broke = at
	}
}

// addRest takes a value into account that may be text by itself. -0 is, but for a table of floats, unless there turn
// out to be fractions.
func (c *textValues) addRest(s string, at place) {
	r := c.rest
	if r.some && r.isText() || s == "-0" && !c.floats {
		return
	}
	if r.some {
		with := r.textFacts
		if with.narrow(s); !with.isText() { // nor is s by itself
			r.take(s, at)
			return
		}
	}
	if !isText(s) {
		r.take(s, at)
	}
}

// remaining returns the values without those that are text by themselves.
func (c *textValues) remaining() *textValues {
	if c.rest != nil {
		return c.rest
	}
	return &textValues{textFacts: c.textFacts, some: c.some, first: c.first, broke: c.broke, minusZero: c.minusZero}
}

// isFloat reports whether float64 holds all values.
func (c *textValues) isFloat() bool {
	return c.not&textFloat == 0 && (c.fraction || c.minusZero.line == 0)
}

// isText reports whether nothing but a string holds all values.
func (c *textFacts) isText() bool { return c.not|textSingle|textWhole == textAny|textWhole }

// isText reports whether nothing but a string holds a value that is not empty. Most values are numbers.
func isText(s string) bool {
	const numbers = textInt | textFloat
	number, other := textFacts{not: ^numbers}, textFacts{not: numbers | textSingle | textWhole}
	if number.narrow(s); !number.isText() {
		return false
	}
	other.narrow(s)
	return other.isText()
}

// explain says which value made a string of what would be narrower without it, and what to do where it stands for null.
// If the table has no text there, a word for null comes first: the rows with it need not be left out.
func (c *textValues) explain(out *input.InferredColumn) {
	if c.first.line > 0 {
		out.First = c.first.String()
	}
	null := c.null.line > 0 && (c.some || c.leaves)
	switch {
	case c.broke.line > 0 && !(null && c.leaves):
		out.Because = c.broke.String()
	case c.minusZero.line > 0 && !c.isText() && !c.isFloat() && !(null && c.leaves):
		out.Because = c.minusZero.String()
	case null && (c.leaves || !c.isText()):
		out.Because = c.null.String()
		out.Hint = fmt.Sprintf(`{"text": {"null": %q}} in a mapping file takes it for null`, c.null.value)
	}
}

// narrow takes out what s is not.
func (c *textFacts) narrow(s string) {
	check := func(t textType, is func() bool) {
		if c.not&t == 0 && !is() {
			c.not |= t
		}
	}
	check(textBool, func() bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "false") })
	digits := isInteger(s)
	if c.not&(textInt|textFloat) != textInt|textFloat {
		v, whole := int64(0), false
		if digits {
			var err error
			v, err = strconv.ParseInt(s, 10, 64)
			whole = err == nil
		}
		check(textInt, func() bool { return whole })
		check(textFloat, func() bool {
			switch {
			case whole:
				return column.ExactFloat(vector.Float64, v)
			case s == "-0":
				return true
			}
			fraction := isFraction(s)
			c.fraction = c.fraction || fraction
			return fraction && exactWhole(s)
		})
		check(textSingle, func() bool {
			if whole {
				return column.ExactFloat(vector.Float32, v)
			}
			_, err := strconv.ParseFloat(s, 32)
			return c.not&textFloat != 0 || err == nil
		})
	}
	check(textWhole, func() bool {
		whole, zeros, _ := strings.Cut(s, ".")
		_, err := strconv.ParseInt(whole, 10, 64)
		return err == nil && isInteger(whole) && strings.Trim(zeros, "0") == ""
	})
	check(textUint, func() bool {
		if !digits || s[0] == '-' {
			return false
		}
		_, err := strconv.ParseUint(s, 10, 64)
		return err == nil
	})
	check(textDate, func() bool {
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	})
	check(textTimestamp, func() bool {
		m, err := column.ParseTimestamp(s)
		if err == nil {
			c.timestamps.Add(m)
		}
		return err == nil
	})
}

// exactWhole reports whether float64 holds a number whose fraction is zeros, as decimals print integers. Of other
// fractions it is as near as it gets.
func exactWhole(s string) bool {
	whole, zeros, ok := strings.Cut(s, ".")
	if !ok || strings.Trim(zeros, "0") != "" || !isInteger(whole) {
		return true
	}
	v, err := strconv.ParseInt(whole, 10, 64)
	return err != nil || column.ExactFloat(vector.Float64, v)
}

// isInteger reports whether s is a whole number as it is printed, of any size: 007, +1 and -0 are not.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' && s != "0" {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// isFraction reports whether s is a number with a fraction or an exponent, NaN or an infinity.
func isFraction(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return false
	}
	if strings.Trim(digits, "0123456789.eE+-") != "" {
		word := strings.ToLower(digits)
		return s == "NaN" || s == "nan" || word == "inf" || word == "infinity"
	}
	if !strings.ContainsAny(digits, ".eE") || digits[0] == '+' {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// merge takes the values of a later file into account.
func (c *textValues) merge(o *textValues) {
	if c.rest != nil || o.rest != nil {
		rest := c.remaining()
		rest.merge(o.remaining())
		c.rest = rest
	}
	all := textFacts{not: c.not | o.not}
	switch {
	case !c.some:
		c.first, c.broke = o.first, o.broke
	case !o.some || c.broke.line > 0 || !all.isText():
	case o.broke.line > 0:
		c.broke = o.broke
	case !c.isText():
		c.broke = o.first
	case !o.isText(): // the earlier files have text from their first value on
		c.broke = c.first
	}
	if c.null.line == 0 {
		c.null = o.null
	}
	if c.minusZero.line == 0 {
		c.minusZero = o.minusZero
	}
	c.fraction = c.fraction || o.fraction
	c.lists.merge(&o.lists)
	c.times.merge(&o.times)
	c.some, c.empty, c.not = c.some || o.some, c.empty || o.empty, c.not|o.not
	c.timestamps.Merge(o.timestamps)
}

// node returns the narrowest type that holds all the values. A string, a float, a uint64 or a timestamp that the table
// has is taken where it does, too; of a fraction, float32 is as near as the table wants it. unit is that of timestamps
// by the table or the mapping file, empty where neither says it.
func (c *textValues) node(known catalog.Feature, unit string) *column.Type {
	n := &column.Type{Shape: column.Number, Elem: vector.Int64}
	is := func(t textType) bool { return c.not&t == 0 }
	dense := known.Type.Kind == vector.Dense
	isFloat := dense && (known.Type.Elem == vector.Float32 || known.Type.Elem == vector.Float64)
	switch {
	case c == nil || !c.some && !c.empty && c.null.line == 0:
		n.Shape, n.Elem = column.Null, 0
	case known.Type.Kind == vector.String || c.null.line > 0 || !c.some && !dense:
		n.Shape, n.Elem = column.String, 0
	case !c.some: // no text is null in a number
		n.Elem, n.Logical = known.Type.Elem, known.Logical
	case is(textBool):
		n.Elem = vector.Bool
	case dense && known.Type.Elem == vector.Uint64 && is(textUint):
		n.Elem = vector.Uint64
	case isFloat && is(textFloat):
		if n.Elem = known.Type.Elem; !is(textSingle) {
			n.Elem = vector.Float64
		}
	case is(textInt):
	case is(textUint):
		n.Elem = vector.Uint64
	case c.isFloat():
		n.Elem = vector.Float64
	case is(textTimestamp) && unit != "": // dates of midnights, too
		n.Logical = "timestamp[" + unit + "]"
	case is(textDate):
		n.Elem, n.Logical = vector.Int32, "date32"
	case is(textTimestamp) && !c.timestamps.None():
		n.Logical = "timestamp[" + c.timestamps.Unit() + "]"
	default:
		n.Shape, n.Elem = column.String, 0
	}
	return n
}
