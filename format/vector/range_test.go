package vector

import (
	"math"
	"testing"
)

func TestFirstOutOfRange(t *testing.T) {
	for _, c := range []struct {
		elem    Elem
		inside  []int64
		outside []int64
	}{
		{Bool, []int64{0, 1}, []int64{-1, 2, math.MinInt64, math.MaxInt64}},
		{Int8, []int64{-128, 0, 127}, []int64{-129, 128, math.MinInt64, math.MaxInt64}},
		{Int16, []int64{-32768, 32767}, []int64{-32769, 32768}},
		{Int32, []int64{math.MinInt32, math.MaxInt32}, []int64{math.MinInt32 - 1, math.MaxInt32 + 1, math.MaxInt64}},
		{Uint8, []int64{0, 255}, []int64{-1, 256}},
		{Uint16, []int64{0, 65535}, []int64{-1, 65536}},
		{Uint32, []int64{0, math.MaxUint32}, []int64{-1, math.MaxUint32 + 1, math.MinInt64}},
		{Int64, []int64{math.MinInt64, math.MaxInt64}, nil},
		{Uint64, []int64{math.MinInt64, -1, math.MaxInt64}, nil},
	} {
		if got := c.elem.FirstOutOfRange(c.inside); got != -1 {
			t.Errorf("%v: %d of %v is called out of range", c.elem, got, c.inside)
		}
		for _, v := range c.outside {
			vals := append(append([]int64{}, c.inside...), v, c.inside[0])
			if got := c.elem.FirstOutOfRange(vals); got != len(c.inside) {
				t.Errorf("%v: %v: got %d, want %d", c.elem, vals, got, len(c.inside))
			}
		}
	}
}
