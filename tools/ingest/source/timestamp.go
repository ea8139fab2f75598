package source

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// timeUnits is how many of a unit are a second.
var timeUnits = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// timestampUnit returns the unit of a logical type; empty: it is no timestamp.
func timestampUnit(logical string) string {
	inner, ok := strings.CutPrefix(logical, "timestamp[")
	if !ok {
		return ""
	}
	inner, _, _ = strings.Cut(strings.TrimSuffix(inner, "]"), ",")
	return inner
}

// withUnit returns the logical type of a timestamp with another unit.
func withUnit(logical, unit string) string {
	return "timestamp[" + unit + strings.TrimPrefix(logical, "timestamp["+timestampUnit(logical))
}

// A moment is a time as sources have it that say seconds and nanoseconds: text, INT96 and ORC.
type moment struct {
	seconds int64 // since 1970, rounded down
	nanos   int64 // 0 to 999,999,999
}

func (m moment) String() string {
	return time.Unix(m.seconds, m.nanos).UTC().Format("2006-01-02 15:04:05.999999999")
}

// in returns m in a unit, and false where 64 bits do not hold it.
func (m moment) in(unit string) (v int64, fits bool) {
	per := timeUnits[unit]
	rest := m.nanos / (1e9 / per)
	if m.seconds < 0 { // the product alone may be out of range where the sum is not
		m.seconds, rest = m.seconds+1, rest-per
	}
	if m.seconds > math.MaxInt64/per || m.seconds < math.MinInt64/per {
		return 0, false
	}
	v = m.seconds * per
	if rest > 0 && v > math.MaxInt64-rest || rest < 0 && v < math.MinInt64-rest {
		return 0, false
	}
	return v + rest, true
}

// exact reports whether m is a whole number of a unit.
func (m moment) exact(unit string) bool { return m.nanos%(1e9/timeUnits[unit]) == 0 }

// value returns m in the unit of a node, or an error that says why it has no place in it. text is m as the source has it.
func (m moment) value(n *node, text string) (int64, error) {
	unit := timestampUnit(n.logical)
	v, fits := m.in(unit)
	switch {
	case !fits && n.noUnit:
		return 0, fmt.Errorf("%s is not in the years 1677 to 2262 that 64 bits of nanoseconds hold, and the column has fractions of microseconds: no unit holds all of it; text and JSON can be read as strings (\"type\": \"string\"), and --on-bad-row quarantine leaves such rows out", text)
	case !fits && unit == "ns":
		return 0, fmt.Errorf("%s is not in the years 1677 to 2262 that 64 bits of nanoseconds hold; {\"timestamp\": \"us\"} in a mapping file reads the column in microseconds where none of it is finer, under another name (\"rename\") where the table has it in nanoseconds", text)
	case !fits:
		return 0, fmt.Errorf("%s is out of the range of %s in 64 bits", text, unit)
	case !m.exact(unit):
		return 0, fmt.Errorf("%s is no whole number of %s", text, unit)
	}
	return v, nil
}

// momentRange says which units hold the timestamps of a column.
type momentRange struct {
	some      bool
	far, fine bool // one is out of the range of nanoseconds; one is no whole number of microseconds
}

func (r *momentRange) add(m moment) {
	_, fits := m.in("ns")
	r.some, r.far, r.fine = true, r.far || !fits, r.fine || !m.exact("us")
}

func (r *momentRange) merge(o momentRange) {
	r.some, r.far, r.fine = r.some || o.some, r.far || o.far, r.fine || o.fine
}

// none reports whether no unit holds all.
func (r *momentRange) none() bool { return r.far && r.fine }

// unit returns the finest unit that holds all. Where none does, nanoseconds: the rows that they do not hold are bad.
func (r *momentRange) unit() string {
	if r.far && !r.fine {
		return "us"
	}
	return "ns"
}

// A rescaling makes timestamps of one unit timestamps of another.
type rescaling struct {
	from, to string // units
}

// newRescaling returns how timestamps of a logical type become another.
func newRescaling(from, to string) (*rescaling, error) {
	r := &rescaling{timestampUnit(from), timestampUnit(to)}
	if timeUnits[r.from] == 0 {
		return nil, fmt.Errorf("\"timestamp\" is for timestamps")
	}
	return r, nil
}

// apply returns the timestamps of a, in memory of their own. One that is out of range, or between two of a coarser unit, is bad.
func (r *rescaling) apply(a *array, bad func(entry int, err error)) []int64 {
	out := make([]int64, a.n)
	times, over := timeUnits[r.to]/timeUnits[r.from], timeUnits[r.from]/timeUnits[r.to]
	for i, v := range a.ints {
		switch {
		case a.isNull(i):
		case over > 1 && v%over != 0:
			bad(i, fmt.Errorf("the timestamp %d %s is no whole number of %s", v, r.from, r.to))
		case over > 1:
			out[i] = v / over
		case v > math.MaxInt64/times || v < math.MinInt64/times:
			bad(i, fmt.Errorf("the timestamp %d %s is out of the range of %s in 64 bits", v, r.from, r.to))
		default:
			out[i] = v * times
		}
	}
	return out
}
