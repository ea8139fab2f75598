package format

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/dsistore/dsistore/format/vector"
)

// addStats fills in w.stripe.Stats from c, and refuses integers that do not fit the type.
func (w *Writer) addStats(c *vector.Column) error {
	s := &w.stripe.Stats
	s.NullRows = uint64(w.stripe.Slots - w.stripe.Present)
	s.Elements = w.stripe.Elements
	if c.Type.Kind == vector.Inverse {
		return nil
	}
	if c.Rows > 0 && (c.Inverse != nil || c.Lengths != nil) {
		s.NullRows, s.Elements = 0, 0
		for row := range c.Rows {
			if c.IsNull(row) {
				s.NullRows++
				continue
			}
			lo, hi := c.RowRange(row)
			s.Elements += uint64(hi - lo)
		}
	}
	s.RawBytes = s.Elements * sourceBytes(c.Type)
	if w.stripe.Elements == 0 {
		return nil
	}
	switch {
	case c.Type.Physical() == vector.ByteValues:
	case c.Type.Elem.IsInteger():
		if err := s.addInts(c.Type, compact(&w.ints, c, c.Ints)); err != nil {
			return err
		}
	case c.Type.Elem == vector.Float32:
		s.HasMinMax, s.MinFloat, s.MaxFloat = floatRange(compact(&w.floats, c, c.Floats))
	default:
		s.HasMinMax, s.MinFloat, s.MaxFloat = floatRange(compact(&w.doubles, c, c.Doubles))
	}
	if c.Type.Kind != vector.Dense {
		s.roundBounds(c.Type)
	}
	return nil
}

// addInts sets exact bounds of vals, of which there is at least one.
func (s *Stats) addInts(t vector.Type, vals []int64) error {
	s.HasMinMax = true
	lo, hi := vals[0], vals[0]
	if t.Elem == vector.Uint64 {
		for _, v := range vals {
			lo = int64(min(uint64(lo), uint64(v)))
			hi = int64(max(uint64(hi), uint64(v)))
		}
		s.MinInt, s.MaxInt = lo, hi
		return nil
	}
	for _, v := range vals {
		lo, hi = min(lo, v), max(hi, v)
	}
	s.MinInt, s.MaxInt = lo, hi
	if least, most := intRange(t.Elem); lo < least || hi > most {
		bad := hi
		if lo < least {
			bad = lo
		}
		return fmt.Errorf("value %d does not fit %v", bad, t.Elem)
	}
	return nil
}

// intRange returns the least and the most integer of e, which is not uint64.
func intRange(e vector.Elem) (least, most int64) {
	switch e {
	case vector.Bool:
		return 0, 1
	case vector.Int8:
		return math.MinInt8, math.MaxInt8
	case vector.Int16:
		return math.MinInt16, math.MaxInt16
	case vector.Int32:
		return math.MinInt32, math.MaxInt32
	case vector.Uint8:
		return 0, math.MaxUint8
	case vector.Uint16:
		return 0, math.MaxUint16
	case vector.Uint32:
		return 0, math.MaxUint32
	}
	return math.MinInt64, math.MaxInt64
}

func floatRange[T float32 | float64](vals []T) (ok bool, least, most float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range vals {
		if v == v {
			ok = true
			least, most = min(least, float64(v)), max(most, float64(v))
		}
	}
	if !ok {
		return false, 0, 0
	}
	return true, least, most
}

// roundBounds widens the bounds of a list's values to what takes few bytes in the directory, and drops those of
// embeddings.
func (s *Stats) roundBounds(t vector.Type) {
	switch {
	case t.Kind == vector.Embedding:
		s.HasMinMax, s.MinInt, s.MaxInt, s.MinFloat, s.MaxFloat = false, 0, 0, 0, 0
	case !s.HasMinMax:
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

func checkUTF8(c *vector.Column) error {
	for i := range c.Slots {
		lo, hi := c.SlotRange(i)
		if !utf8.Valid(c.Data[lo:hi]) {
			return fmt.Errorf("slot %d of %d holds %d bytes that are not valid UTF-8: give the feature the kind bytes", i, c.Slots, hi-lo)
		}
	}
	return nil
}
