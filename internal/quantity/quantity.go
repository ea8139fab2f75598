// Package quantity prints numbers of bytes for people.
package quantity

import "fmt"

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
