//go:build !amd64 || purego

package encoding

func packBlocks(dst []byte, vals []int64, width int, base int64) {
	packBlocksFallback(dst, vals, width, base)
}

func unpackBlocks(dst []int64, src []byte, width int, base int64) {
	unpackBlocksFallback(dst, src, width, base)
}

func gatherTwo(dst, first, second, codes []int64) (bad int) {
	return gatherTwoFallback(dst, first, second, codes)
}

func ransRows(dst []int64, rows int, r *ransDecoder) (done, used int) { return 0, 0 }
