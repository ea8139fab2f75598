package usage

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file makes and parses the names of objects, which SPEC.md lists, after the table's prefix.

const (
	rollupDir = "rollup/"
	dayFormat = "2006-01-02"

	sequenceDigits = 6
	numberDigits   = 10
	maxSequence    = 999_999
	maxNumber      = 9_999_999_999
)

// A day is one of UTC: days since 1970.
type day int64

const daySeconds = 24 * 60 * 60

// dayOf returns the day that a time is in. Those that have no four digits for the year are out of bounds, and become
// the next that has.
func dayOf(t time.Time) day {
	return day(min(max(t.Unix(), 0), lastSecond) / daySeconds)
}

// lastSecond is that of the year 9999.
const lastSecond = 253402300799

func (d day) start() time.Time { return seconds(int64(d) * daySeconds) }
func (d day) String() string   { return d.start().Format(dayFormat) }

func parseDay(s string) (day, bool) {
	t, err := time.Parse(dayFormat, s)
	return dayOf(t), err == nil && t.Unix() >= 0 && len(s) == len(dayFormat)
}

func recordsName(prefix string, d day, i id, sequence uint64) string {
	return fmt.Sprintf("%s%s/%x-%0*d", prefix, d, i[:], sequenceDigits, sequence)
}

func rollupName(prefix string, d day, number uint64) string {
	return fmt.Sprintf("%s%s%s-%0*d", prefix, rollupDir, d, numberDigits, number)
}

// An objectName is what the name of an object says.
type objectName struct {
	name     string
	rollup   bool
	day      day
	id       id     // of records
	sequence uint64 // of records, or the number of a rollup
	size     int64
	modTime  int64
}

// parseObjectName parses a name. It accepts no name that nothing in this file makes.
func parseObjectName(prefix, name string) (objectName, bool) {
	p := objectName{name: name}
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return p, false
	}
	if of, ok := strings.CutPrefix(rest, rollupDir); ok {
		p.rollup = true
		at := strings.LastIndexByte(of, '-')
		if at < 0 {
			return p, false
		}
		number, err := strconv.ParseUint(of[at+1:], 10, 64)
		p.day, ok = parseDay(of[:at])
		p.sequence = number
		return p, ok && err == nil && number > 0 && number <= maxNumber && name == rollupName(prefix, p.day, number)
	}
	dir, of, _ := strings.Cut(rest, "/")
	digits, number, _ := strings.Cut(of, "-")
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != len(p.id) {
		return p, false
	}
	p.id = id(b)
	p.sequence, err = strconv.ParseUint(number, 10, 64)
	p.day, ok = parseDay(dir)
	return p, ok && err == nil && p.sequence > 0 && p.sequence <= maxSequence &&
		name == recordsName(prefix, p.day, p.id, p.sequence)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// plus adds two numbers, and stays at the largest where they do not fit.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
