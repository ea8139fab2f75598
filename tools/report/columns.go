package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/tools/terminal"
)

// ErrSort is matched when what to sort by is no column.
var ErrSort = errors.New("sort")

// A column is one of a listing of T's. Its value is a string, an uint64, an int64, a float64, or an *uint64 that may be
// nil: it is what rows are sorted by, and what CSV has.
type column[T any] struct {
	key   string // of JSON and CSV, and to sort by
	name  string // for people; empty: CSV alone has it
	value func(*T) any
	text  func(*T) string // for people; nil: as value is printed
}

// number reports whether the column's values are numbers, which stand at the right edge.
func (c *column[T]) number() bool {
	_, text := c.value(new(T)).(string)
	return !text
}

// A Listing is rows for people, and the same for programs.
type Listing struct {
	Names []string
	Rows  [][]string
	Right []string // names of columns of numbers
	// Keys and Values are all columns, values as CSV has them.
	Keys   []string
	Values [][]string
	// More rows than Rows has were left out for people.
	More int
}

// list lays out rows, sorted by the column of o.Sort, its key or its name for people, the largest number or the first
// word first; an empty one leaves them as they are.
func list[T any](rows []T, columns []column[T], o ViewOptions) (*Listing, error) {
	rows = slices.Clone(rows)
	if key := o.Sort; key != "" {
		at := slices.IndexFunc(columns, func(c column[T]) bool { return c.key == key })
		if at < 0 {
			at = slices.IndexFunc(columns, func(c column[T]) bool { return c.name == key })
		}
		if at < 0 {
			var keys []string
			for _, c := range columns {
				keys = append(keys, c.key)
			}
			hint := suggest.Hint(key, keys)
			if hint == "" {
				hint = ": want one of " + strings.Join(keys, ", ")
			}
			return nil, fmt.Errorf("%w: there is no column %.100q%s", ErrSort, key, hint)
		}
		c := &columns[at]
		slices.SortStableFunc(rows, func(a, b T) int {
			n := compare(c.value(&a), c.value(&b))
			if c.number() {
				n = -n
			}
			return n
		})
	}
	if o.Reverse {
		slices.Reverse(rows)
	}
	return layOut(rows, columns, o.Limit), nil
}

// layOut lays out rows in their order, for people the first limit of them; 0: all. Columns that are empty in all of
// these are left out for people.
func layOut[T any](rows []T, columns []column[T], limit int) *Listing {
	l := &Listing{Rows: [][]string{}, Values: [][]string{}}
	var shown []*column[T]
	used := rows
	if limit > 0 && len(used) > limit {
		used, l.More = used[:limit], len(used)-limit
	}
	for i := range columns {
		c := &columns[i]
		l.Keys = append(l.Keys, c.key)
		if c.name != "" && slices.ContainsFunc(used, func(r T) bool { return c.print(&r) != "" }) {
			shown = append(shown, c)
			l.Names = append(l.Names, c.name)
			if c.number() {
				l.Right = append(l.Right, c.name)
			}
		}
	}
	for i := range used {
		var row []string
		for _, c := range shown {
			row = append(row, c.print(&used[i]))
		}
		l.Rows = append(l.Rows, row)
	}
	for i := range rows {
		var row []string
		for k := range columns {
			row = append(row, plainText(columns[k].value(&rows[i])))
		}
		l.Values = append(l.Values, row)
	}
	return l
}

func (c *column[T]) print(r *T) string {
	if c.text != nil {
		return c.text(r)
	}
	switch v := c.value(r).(type) {
	case uint64:
		return terminal.Count(v)
	case int64:
		return terminal.Count(v)
	case float64:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprint(v)
	}
}

// compare compares two values of a column.
func compare(a, b any) int {
	switch a := a.(type) {
	case uint64:
		return cmp.Compare(a, b.(uint64))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return cmp.Compare(a, b.(string))
	case *uint64:
		return compareKnown(a, b.(*uint64))
	case *float64:
		return compareKnown(a, b.(*float64))
	}
	return 0
}

// compareKnown compares two values, of which one that is not known is the least.
func compareKnown[T cmp.Ordered](a, b *T) int {
	switch {
	case a != nil && b != nil:
		return cmp.Compare(*a, *b)
	case a != nil:
		return 1
	case b != nil:
		return -1
	}
	return 0
}

// plainText prints a value for programs; one that is not known is empty.
func plainText(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *uint64:
		if v == nil {
			return ""
		}
		return strconv.FormatUint(*v, 10)
	case *float64:
		if v == nil {
			return ""
		}
		return plainText(*v)
	}
	return fmt.Sprint(v)
}

// The columns of numbers that most listings have.

func bytesColumn[T any](key, name string, of func(*T) uint64) column[T] {
	return column[T]{key, name, func(r *T) any { return of(r) },
		func(r *T) string { return zeroless(of(r), terminal.Bytes) }}
}

func countColumn[T any](key, name string, of func(*T) uint64) column[T] {
	return column[T]{key, name, func(r *T) any { return of(r) },
		func(r *T) string { return zeroless(of(r), terminal.Count[uint64]) }}
}

// knownColumn is a column of numbers that may be unknown: empty for people and in CSV.
func knownColumn[T any](key, name string, print func(uint64) string, of func(*T) *uint64) column[T] {
	return column[T]{key, name, func(r *T) any { return of(r) }, func(r *T) string {
		if n := of(r); n != nil {
			return print(*n)
		}
		return ""
	}}
}

func floatColumn[T any](key, name, verb string, of func(*T) float64) column[T] {
	return column[T]{key, name, func(r *T) any { return of(r) }, func(r *T) string { return fmt.Sprintf(verb, of(r)) }}
}

func shareColumn[T any](key, name string, of func(*T) float64) column[T] {
	return column[T]{key, name, func(r *T) any { return of(r) }, func(r *T) string { return shareText(of(r)) }}
}

func textColumn[T any](key, name string, of func(*T) string) column[T] {
	return column[T]{key, name, func(r *T) any { return of(r) }, nil}
}

// zeroless prints nothing for 0, so that what there is stands out.
func zeroless(n uint64, print func(uint64) string) string {
	if n == 0 {
		return ""
	}
	return print(n)
}

// shareText prints a share, and neither 0 nor all for what is not.
func shareText(s float64) string {
	switch {
	case s <= 0:
		return "0 %"
	case s >= 1:
		return fmt.Sprintf("%.0f %%", 100*s)
	case s < 0.001:
		return "<0.1 %"
	case s > 0.999:
		return ">99.9 %"
	}
	return fmt.Sprintf("%.1f %%", 100*s)
}
