package column

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// TimeUnits is how many of a unit are a second.
var TimeUnits = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// TimestampUnit returns the unit of a logical type; empty: it is no timestamp.
func TimestampUnit(logical string) string {
	inner, ok := strings.CutPrefix(logical, "timestamp[")
	if !ok {
		return ""
	}
	inner, _, _ = strings.Cut(strings.TrimSuffix(inner, "]"), ",")
	return inner
}

// WithUnit returns the logical type of a timestamp with another unit.
func WithUnit(logical, unit string) string {
	return "timestamp[" + unit + strings.TrimPrefix(logical, "timestamp["+TimestampUnit(logical))
}

// A Timestamp is a time as sources have it that say seconds and nanoseconds: text, INT96 and ORC.
type Timestamp struct {
	Seconds int64 // since 1970, rounded down
	Nanos   int64 // 0 to 999,999,999
}

func (m Timestamp) String() string {
	return time.Unix(m.Seconds, m.Nanos).UTC().Format("2006-01-02 15:04:05.999999999")
}

// In returns m in a unit, and false where 64 bits do not hold it.
func (m Timestamp) In(unit string) (v int64, fits bool) {
	per := TimeUnits[unit]
	rest := m.Nanos / (1e9 / per)
	if m.Seconds < 0 { // the product alone may be out of range where the sum is not
		m.Seconds, rest = m.Seconds+1, rest-per
	}
	if m.Seconds > math.MaxInt64/per || m.Seconds < math.MinInt64/per {
		return 0, false
	}
	v = m.Seconds * per
	if rest > 0 && v > math.MaxInt64-rest || rest < 0 && v < math.MinInt64-rest {
		return 0, false
	}
	return v + rest, true
}

// exact reports whether m is a whole number of a unit.
func (m Timestamp) exact(unit string) bool { return m.Nanos%(1e9/TimeUnits[unit]) == 0 }

// Value returns m in the unit of a type, or an error that says why it has no place in it. text is m as the source has
// it.
func (m Timestamp) Value(n *Type, text string) (int64, error) {
	unit := TimestampUnit(n.Logical)
	v, fits := m.In(unit)
	switch {
	case !fits && n.NoUnit:
		return 0, fmt.Errorf("%s is not in the years 1677 to 2262 that 64 bits of nanoseconds hold, and the column "+
			"has fractions of microseconds: no unit holds all of it; text and JSON can be read as strings (\"type\": "+
			"\"string\"), and --on-bad-row quarantine leaves such rows out", text)
	case !fits && unit == "ns":
		return 0, fmt.Errorf("%s is not in the years 1677 to 2262 that 64 bits of nanoseconds hold; {\"timestamp\": "+
			"\"us\"} in a mapping file reads the column in microseconds where none of it is finer, under another "+
			"name (\"rename\") where the table has it in nanoseconds", text)
	case !fits:
		return 0, fmt.Errorf("%s is out of the range of %s in 64 bits", text, unit)
	case !m.exact(unit):
		return 0, fmt.Errorf("%s is no whole number of %s", text, unit)
	}
	return v, nil
}

// TimestampRange says which units hold the timestamps of a column.
type TimestampRange struct {
	some      bool
	far, fine bool // one is out of the range of nanoseconds; one is no whole number of microseconds
}

// Add takes a timestamp into account.
func (r *TimestampRange) Add(m Timestamp) {
	_, fits := m.In("ns")
	r.some, r.far, r.fine = true, r.far || !fits, r.fine || !m.exact("us")
}

// Merge takes the timestamps of o into account.
func (r *TimestampRange) Merge(o TimestampRange) {
	r.some, r.far, r.fine = r.some || o.some, r.far || o.far, r.fine || o.fine
}

// None reports whether no unit holds all.
func (r *TimestampRange) None() bool { return r.far && r.fine }

// Unit returns the finest unit that holds all. Where none does, nanoseconds: the rows that they do not hold are bad.
func (r *TimestampRange) Unit() string {
	if r.far && !r.fine {
		return "us"
	}
	return "ns"
}

// A Rescaling makes timestamps of one unit timestamps of another.
type Rescaling struct {
	From, To string // units
}

// NewRescaling returns how timestamps of a logical type become another.
func NewRescaling(from, to string) (*Rescaling, error) {
	r := &Rescaling{TimestampUnit(from), TimestampUnit(to)}
	if TimeUnits[r.From] == 0 {
		return nil, fmt.Errorf("\"timestamp\" is for timestamps")
	}
	return r, nil
}

// Apply returns the timestamps of a, in memory of their own. One that is out of range, or between two of a coarser
// unit, is bad.
func (r *Rescaling) Apply(a *Array, bad func(entry int, err error)) []int64 {
	out := make([]int64, a.Len)
	times, over := TimeUnits[r.To]/TimeUnits[r.From], TimeUnits[r.From]/TimeUnits[r.To]
	for i, v := range a.Ints {
		switch {
		case a.IsNull(i):
		case over > 1 && v%over != 0:
			bad(i, fmt.Errorf("the timestamp %d %s is no whole number of %s", v, r.From, r.To))
		case over > 1:
			out[i] = v / over
		case v > math.MaxInt64/times || v < math.MinInt64/times:
			bad(i, fmt.Errorf("the timestamp %d %s is out of the range of %s in 64 bits", v, r.From, r.To))
		default:
			out[i] = v * times
		}
	}
	return out
}
