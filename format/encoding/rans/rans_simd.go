//go:build amd64 && !purego

package rans

import (
	"math/bits"

	"github.com/dsistore/dsistore/internal/simd"
)

// rowsAVX512 is decodeRows; it ends where fewer than rowWords bytes of words are left, of which there are at
// least as many.
//
//go:noescape
func rowsAVX512(dst *int64, rows int, r *Decoder, words *byte, size int, base int64, low int) (done, used int)

// rowsAVX2 is rowsAVX512. take is take.
//
//go:noescape
func rowsAVX2(dst *int64, rows int, r *Decoder, words *byte, size int, base int64, low int,
	take *[256][8]uint8) (done, used int)

// take says for every set of 8 states, a bit each, how many of the states before are in it.
var take = func() (take [256][8]uint8) {
	for set := range take {
		for i := range 8 {
			take[set][i] = uint8(bits.OnesCount8(uint8(set) & (1<<i - 1)))
		}
	}
	return take
}()

// decodeRows decodes the first of some rows of 32 values, which dst has room for; it returns how many, and the bytes of
// words that they used. What it leaves is for rowFallback.
func decodeRows(dst []int64, rows int, r *Decoder) (done, used int) {
	if !simd.AVX2 || rows == 0 || len(r.words) < rowWords {
		return 0, 0
	}
	_ = dst[rows*lanes-1]
	if !simd.AVX512 {
		return rowsAVX2(&dst[0], rows, r, &r.words[0], len(r.words), r.base, r.low, &take)
	}
	return rowsAVX512(&dst[0], rows, r, &r.words[0], len(r.words), r.base, r.low)
}
