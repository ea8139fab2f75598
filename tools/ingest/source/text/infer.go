package text

import (
	"cmp"
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/input"
)

// An inference finds the types of text columns from the values that all files of a dump have in them: every value is
// read once before any is read for its row.
type inference struct {
	d *input.Set

	// mu guards the rest, and is held while files are read.
	mu      sync.Mutex
	columns map[string]*textValues // by name
}

// textValues is what the values of a column can be all together. Nulls, and no text at all, can be anything.
type textValues struct {
	some, empty bool // there was a value; there was one of no text
	not         textType
	timestamps  column.TimestampRange // of those that are timestamps
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
)

// A typeOf gives the type of a column that a header names.
type typeOf func(name string) (*column.Type, error)

// types returns what gives the type of a column by its values.
func (t *inference) types(ctx context.Context, given typeOf) (func(name string) *column.Type, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == nil {
		columns, err := t.scan(ctx, given)
		if err != nil {
			return nil, err
		}
		t.columns = columns
	}
	known := map[string]vector.Type{}
	for _, f := range t.d.Features() {
		known[f.Name] = f.Type
	}
	return func(name string) *column.Type {
		feature := name
		if cm := t.d.Mapping.Columns[name]; cm != nil && cm.Rename != "" {
			feature = cm.Rename
		}
		return t.columns[name].node(known[feature], t.d.TimestampUnit(name))
	}, nil
}

// scan is called with mu held.
func (t *inference) scan(ctx context.Context, given typeOf) (map[string]*textValues, error) {
	var mu sync.Mutex // guards all
	all := map[string]*textValues{}
	return all, t.d.Scan(ctx, t.d.Files(name), func(ctx context.Context, _ int, in input.File) {
		columns, _ := t.file(ctx, in, given)
		mu.Lock()
		defer mu.Unlock()
		for name, c := range columns {
			if all[name] == nil {
				all[name] = &textValues{}
			}
			all[name].merge(c)
		}
	})
}

// file returns what the values of a file's columns can be.
func (t *inference) file(ctx context.Context, in input.File, given typeOf) (map[string]*textValues, error) {
	lines, err := t.lines(ctx, in)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	r, err := t.openLines(lines, given)
	if err != nil {
		return nil, err
	}
	out := map[string]*textValues{}
	values := make([]*textValues, len(r.Nodes))
	for i, n := range r.Nodes {
		values[i] = &textValues{}
		out[n.Name] = values[i]
	}
	for n := 0; !r.empty; n++ {
		if n%256 == 0 {
			if err := ctx.Err(); err != nil {
				return out, err
			}
		}
		_, bad, err := r.nextRow()
		if err == io.EOF {
			break
		}
		if err != nil {
			return out, err
		}
		if bad != nil {
			continue
		}
		for i, f := range r.Fields {
			if !r.IsNull(f) {
				values[i].add(string(f.Text))
			}
		}
	}
	return out, nil
}

// add takes a value into account, without the blanks around it. Numbers are those that are printed again as they are
// written: 007 and +1 are names.
func (c *textValues) add(s string) {
	if s = column.TrimBlanks(s); s == "" {
		c.empty = true
		return
	}
	c.some = true
	check := func(t textType, is func() bool) {
		if c.not&t == 0 && !is() {
			c.not |= t
		}
	}
	check(textBool, func() bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "false") })
	if c.not&(textInt|textFloat) != textInt|textFloat {
		v, err := strconv.ParseInt(s, 10, 64)
		whole := err == nil && strconv.FormatInt(v, 10) == s
		check(textInt, func() bool { return whole })
		check(textFloat, func() bool {
			return whole && column.ExactFloat(vector.Float64, v) || !whole && isFraction(s)
		})
		check(textSingle, func() bool {
			if whole {
				return column.ExactFloat(vector.Float32, v)
			}
			_, err := strconv.ParseFloat(s, 32)
			return c.not&textFloat != 0 || err == nil
		})
	}
	check(textUint, func() bool {
		v, err := strconv.ParseUint(s, 10, 64)
		return err == nil && strconv.FormatUint(v, 10) == s
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

func (c *textValues) merge(o *textValues) {
	c.some, c.empty, c.not = c.some || o.some, c.empty || o.empty, c.not|o.not
	c.timestamps.Merge(o.timestamps)
}

// node returns the narrowest type that holds all the values. A string or a float that the table has is taken where it
// does, too; of a fraction, float32 is as near as the table wants it. unit is that of timestamps, empty where nothing
// says it.
func (c *textValues) node(known vector.Type, unit string) *column.Type {
	n := &column.Type{Shape: column.Number, Elem: vector.Int64}
	is := func(t textType) bool { return c.not&t == 0 }
	isFloat := known.Kind == vector.Dense && (known.Elem == vector.Float32 || known.Elem == vector.Float64)
	switch {
	case c == nil || !c.some && !c.empty:
		n.Shape, n.Elem = column.Null, 0
	case known.Kind == vector.String || !c.some:
		n.Shape, n.Elem = column.String, 0
	case is(textBool):
		n.Elem = vector.Bool
	case isFloat && is(textFloat):
		if n.Elem = known.Elem; !is(textSingle) {
			n.Elem = vector.Float64
		}
	case is(textInt):
	case is(textUint):
		n.Elem = vector.Uint64
	case is(textFloat):
		n.Elem = vector.Float64
	case is(textDate):
		n.Elem, n.Logical = vector.Int32, "date32"
	case is(textTimestamp) && (unit != "" || !c.timestamps.None()):
		n.Logical = "timestamp[" + cmp.Or(unit, c.timestamps.Unit()) + "]"
	default:
		n.Shape, n.Elem = column.String, 0
	}
	return n
}
