//go:build amd64 && !purego

package encoding

import "github.com/dsistore/dsistore/internal/simd"

// unpackBlocksAVX2 unpacks whole blocks of values of 1 to 64 bits. dst has room for 256 values a block, src holds 32*width bytes
// a block.
//
//go:noescape
func unpackBlocksAVX2(dst *int64, src *byte, blocks, width int, base int64)

// gatherTwoAVX512 is gatherTwoPlain for the first codes; it returns for how many.
//
//go:noescape
func gatherTwoAVX512(dst, codes *int64, n int, first *int64, firstLen int, second *int64, secondLen int) (done int)

// addTopAVX2 is addTopPlain for n values, a multiple of 8 and not 0.
//
//go:noescape
func addTopAVX2(dst *int64, top *byte, n, low int)

// unpackBlocks is unpackBlocksPlain.
func unpackBlocks(dst []int64, src []byte, width int, base int64) {
	blocks := len(dst) / blockLen
	if blocks == 0 {
		return
	}
	if width == 0 || !simd.AVX2 {
		unpackBlocksPlain(dst, src, width, base)
		return
	}
	_, _ = dst[blocks*blockLen-1], src[blocks*blockLen/8*width-1]
	unpackBlocksAVX2(&dst[0], &src[0], blocks, width, base)
}

// gatherTwo is gatherTwoPlain.
func gatherTwo(dst, first, second, codes []int64) (bad int) {
	done := 0
	if simd.AVX512 && len(codes) >= 8 {
		dst = dst[:len(codes)]
		done = gatherTwoAVX512(&dst[0], &codes[0], len(codes), base(first), len(first), base(second), len(second))
	}
	if bad = gatherTwoPlain(dst[done:], first, second, codes[done:]); bad >= 0 {
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

// addTop is addTopPlain.
func addTop(dst []int64, top []byte, low int) {
	top = top[:len(dst)]
	if n := len(dst) &^ 7; simd.AVX2 && n > 0 {
		addTopAVX2(&dst[0], &top[0], n, low)
		dst, top = dst[n:], top[n:]
	}
	addTopPlain(dst, top, low)
}
