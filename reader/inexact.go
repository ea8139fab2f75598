package reader

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// exact reports whether the i-th of p's features comes as an exact column because PlanOptions.Integers has it.
func (p *Plan) exact(i int) bool { return p.Exact != nil && p.Exact[i] }

func (p *Plan) setExact(i int) {
	if p.Exact == nil {
		p.Exact = make([]bool, len(p.Features))
	}
	p.Exact[i] = true
}

// exactBy marks the features of names, which are of the types that transforms give.
func (p *Plan) exactBy(names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(p.Features, func(f storage.Feature) bool { return f.Name == name })
		if i < 0 {
			return fmt.Errorf("integers: %q is not among the features that are read", name)
		}
		if err := mayBeExact(p.Features[i]); err != nil {
			return fmt.Errorf("integers: %w", err)
		}
		p.setExact(i)
	}
	return nil
}

func mayBeExact(f storage.Feature) error {
	switch {
	case f.Type.Kind == vector.Dense && f.Type.Elem.IsInteger():
		return nil
	case f.Type.IsList() && f.Type.Elem.IsInteger():
		return fmt.Errorf("%q is %v, whose ids are int64 anyway: want a number a row", f.Name, f.Type)
	}
	return fmt.Errorf("%q is %v: want a dense integer", f.Name, f.Type)
}

// validateExact is Validate for Exact.
func (p *Plan) validateExact() error {
	switch {
	case p.Exact == nil:
		return nil
	case len(p.Exact) != len(p.Features):
		return fmt.Errorf("exact: of %d features, there are %d", len(p.Exact), len(p.Features))
	case !slices.Contains(p.Exact, true):
		return errors.New("exact: no feature is")
	}
	for i, exact := range p.Exact {
		if exact {
			if err := mayBeExact(p.Features[i]); err != nil {
				return fmt.Errorf("exact: %w", err)
			}
		}
	}
	return nil
}

// An InexactError says which integers of a batch's matrices float32 does not hold: one of each feature that has any.
type InexactError struct{ Integers []InexactInteger }

// An InexactInteger is an integer that float32 does not hold.
type InexactInteger struct {
	Feature string
	Value   string // in decimal
	Row     uint64 // in the order of the epoch
}

// namedInexact bounds the features that an InexactError's text names.
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
	b.WriteString(". float32 holds every integer up to 2^24. Ask for the feature among integers, which come as int64; or make lists of it, " +
		"as for an embedding table, with the transform list; or round it with the transform cast(float32)")
	return b.String()
}

// maxInexact is the largest OR of integers, as scatterInts returns it, of which float32 holds all.
const maxInexact = 1<<24 - 1

// appendInexact appends the first integer among rows [lo, hi) of c that float32 does not hold, unless there is one of the feature already.
// Row 0 of c is row first of the epoch.
func appendInexact(to []InexactInteger, feature string, c *vector.Column, width, lo, hi int, first uint64) []InexactInteger {
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

// float32Holds reports whether a float32 is equal to an integer: its bits from the first that is set to the last are no more than the 24 of
// a mantissa.
func float32Holds(v int64, e vector.Elem) bool {
	size := uint64(v)
	if e != vector.Uint64 && v < 0 {
		size = -size
	}
	return size == 0 || bits.Len64(size)-bits.TrailingZeros64(size) <= 24
}
