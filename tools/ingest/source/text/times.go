package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// timeFormats are the formats that are suggested for a column of text, the likelier ones first. Where several fit, none
// is taken for granted: 01/11/2026 is in November or in January.
var timeFormats = func() (all []*column.TimeFormat) {
	for _, clock := range []string{"", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p"} {
		for _, date := range []string{"%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y",
			"%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y",
			"%B %d, %Y"} {
			f, err := column.ParseTimeFormat(date + clock)
			if err != nil {
				panic(err)
			}
			all = append(all, f)
		}
	}
	return all
}()

// times is in which formats the first values of a column are written. This is for a hint alone, as lists are.
type times struct {
	some bool
	left []*column.TimeFormat
}

func (t *times) none() { t.some, t.left = true, nil }

func (t *times) add(s string) {
	switch {
	case t.some && len(t.left) == 0:
		return
	case !mayBeTime(s):
		t.none()
		return
	case !t.some:
		t.some, t.left = true, slices.Clone(timeFormats)
	}
	t.left = slices.DeleteFunc(t.left, func(f *column.TimeFormat) bool { return !f.Fits(s) })
}

// mayBeTime is a quick look at a value before all formats are tried.
func mayBeTime(s string) bool {
	digits, between := 0, 0
	for i := range min(len(s), mostTime+1) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case strings.IndexByte("/.- ", c) >= 0:
			between++
		}
	}
	return len(s) <= mostTime && digits >= 3 && between >= 2
}

// mostTime is longer than any value of timeFormats.
const mostTime = 40

func (t *times) merge(o *times) {
	switch {
	case !o.some:
	case !t.some:
		*t = *o
	default:
		t.left = slices.DeleteFunc(t.left, func(f *column.TimeFormat) bool { return !slices.Contains(o.left, f) })
	}
}

// timeHint says how a column of text is read as dates or timestamps, empty where it does not look like them. unit is
// that of timestamps by the table or the mapping file, logical what the table's feature is.
func (c *textValues) timeHint(name, unit, logical string) string {
	left := c.times.left
	if logical == "date32" {
		left = slices.DeleteFunc(slices.Clone(left), func(f *column.TimeFormat) bool { return f.Clock })
	}
	if !c.some || !c.isText() || len(left) == 0 {
		return ""
	}
	members := fmt.Sprintf(`"time_format": %q`, left[0])
	if unit != "" {
		members += fmt.Sprintf(`, "timestamp": %q`, unit)
	}
	null := ""
	if c.null.line > 0 {
		null = fmt.Sprintf(`, "text": {"null": %q}`, c.null.value)
	}
	hint := fmt.Sprintf(`looks like times: {"columns": {%q: {%s}}%s} in a mapping file (--mapping) reads them`, name,
		members, null)
	for _, f := range left[1:] {
		hint += fmt.Sprintf("; or %q, which fits too", f)
	}
	return hint
}
