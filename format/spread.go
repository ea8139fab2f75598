package format

import (
	"math/bits"

	"github.com/dsistore/dsistore/format/vector"
)

// spread moves the values at the front of v, width for each set bit of present, to the slots of those bits, and zeroes
// the others. v holds width values for every slot.
//
//	present   1 0 0 1 1 0        v before   a b c . . .        after   a 0 0 b c 0
//
// It goes from the last slot to the first. Values only move up, so none overwrites one that has yet to move.
func spread[T any](v []T, present vector.Bitmap, slots, width int) {
	if width == 1 {
		spreadOne(v[:slots], present)
		return
	}
	k := present.Count()
	for s := slots - 1; k <= s; s-- { // once k > s, everything is in its place
		to := v[s*width : (s+1)*width]
		if !present.Get(s) {
			clear(to)
			continue
		}
		k--
		copy(to, v[k*width:(k+1)*width])
	}
}

// spreadOne is spread for a width of 1. It handles one word of presence at a time, without a branch per slot. The
// values are copied aside first, because they may overlap the slots of the word.
func spreadOne[T any](v []T, present vector.Bitmap) {
	var aside [64]T
	k := present.Count()
	for w := len(present) - 1; w >= 0; w-- {
		word := present[w]
		to := v[64*w : min(64*w+64, len(v))]
		n := bits.OnesCount64(word)
		if k == 64*w+n && n == len(to) {
			return // everything is in its place
		}
		from := v[k-n : k]
		if n == len(to) {
			copy(to, from)
			k -= n
			continue
		}
		copy(aside[:n], from)
		k -= n
		clear(to)
		for i := 0; word != 0; i++ {
			to[bits.TrailingZeros64(word)] = aside[i&63]
			word &= word - 1
		}
	}
}
