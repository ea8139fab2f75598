package source

import (
	"fmt"
	"math"
	"strings"
)

// timeUnits is how many of a unit are a second.
var timeUnits = map[string]int64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}

// A rescaling makes timestamps of one unit timestamps of another.
type rescaling struct {
	from, to string // units
}

// newRescaling returns how timestamps of a logical type become another.
func newRescaling(from, to string) (*rescaling, error) {
	unit := func(logical string) string {
		inner, ok := strings.CutPrefix(logical, "timestamp[")
		if !ok {
			return ""
		}
		inner, _, _ = strings.Cut(strings.TrimSuffix(inner, "]"), ",")
		return inner
	}
	r := &rescaling{unit(from), unit(to)}
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
