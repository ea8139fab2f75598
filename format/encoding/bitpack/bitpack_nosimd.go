//go:build !amd64 || purego

package bitpack

func packBlocks(dst []byte, vals []int64, width int, base int64) {
	packBlocksFallback(dst, vals, width, base)
}

func unpackBlocks(dst []int64, src []byte, width int, base int64) {
	unpackBlocksFallback(dst, src, width, base)
}
