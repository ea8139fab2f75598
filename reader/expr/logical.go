package expr

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// A logicalUnit says how a value with a Logical is stored as an integer. The zero value: unchanged.
type logicalUnit struct {
	class class
	// A decimal v is stored as v*10^scale.
	scale int
	// A moment is stored as the number of units of so many nanoseconds since 1970-01-01 00:00:00 UTC.
	unit int64
}

var timeUnits = map[string]int64{"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}

const nanosecondsPerDay = 24 * 60 * 60 * 1e9

// parseLogical returns the unit of a Logical; false: values of this Logical are compared as stored.
func parseLogical(logical string) (logicalUnit, bool) {
	switch logical {
	case "date32":
		return logicalUnit{class: temporalClass, unit: nanosecondsPerDay}, true
	case "date64":
		return logicalUnit{class: temporalClass, unit: 1e6}, true
	}
	name, rest, _ := strings.Cut(logical, "[")
	closing := "]"
	if rest == "" {
		name, rest, _ = strings.Cut(logical, "(")
		closing = ")"
	}
	args := strings.Split(strings.TrimSuffix(rest, closing), ",")
	switch name {
	case "timestamp":
		if unit, ok := timeUnits[strings.TrimSpace(args[0])]; ok {
			return logicalUnit{class: temporalClass, unit: unit}, true
		}
	case "decimal":
		if len(args) == 2 {
			if scale, err := strconv.Atoi(strings.TrimSpace(args[1])); err == nil && scale >= -76 && scale <= 76 {
				return logicalUnit{class: decimalClass, scale: scale}, true
			}
		}
	}
	return logicalUnit{}, false
}

// stored returns the exact stored value of a number. It is not an integer if no stored value is that number.
func (u logicalUnit) stored(n Number) *big.Rat {
	r := n.rat()
	if u.class != decimalClass {
		return r
	}
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(u.scale, -u.scale))), nil))
	if u.scale < 0 {
		power.Inv(power)
	}
	return r.Mul(r, power)
}

// timeLayouts are how moments are written, without an offset and with one.
var timeLayouts = []string{
	"2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z07:00",
}

// parseTime reads a moment, in UTC unless an offset says otherwise.
func (u logicalUnit) parseTime(text string) (*big.Rat, error) {
	for _, layout := range timeLayouts {
		t, err := time.ParseInLocation(layout, text, time.UTC)
		if err != nil {
			continue
		}
		n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
		n.Add(n, big.NewInt(int64(t.Nanosecond())))
		return new(big.Rat).SetFrac(n, big.NewInt(u.unit)), nil
	}
	return nil, fmt.Errorf("'%s' is no date or time: want one as '2026-11-01' or '2026-11-01 12:30:00', in UTC or "+
		"with an offset as +02:00", shorten(text))
}
