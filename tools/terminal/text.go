package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/dsistore/dsistore/internal/quantity"
)

// OneLine joins the lines of a message and takes the control characters out, so that what data says cannot reach the
// terminal.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
}

// Bytes prints a number of bytes for people.
func Bytes(n uint64) string { return quantity.Bytes(n) }

// SignedBytes prints a number of bytes that may be negative.
func SignedBytes(n int64) string {
	if n < 0 {
		return "-" + Bytes(uint64(-n))
	}
	return Bytes(uint64(n))
}

// Rate prints bytes per second for people.
func Rate(bytes uint64, seconds float64) string { return quantity.Rate(bytes, seconds) }

// Count prints a number with a comma every three digits.
func Count[T uint64 | int64 | int](n T) string { return quantity.Count(n) }

// Plural prints a count and a noun.
func Plural(n uint64, noun string) string { return quantity.Plural(n, noun) }

// Time prints a time for people.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// Percent prints a share as a percentage of three digits; only all of it is 100 %.
func Percent(share float64) string {
	percent := 100 * share
	if share < 1 {
		percent = min(percent, 99.9)
	}
	return fmt.Sprintf("%.3g %%", percent)
}

// PercentOf prints part of whole as a percentage; only all of it is 100 %, and only nothing 0 %.
func PercentOf(part, whole uint64) string {
	switch {
	case whole == 0, part == whole:
		return "100 %"
	case part == 0:
		return "0 %"
	}
	return fmt.Sprintf("%.2f %%", min(max(100*float64(part)/float64(whole), 0.01), 99.99))
}

// TimeMillis prints a time to the millisecond, as JSON has it.
func TimeMillis(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// ShellWord returns s as a shell takes it for one word.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
