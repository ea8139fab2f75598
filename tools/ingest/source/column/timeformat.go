package column

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A TimeFormat says how dates or timestamps are written in text, by the directives of C's strptime.
type TimeFormat struct {
	text, layout string // layout is Go's
	// Clock: it has a time of the day.
	Clock bool
}

// A timePart is what a directive says of a time.
type timePart uint8

const (
	partYear timePart = 1 << iota
	partMonth
	partDay
	partHour
	partHour12
	partHalf  // a.m. or p.m.
	partClock // anything else of the day's time
	partDate  = partYear | partMonth | partDay
	partAny   = timePart(0) // nothing that counts
)

// timeDirectives are the directives but those of several parts. Numbers have one digit or two in layout, and two in
// tight, for where the next digit would be another number's.
var timeDirectives = map[string]struct {
	layout, tight string
	part          timePart
}{
	"Y": {"2006", "2006", partYear}, "y": {"06", "06", partYear},
	"m": {"1", "01", partMonth}, "b": {"Jan", "Jan", partMonth}, "B": {"January", "January", partMonth},
	"d": {"2", "02", partDay}, "e": {"2", "02", partDay},
	"a": {"Mon", "Mon", partAny}, "A": {"Monday", "Monday", partAny},
	"H": {"15", "15", partHour}, "I": {"3", "03", partHour12}, "p": {"PM", "PM", partHalf},
	"M": {"4", "04", partClock}, "S": {"5", "05", partClock},
	"z": {"Z0700", "Z0700", partClock}, ":z": {"Z07:00", "Z07:00", partClock},
}

// timeParts are the directives that stand for others.
var timeParts = strings.NewReplacer("%F", "%Y-%m-%d", "%T", "%H:%M:%S", "%R", "%H:%M", "%D", "%m/%d/%y")

// timeFractions: Go takes a fraction after the seconds without being told.
var timeFractions = strings.NewReplacer("%S.%f", "%S", "%S,%f", "%S")

// isNumber reports whether the directive that s begins with is of digits.
func isNumber(s string) bool {
	return len(s) > 1 && s[0] == '%' && strings.IndexByte("YymdeHIMS", s[1]) >= 0
}

// ParseTimeFormat reads a format such as "%d/%m/%Y %H:%M".
func ParseTimeFormat(text string) (*TimeFormat, error) {
	f := &TimeFormat{text: text}
	fail := func(format string, args ...any) (*TimeFormat, error) {
		return nil, fmt.Errorf("%s: "+format, append([]any{Quote(text)}, args...)...)
	}
	if !strings.Contains(text, "%") {
		return fail("want the directives of strptime, as in %q", "%d/%m/%Y %H:%M:%S")
	}
	var parts timePart
	rest := timeFractions.Replace(timeParts.Replace(strings.TrimSpace(text)))
	if strings.Contains(rest, "%S.%") || strings.Contains(rest, "%S,%") {
		return fail("after seconds, a point or a comma and a number are a fraction: want %%S.%%f")
	}
	if strings.Contains(rest, "__") {
		return fail("two of _ side by side are not read")
	}
	for tight := false; rest != ""; {
		name, found := strings.CutPrefix(rest, "%")
		if !found {
			c, _ := utf8.DecodeRuneInString(rest)
			if c >= utf8.RuneSelf || c != 'T' && c != 'Z' && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
				return fail("%q is no directive: want %% before it, and between directives blanks and punctuation", c)
			}
			tight = strings.HasPrefix(rest, "_%d") || strings.HasPrefix(rest, "_%e") // Go has a day "_2" of its own
			f.layout, rest = f.layout+rest[:1], rest[1:]
			continue
		}
		name = name[:min(len(name), 1)]
		if name == ":" {
			name = rest[1:min(len(rest), 3)]
		}
		d, ok := timeDirectives[name]
		if !ok {
			return fail("%%%s is not known: want %%Y or %%y, %%m, %%b or %%B, %%d, %%H or %%I and %%p, %%M, %%S and "+
				"%%S.%%f, %%z (+0100) or %%:z (+01:00), %%a or %%A", name)
		}
		if d.part != partClock && parts&d.part != 0 {
			return fail("%%%s says again what a directive before it says", name)
		}
		parts |= d.part
		number := isNumber(rest)
		rest = rest[1+len(name):]
		if tight || isNumber(rest) {
			f.layout += d.tight
		} else {
			f.layout += d.layout
		}
		tight = number && isNumber(rest)
	}
	f.Clock = parts&^partDate != 0
	switch {
	case parts&partDate != partDate:
		return fail("want a year, a month and a day")
	case f.Clock && parts&(partHour|partHour12) == 0:
		return fail("want the hour: %%H, or %%I with %%p")
	case parts&partHour != 0 && parts&(partHour12|partHalf) != 0, (parts&partHour12 != 0) != (parts&partHalf != 0):
		return fail("want %%H, or %%I with %%p")
	}
	return f, nil
}

// String returns the format as it was given.
func (f *TimeFormat) String() string { return f.text }

// parse reads a time, in UTC where no zone is in it.
func (f *TimeFormat) parse(s string) (time.Time, error) {
	if strings.Contains(f.layout, "PM") {
		s = strings.ToUpper(s) // names of months and days are found in any case
	}
	t, err := time.Parse(f.layout, s)
	if err != nil {
		return t, fmt.Errorf("%s is not written as %q", Quote(s), f.text)
	}
	return t, nil
}

// Fits reports whether s is written in the format.
func (f *TimeFormat) Fits(s string) bool {
	_, err := f.parse(s)
	return err == nil
}

var errNoTimes = errors.New("time_format is for dates and timestamps")

// SetTimeFormat makes f the format of the dates or timestamps that n has. A date's format must have no time of the day.
func (n *Type) SetTimeFormat(f *TimeFormat) error {
	switch {
	case n.Shape == Number && n.Logical == "date32":
		if f.Clock {
			return fmt.Errorf("time_format %q has a time of the day: want type timestamp, not date", f.text)
		}
		n.TimeFormat = f
	case n.Shape == Number && TimestampUnit(n.Logical) != "":
		n.TimeFormat = f
	}
	for _, c := range n.Children {
		if err := c.SetTimeFormat(f); err != nil && !errors.Is(err, errNoTimes) {
			return err
		}
	}
	if !n.HasTimeFormat() {
		return fmt.Errorf("%w, not for %v", errNoTimes, n)
	}
	return nil
}

// HasTimeFormat reports whether n has dates or timestamps with a format.
func (n *Type) HasTimeFormat() bool {
	return n.TimeFormat != nil || slices.ContainsFunc(n.Children, (*Type).HasTimeFormat)
}
