//go:build amd64 && !purego

package encoding

import (
	"math/bits"

	"github.com/dsistore/dsistore/internal/simd"
)

// packBlocksAVX2 packs whole blocks of values to 1 to 64 bits. vals has 256 values a block, dst room for 32*width bytes
// a block.
//
//go:noescape
func packBlocksAVX2(dst *byte, vals *int64, blocks, width int, base int64)

// unpackBlocksAVX2 unpacks whole blocks of values of 1 to 64 bits. dst has room for 256 values a block, src holds
// 32*width bytes a block.
//
//go:noescape
func unpackBlocksAVX2(dst *int64, src *byte, blocks, width int, base int64)

// gatherTwoAVX512 is gatherTwoFallback for the first codes; it returns for how many.
//
//go:noescape
func gatherTwoAVX512(dst, codes *int64, n int, first *int64, firstLen int, second *int64, secondLen int) (done int)

// ransRowsAVX512 is ransRows; it ends where fewer than ransRowWords bytes of words are left, of which there are at
// least as many.
//
//go:noescape
func ransRowsAVX512(dst *int64, rows int, r *ransDecoder, words *byte, size int, base int64, low int) (done, used int)

// ransRowsAVX2 is ransRowsAVX512. take is ransTake.
//
//go:noescape
func ransRowsAVX2(dst *int64, rows int, r *ransDecoder, words *byte, size int, base int64, low int,
	take *[256][8]uint8) (done, used int)

// ransTake says for every set of 8 states, a bit each, how many of the states before are in it.
var ransTake = func() (take [256][8]uint8) {
	for set := range take {
		for i := range 8 {
			take[set][i] = uint8(bits.OnesCount8(uint8(set) & (1<<i - 1)))
		}
	}
	return take
}()

// packBlocks is packBlocksFallback.
func packBlocks(dst []byte, vals []int64, width int, base int64) {
	blocks := len(vals) / blockLen
	if blocks == 0 {
		return
	}
	if width == 0 || !simd.AVX2 {
		packBlocksFallback(dst, vals, width, base)
		return
	}
	_, _ = vals[blocks*blockLen-1], dst[blocks*blockLen/8*width-1]
	packBlocksAVX2(&dst[0], &vals[0], blocks, width, base)
}

// unpackBlocks is unpackBlocksFallback.
func unpackBlocks(dst []int64, src []byte, width int, base int64) {
	blocks := len(dst) / blockLen
	if blocks == 0 {
		return
	}
	if width == 0 || !simd.AVX2 {
		unpackBlocksFallback(dst, src, width, base)
		return
	}
	_, _ = dst[blocks*blockLen-1], src[blocks*blockLen/8*width-1]
	unpackBlocksAVX2(&dst[0], &src[0], blocks, width, base)
}

// gatherTwo is gatherTwoFallback.
func gatherTwo(dst, first, second, codes []int64) (bad int) {
	done := 0
	if simd.AVX512 && len(codes) >= 8 {
		dst = dst[:len(codes)]
		done = gatherTwoAVX512(&dst[0], &codes[0], len(codes), base(first), len(first), base(second), len(second))
	}
	if bad = gatherTwoFallback(dst[done:], first, second, codes[done:]); bad >= 0 {
		bad += done
	}
	return bad
}

// base returns the address of the first value, nil where there is none.
func base(s []int64) *int64 {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}

// ransRows decodes the first of some rows of 32 values, which dst has room for; it returns how many, and the bytes of
// words that they used. What it leaves is for rowFallback.
func ransRows(dst []int64, rows int, r *ransDecoder) (done, used int) {
	if !simd.AVX2 || rows == 0 || len(r.words) < ransRowWords {
		return 0, 0
	}
	_ = dst[rows*ransLanes-1]
	if !simd.AVX512 {
		return ransRowsAVX2(&dst[0], rows, r, &r.words[0], len(r.words), r.base, r.low, &ransTake)
	}
	return ransRowsAVX512(&dst[0], rows, r, &r.words[0], len(r.words), r.base, r.low)
}
