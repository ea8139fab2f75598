//go:build !amd64 || purego

package encoding

func unpackBlocks(dst []int64, src []byte, width int, base int64) {
	unpackBlocksPlain(dst, src, width, base)
}

func gatherTwo(dst, first, second, codes []int64) (bad int) {
	return gatherTwoPlain(dst, first, second, codes)
}

func addTop(dst []int64, top []byte, low int) { addTopPlain(dst, top, low) }
