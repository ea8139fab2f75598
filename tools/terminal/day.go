package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Day is a day, or a number of days up to today. The zero Day is neither.
type Day struct {
	at   time.Time
	days int
}

// UnmarshalText reads 2026-11-01 or 30d.
func (d *Day) UnmarshalText(text []byte) error {
	t := string(text)
	if n, err := strconv.Atoi(strings.TrimSuffix(t, "d")); err == nil && strings.HasSuffix(t, "d") && n > 0 &&
		n <= 36500 {
		d.days = n
		return nil
	}
	at, err := time.ParseInLocation("2006-01-02", t, time.UTC)
	if err != nil {
		return fmt.Errorf("%.100q: want a day or a number of days, as in 2026-11-01 or 30d", t)
	}
	d.at = at
	return nil
}

// Since returns the first of the days, the zero Time of the zero Day.
func (d Day) Since(now time.Time) time.Time {
	if d.days > 0 {
		return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-d.days)
	}
	return d.at
}
