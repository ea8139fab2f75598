//go:build amd64 && !purego

package bitpack

import "github.com/dsistore/dsistore/internal/simd"

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

// packBlocks is packBlocksFallback.
func packBlocks(dst []byte, vals []int64, width int, base int64) {
	blocks := len(vals) / BlockLen
	if blocks == 0 {
		return
	}
	if width == 0 || !simd.AVX2 {
		packBlocksFallback(dst, vals, width, base)
		return
	}
	_, _ = vals[blocks*BlockLen-1], dst[blocks*BlockLen/8*width-1]
	packBlocksAVX2(&dst[0], &vals[0], blocks, width, base)
}

// unpackBlocks is unpackBlocksFallback.
func unpackBlocks(dst []int64, src []byte, width int, base int64) {
	blocks := len(dst) / BlockLen
	if blocks == 0 {
		return
	}
	if width == 0 || !simd.AVX2 {
		unpackBlocksFallback(dst, src, width, base)
		return
	}
	_, _ = dst[blocks*BlockLen-1], src[blocks*BlockLen/8*width-1]
	unpackBlocksAVX2(&dst[0], &src[0], blocks, width, base)
}
