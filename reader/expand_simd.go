//go:build amd64 && !purego

package reader

import (
	"unsafe"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
)

//go:noescape
func copyLists64AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int, inverse *int32, rows int) (row, n int)

//go:noescape
func copyLists32AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int, inverse *int32, rows int) (row, n int)

//go:noescape
func presenceAVX2(dst *byte, n int, present *uint64, last uint32, inverse *int32)

// copyRows is copyRowsPlain for the first rows; it returns for how many, and the values that they have.
func copyRows[T any](dst, values []T, c *vector.Column, inverse []int32) (rows, n int) {
	size := unsafe.Sizeof(*new(T))
	if !simd.AVX512 || size != 4 && size != 8 || len(dst) == 0 || len(values) == 0 || len(inverse) == 0 || c.Slots == 0 {
		return 0, 0
	}
	// The length of slot s is Lengths[s], or Offsets[s+1] - Offsets[s].
	sizes, minus := c.Lengths, 0
	if sizes == nil {
		sizes, minus = c.Offsets[1:], -1
	}
	starts, sizes := c.Offsets[:c.Slots], sizes[:c.Slots]
	kernel := copyLists64AVX512
	if size == 4 {
		kernel = copyLists32AVX512
	}
	return kernel((*byte)(unsafe.Pointer(&dst[0])), len(dst), (*byte)(unsafe.Pointer(&values[0])), len(values),
		&starts[0], &sizes[0], minus, c.Slots, &inverse[0], len(inverse))
}

// putPresenceWords sets the bits of the words that rows fill whole, and returns how many rows that is.
func putPresenceWords(dst vector.Bitmap, c *vector.Column, inverse []int32) (rows int) {
	n := len(inverse) &^ 63
	if !simd.AVX2 || n == 0 || c.Slots == 0 {
		return 0
	}
	words, present := dst[:n/64], c.Present[:vector.BitmapWords(c.Slots)]
	presenceAVX2((*byte)(unsafe.Pointer(&words[0])), n, &present[0], uint32(c.Slots-1), &inverse[0])
	return n
}
