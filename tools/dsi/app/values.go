package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dsistore/dsistore/reader"
)

// Size is a number of bytes as users write it: 512MiB, 1GiB, 4g, 1.5T, 250MB, 1048576.
type Size int64

// units by their lower-case spelling: k, m, g and t count in 1024s as the JVM's and the kernel's do, and so do KiB and
// its kin; KB and its kin count in thousands.
var units = map[string]float64{
	"": 1, "b": 1,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(text []byte) error {
	t := strings.TrimSpace(string(text))
	digits := len(t) - len(strings.TrimLeft(t, "0123456789."))
	unit, known := units[strings.ToLower(strings.TrimSpace(t[digits:]))]
	number, err := strconv.ParseFloat(t[:digits], 64)
	if err != nil || !known || number*unit < 1 || number*unit >= math.MaxInt64 {
		return fmt.Errorf("size %q: want a number and a unit, as in 512MiB, 1GiB or 4g", t)
	}
	*s = Size(number * unit)
	return nil
}

// A Period is a length of time as users write it: 90s, 15m, 24h, or 7d for seven times 24 hours.
type Period time.Duration

// maxDays is the longest period in days, a hundred years.
const maxDays = 36500

// UnmarshalText reads a period.
func (p *Period) UnmarshalText(text []byte) error {
	t := string(text)
	d, err := time.ParseDuration(t)
	if days, ok := strings.CutSuffix(t, "d"); ok {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 64); err == nil && (n > maxDays || n < -maxDays) {
			return fmt.Errorf("%q: want at most %dd", t, maxDays)
		}
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil {
		return fmt.Errorf("%q: want a time with its unit, as in 90s, 15m, 24h or 7d", t)
	}
	*p = Period(d)
	return nil
}

func (p Period) String() string { return time.Duration(p).String() }

// Dedup is how batches hold what rows share.
type Dedup reader.Dedup

// UnmarshalText reads its name.
func (d *Dedup) UnmarshalText(text []byte) error {
	v, err := reader.ParseDedup(string(text))
	*d = Dedup(v)
	return err
}

// A Moment selects a snapshot: by number, or as of a time. The zero Moment is the latest.
type Moment struct {
	Number uint64
	Time   time.Time
}

// momentLayouts are the times that --at takes besides RFC 3339; they are in UTC.
var momentLayouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// UnmarshalText reads a snapshot number or a time.
func (m *Moment) UnmarshalText(text []byte) error {
	t := string(text)
	if n, err := strconv.ParseUint(t, 10, 64); err == nil {
		if n == 0 {
			return fmt.Errorf("snapshot 0: snapshots count from 1")
		}
		*m = Moment{Number: n}
		return nil
	}
	at, err := time.Parse(time.RFC3339, t)
	for _, layout := range momentLayouts {
		if err == nil {
			break
		}
		at, err = time.ParseInLocation(layout, t, time.UTC)
	}
	if err != nil {
		return fmt.Errorf("%q: want a snapshot's number or a time, as in 17, 2026-11-01 or 2026-11-01T03:00:00Z", t)
	}
	*m = Moment{Time: at}
	return nil
}
