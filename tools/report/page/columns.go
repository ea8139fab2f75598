package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsistore/dsistore/tools/report"
)

// Features lie in the page as columns, as 20,000 of them would say their keys 20,000 times, and much else:
//
//	{"rows": N, "columns": {"name": [v, v, ...], "kind": {"of": [v, v], "at": [0, 1, 0, ...]},
//	    "segments": {"all": v}, ...}}
//
// A column is a list of values, or, where few of them differ, these and which row has which, or the one value of all
// rows. A key of an object within a feature is "outer.inner"; a value that a feature has not got is null.

// digits of a number that is not whole: more than the page shows.
const digits = 6

// cells are the values of a column, as JSON.
type cells struct {
	key  string
	text []byte
	ends []int
}

func (c *cells) cell(i int) []byte {
	start := 0
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.text[start:c.ends[i]]
}

// appendColumns appends the features to b.
func appendColumns(b []byte, features []report.Feature) ([]byte, error) {
	b = fmt.Appendf(b, `{"rows":%d,"columns":{`, len(features))
	first := true
	add := func(c *cells) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendText(b, c.key)
		b = append(b, ':')
		b = c.append(b)
	}
	all := reflect.ValueOf(features)
	for _, f := range fieldsOf(reflect.TypeFor[report.Feature](), "", nil) {
		c := &cells{key: f.key, ends: make([]int, 0, len(features))}
		for i := range features {
			var err error
			if c.text, err = f.appendValue(c.text, all.Index(i)); err != nil {
				return nil, err
			}
			c.ends = append(c.ends, len(c.text))
		}
		add(c)
	}
	causes := map[string]bool{}
	for i := range features {
		for cause := range features[i].Saved {
			causes[cause] = true
		}
	}
	for _, cause := range slices.Sorted(maps.Keys(causes)) {
		c := &cells{key: "saved." + cause, ends: make([]int, 0, len(features))}
		for i := range features {
			if n, ok := features[i].Saved[cause]; ok {
				c.text = strconv.AppendInt(c.text, n, 10)
			} else {
				c.text = append(c.text, "null"...)
			}
			c.ends = append(c.ends, len(c.text))
		}
		add(c)
	}
	return append(b, '}', '}'), nil
}

// append appends the column in the form that takes least.
func (c *cells) append(b []byte) []byte {
	n := len(c.ends)
	at, of, bytes := map[string]int{}, [][]byte{}, 0
	rows := make([]int, n)
	for i := 0; i < n && at != nil; i++ {
		text := c.cell(i)
		k, known := at[string(text)]
		if !known {
			k = len(of)
			at[string(text)] = k
			of = append(of, text)
			bytes += len(text) + 1
		}
		rows[i] = k
		// Where most are new, those that follow are not looked at.
		if i >= 1000 && len(of) > i/2 {
			at = nil
		}
	}
	list := func(n int, write func(i int)) {
		b = append(b, '[')
		for i := range n {
			if i > 0 {
				b = append(b, ',')
			}
			write(i)
		}
		b = append(b, ']')
	}
	width := len(strconv.Itoa(len(of))) // of most numbers of values
	switch {
	case at != nil && len(of) == 1:
		b = append(append(append(b, `{"all":`...), of[0]...), '}')
	case at != nil && n > 0 && bytes+n*width+16 < len(c.text):
		b = append(b, `{"of":`...)
		list(len(of), func(i int) { b = append(b, of[i]...) })
		b = append(b, `,"at":`...)
		list(n, func(i int) { b = strconv.AppendInt(b, int64(rows[i]), 10) })
		b = append(b, '}')
	default:
		list(n, func(i int) { b = append(b, c.cell(i)...) })
	}
	return b
}

// A field is one of a feature, or of an object within it.
type field struct {
	key   string
	path  []int // of positions in structs; a nil pointer on it makes the value null
	empty bool  // is null where it is zero
}

// fieldsOf returns the fields of a struct that JSON has, but maps.
func fieldsOf(t reflect.Type, prefix string, path []int) (out []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(slices.Clone(path), i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous:
			out = append(out, fieldsOf(inner, prefix, at)...)
		case inner.Kind() == reflect.Struct:
			out = append(out, fieldsOf(inner, prefix+name+".", at)...)
		case inner.Kind() == reflect.Map: // Saved: a column for each of its keys
		default:
			out = append(out, field{prefix + name, at, options == "omitempty"})
		}
	}
	return out
}

// appendValue appends the field of a feature.
func (f *field) appendValue(b []byte, v reflect.Value) ([]byte, error) {
	for _, i := range f.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return append(b, "null"...), nil
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if f.empty && v.IsZero() || v.Kind() == reflect.Pointer && v.IsNil() {
		return append(b, "null"...), nil
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Float64:
		return appendFloat(b, v.Float())
	case reflect.String:
		return appendText(b, v.String()), nil
	}
	text, err := json.Marshal(v.Interface())
	return append(b, text...), err
}

// appendFloat appends a number, shortened where it is not whole.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is no number of JSON", f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.AppendInt(b, int64(f), 10), nil
	}
	return strconv.AppendFloat(b, f, 'g', digits, 64), nil
}

// appendText appends a string as encoding/json does, without what means something to HTML.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, err := json.Marshal(s)
			if err != nil {
				panic(err) // no string is one that JSON cannot have
			}
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
