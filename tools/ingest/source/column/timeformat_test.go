package column

import (
	"strings"
	"testing"
	"time"
)

func TestTimeFormats(t *testing.T) {
	for _, test := range []struct {
		format, text, want string // want: RFC 3339; empty: does not fit
	}{
		{"%d/%m/%Y", "25/11/2026", "2026-11-25T00:00:00Z"},
		{"%d/%m/%Y", "1/2/2026", "2026-02-01T00:00:00Z"},
		{"%m/%d/%Y", "1/2/2026", "2026-01-02T00:00:00Z"},
		{"%m/%d/%Y", "25/11/2026", ""},
		{"%d/%m/%Y", "29/02/2026", ""},
		{"%d/%m/%Y", "29/02/2028", "2028-02-29T00:00:00Z"},
		{"%d/%m/%Y", "25/11/26", ""},
		{"%d/%m/%Y", "25/11/2026 ", ""},
		{"%d/%m/%y", "25/11/26", "2026-11-25T00:00:00Z"},
		{"%d/%m/%y", "25/11/70", "1970-11-25T00:00:00Z"},
		{"%m/%d/%Y %H:%M", "12/1/2010 8:26", "2010-12-01T08:26:00Z"},
		{"%m/%d/%Y %H:%M", "12/1/2010 24:26", ""},
		{"%Y%m%d", "20261101", "2026-11-01T00:00:00Z"},
		{"%Y%m%d", "2026111", ""},
		{"%Y%m%d%H%M%S", "20261101235958", "2026-11-01T23:59:58Z"},
		{"%Y%m%dT%H%M%SZ", "20261101T235958Z", "2026-11-01T23:59:58Z"},
		{"%d%b%Y", "01Nov2026", "2026-11-01T00:00:00Z"},
		{"%m%S%d %Y %H", "110201 2026 07", "2026-11-01T07:00:02Z"}, // 1 and 5 would be Go's 15, the hour
		{"%d_%m_%Y", "01_11_2026", "2026-11-01T00:00:00Z"},
		{"%d.%m.%Y %T", "1.11.2026 07:08:09", "2026-11-01T07:08:09Z"},
		{"%d.%m.%Y %H:%M:%S.%f", "1.11.2026 07:08:09.250", "2026-11-01T07:08:09.25Z"},
		{"%d.%m.%Y %H:%M:%S.%f", "1.11.2026 07:08:09", "2026-11-01T07:08:09Z"},
		{"%d.%m.%Y %T.%f", "1.11.2026 07:08:09.5", "2026-11-01T07:08:09.5Z"},
		{"%d.%m.%Y %H:%M:%S,%f", "1.11.2026 07:08:09,250", "2026-11-01T07:08:09.25Z"},
		{"%d%b%Y", "1Nov2026", "2026-11-01T00:00:00Z"},
		{"%D %I%p", "11/01/26 3PM", "2026-11-01T15:00:00Z"},
		{"%Y_%m_%d", "2026_1_05", "2026-01-05T00:00:00Z"},
		{" %d/%m/%Y ", "1/11/2026", "2026-11-01T00:00:00Z"},
		{"%D %I:%M %p", "11/01/26 12:05 am", "2026-11-01T00:05:00Z"},
		{"%D %I:%M %p", "11/01/26 12:05 PM", "2026-11-01T12:05:00Z"},
		{"%D %I:%M %p", "11/01/26 13:05 PM", ""},
		{"%B %d, %Y", "november 1, 2026", "2026-11-01T00:00:00Z"},
		{"%a, %d %b %Y %R", "Sun, 01 NOV 2026 07:08", "2026-11-01T07:08:00Z"},
		{"%F %T%z", "2026-11-01 07:08:09+0130", "2026-11-01T05:38:09Z"},
		{"%F %T%z", "2026-11-01 07:08:09Z", "2026-11-01T07:08:09Z"},
		{"%F %T%:z", "2026-11-01 07:08:09-08:00", "2026-11-01T15:08:09Z"},
	} {
		f, err := ParseTimeFormat(test.format)
		if err != nil {
			t.Error(err)
			continue
		}
		at, err := f.parse(test.text)
		got := ""
		if err == nil {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != test.want || f.Fits(test.text) != (err == nil) {
			t.Errorf("%q of %s is %q, want %q: %v", test.text, f, got, test.want, err)
		}
		if err != nil && !strings.Contains(err.Error(), "is not written as \""+test.format) {
			t.Error(err)
		}
	}
}

func TestTimeFormatsRefused(t *testing.T) {
	for format, want := range map[string]string{
		"":                 "the directives of strptime",
		"dd/MM/yyyy":       "the directives of strptime",
		"%d/%m":            "want a year, a month and a day",
		"%d/%m/%Y %M":      "want the hour",
		"%d/%m/%Y %I":      "want %H, or %I with %p",
		"%d/%m/%Y %H %p":   "want %H, or %I with %p",
		"%d/%m/%Y %q":      "%q is not known",
		"%d/%m/%Y %":       "% is not known",
		"%d/%m/%Y %:":      "%: is not known",
		"%d/%m/%Y %:zq":    `'q' is no directive`,
		"%d/%m/%Y %d":      "%d says again",
		"%d/%m/%Y %y":      "%y says again",
		"%d of %m in %Y":   `'o' is no directive`,
		"%d/%m/2006 %Y":    `'2' is no directive`,
		"%d/%m/%Y\u00a0%H": `'\u00a0' is no directive`,
		"%d/%m/%Y é%H":     `'é' is no directive`,
		"%H:%M:%S.%d %F":   "are a fraction",
		"%d/%m__%Y":        "two of _",
	} {
		if f, err := ParseTimeFormat(format); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", format, f, err)
		}
	}
}
