package batch

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
)

// An InexactError lists integers in a batch's matrices that float32 cannot represent: the first of each feature.
type InexactError struct{ Integers []InexactInteger }

// An InexactInteger is an integer that float32 cannot represent.
type InexactInteger struct {
	Feature string
	Value   string // in decimal
	Row     uint64 // in the order of the epoch
}

// namedInexact is how many features an InexactError's text names.
const namedInexact = 20

func (e *InexactError) Error() string {
	var b strings.Builder
	b.WriteString("integers that float32 does not hold would be rounded: ")
	for i, x := range e.Integers {
		switch {
		case i == namedInexact:
			fmt.Fprintf(&b, ", and %d features more", len(e.Integers)-i)
		case i < namedInexact:
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "feature %q has %s (row %d)", x.Feature, x.Value, x.Row)
		}
	}
	first := e.Integers[0].Feature
	fmt.Fprintf(&b, ". float32 holds every integer up to 2^24. Ask for int64, in Python with integers=[%q]; for id "+
		"lists, as for an embedding table, with sparse=[%[1]q]; or for rounded ones, with transforms={%[1]q: "+
		"\"cast(float32)\"}. Keys come as they are: the mapping file of the ingest gives a feature that role", first)
	return b.String()
}

// maxInexact is the largest result of expand.ScatterInts with which float32 surely holds all integers.
const maxInexact = 1<<24 - 1

// appendInexact appends the first integer of rows [lo, hi) of c that float32 cannot represent, unless to has one of the
// feature already. Row 0 of c is row first of the epoch.
func appendInexact(to []InexactInteger, feature string, c *vector.Column, width, lo, hi int,
	first uint64) []InexactInteger {
	if slices.ContainsFunc(to, func(x InexactInteger) bool { return x.Feature == feature }) {
		return to
	}
	for r := lo; r < hi; r++ {
		s := c.Slot(r) * width
		for _, v := range c.Ints[s : s+width] {
			if float32Holds(v, c.Type.Elem) {
				continue
			}
			text := strconv.FormatInt(v, 10)
			if c.Type.Elem == vector.Uint64 {
				text = strconv.FormatUint(uint64(v), 10)
			}
			return append(to, InexactInteger{Feature: feature, Value: text, Row: first + uint64(r)})
		}
	}
	return to
}

// float32Holds reports whether float32 can represent an integer: the bits from the first set one to the last set one
// are at most 24, as in the mantissa.
func float32Holds(v int64, e vector.Elem) bool {
	size := uint64(v)
	if e != vector.Uint64 && v < 0 {
		size = -size
	}
	return size == 0 || bits.Len64(size)-bits.TrailingZeros64(size) <= 24
}
