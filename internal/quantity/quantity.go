// Package quantity prints numbers of bytes and of things for people.
package quantity

import (
	"fmt"
	"strings"
)

// Bytes prints a number of bytes, with three digits of a number below 1,000.
func Bytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.*f %ciB", decimals(v), v, "_KMGT"[unit])
}

// Rate prints bytes per second.
func Rate(bytes uint64, seconds float64) string {
	if seconds <= 0 {
		return "-"
	}
	v := float64(bytes) / seconds / 1e6
	return fmt.Sprintf("%.*f MB/s", decimals(v), v)
}

// decimals keeps three digits of a number below 1,000.
func decimals(v float64) int {
	switch {
	case v < 10:
		return 2
	case v < 100:
		return 1
	}
	return 0
}

// Count prints a number with a comma every three digits.
func Count[T uint64 | int64 | int](n T) string {
	s := fmt.Sprint(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural prints a count and a noun.
func Plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") && noun != "epoch" {
		noun += "e"
	}
	return Count(n) + " " + noun + "s"
}
