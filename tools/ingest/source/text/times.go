package text

import (
	"fmt"
	"slices"

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

func (t *times) add(s string) {
	if !t.some {
		t.some, t.left = true, slices.Clone(timeFormats)
	}
	t.left = slices.DeleteFunc(t.left, func(f *column.TimeFormat) bool { return !f.Fits(s) })
}

func (t *times) merge(o *times) {
	switch {
	case !o.some:
	case !t.some:
		*t = *o
	default:
		t.left = slices.DeleteFunc(t.left, func(f *column.TimeFormat) bool { return !slices.Contains(o.left, f) })
	}
}

// timeHint says how a column of text is read as dates or timestamps, empty where it does not look like them.
func (c *textValues) timeHint(name string) string {
	if !c.some || !c.isText() || len(c.times.left) == 0 {
		return ""
	}
	null := ""
	if c.null.line > 0 {
		null = fmt.Sprintf(`, "text": {"null": %q}`, c.null.value)
	}
	hint := fmt.Sprintf(`looks like times: {"columns": {%q: {"time_format": %q}}%s} in a mapping file (--mapping) `+
		`reads them`, name, c.times.left[0], null)
	for _, f := range c.times.left[1:] {
		hint += fmt.Sprintf("; or %q, which fits too", f)
	}
	return hint
}
