package format

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
)

// countRows sets NullRows, Elements and RawBytes of w.stripe, whose slots and elements are known.
func (w *Writer) countRows(c *vector.Column) {
	s := &w.stripe.Stats
	s.NullRows = uint64(w.stripe.Slots - w.stripe.Present)
	s.Elements = w.stripe.Elements
	if c.Type.Kind != vector.Inverse && c.Rows > 0 && (c.Inverse != nil || c.Lengths != nil) {
		s.NullRows, s.Elements = countSlots(c, w.inverse.rowsOfSlots(c))
	}
	s.RawBytes = s.Elements * sourceBytes(c.Type)
}

// countSlots returns how many rows are null, and how many values all rows have. rows is the number of rows of each
// slot; nil: not known.
func countSlots(c *vector.Column, rows []int32) (nulls, elements uint64) {
	if c.Present == nil && !c.Type.IsList() {
		return 0, uint64(c.Rows * c.Type.Width())
	}
	if rows != nil {
		for s, rows := range rows {
			n, e := countSlot(c, s)
			nulls, elements = nulls+n*uint64(rows), elements+e*uint64(rows)
		}
		return nulls, elements
	}
	if c.Inverse == nil {
		for s := range c.Slots {
			n, e := countSlot(c, s)
			nulls, elements = nulls+n, elements+e
		}
		return nulls, elements
	}
	// Neighbouring rows often share a slot. Count it once per run.
	for row := 0; row < len(c.Inverse); {
		s := c.Inverse[row]
		end := row + 1
		for end < len(c.Inverse) && c.Inverse[end] == s {
			end++
		}
		n, e := countSlot(c, int(s))
		rows := uint64(end - row)
		nulls, elements = nulls+n*rows, elements+e*rows
		row = end
	}
	return nulls, elements
}

// countSlot returns 1 and 0 for a slot that is null, else 0 and how many values it has.
func countSlot(c *vector.Column, s int) (null, elements uint64) {
	if c.Present != nil && !c.Present.Get(s) {
		return 1, 0
	}
	lo, hi := c.SlotRange(s)
	return 0, uint64(hi - lo)
}

// boundInts sets the bounds of vals, of which there is at least one.
func (s *Stats) boundInts(t vector.Type, vals []int64) {
	lo, hi := vals[0], vals[0]
	if t.Elem == vector.Uint64 {
		for _, v := range vals {
			lo = int64(min(uint64(lo), uint64(v)))
			hi = int64(max(uint64(hi), uint64(v)))
		}
	} else {
		for _, v := range vals {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if t.Kind != vector.Embedding {
		s.HasMinMax, s.MinInt, s.MaxInt = true, lo, hi
		s.roundBounds(t)
	}
}

// boundFloats sets the bounds of vals.
func boundFloats[T float32 | float64](s *Stats, t vector.Type, vals []T) {
	if t.Kind == vector.Embedding {
		return
	}
	least, most := T(math.Inf(1)), T(math.Inf(-1))
	seen := false
	for _, v := range vals {
		if v != v {
			continue
		}
		seen = true
		if v < least {
			least = v
		}
		if v > most {
			most = v
		}
	}
	if seen {
		s.HasMinMax, s.MinFloat, s.MaxFloat = true, float64(least), float64(most)
		s.roundBounds(t)
	}
}

// roundBounds widens the bounds of lists, so that they take fewer bytes in the directory. Bounds of dense features stay
// exact.
func (s *Stats) roundBounds(t vector.Type) {
	switch {
	case t.Kind == vector.Dense:
	case t.Elem.IsInteger():
		signed := t.Elem != vector.Uint64
		s.MinInt &^= lowBytes(s.MinInt, signed)
		s.MaxInt |= lowBytes(s.MaxInt, signed)
	default:
		if f := float32(s.MinFloat); float64(f) > s.MinFloat {
			s.MinFloat = float64(math.Nextafter32(f, float32(math.Inf(-1))))
		} else {
			s.MinFloat = float64(f)
		}
		if f := float32(s.MaxFloat); float64(f) < s.MaxFloat {
			s.MaxFloat = float64(math.Nextafter32(f, float32(math.Inf(1))))
		} else {
			s.MaxFloat = float64(f)
		}
	}
}

// lowBytes returns the mask of all bytes of v below the two most significant ones.
func lowBytes(v int64, signed bool) int64 {
	n := 8
	for n > 1 && fits(v, n-1, signed) {
		n--
	}
	return 1<<(8*max(n-2, 0)) - 1
}

// checkUTF8 returns an error if a slot is not valid UTF-8.
func checkUTF8(c *vector.Column) error {
	for i := range c.Slots {
		lo, hi := c.SlotRange(i)
		if !utf8.Valid(c.Data[lo:hi]) {
			return fmt.Errorf("slot %d of %d holds %d bytes that are not valid UTF-8: give the feature the kind bytes",
				i, c.Slots, hi-lo)
		}
	}
	return nil
}
