//go:build amd64 && !purego

package expand

import (
	"unsafe"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
)

//go:noescape
func copyLists64AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int,
	inverse *int32, rows int) (row, n int)

//go:noescape
func copyLists32AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int,
	inverse *int32, rows int) (row, n int)

//go:noescape
func streamLists64AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int,
	inverse *int32, rows int) (row, n int)

//go:noescape
func streamLists32AVX512(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int,
	inverse *int32, rows int) (row, n int)

//go:noescape
func copyLists64AVX2(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int,
	inverse *int32, rows int) (row, n int)

//go:noescape
func copyLists32AVX2(dst *byte, dstLen int, values *byte, valuesLen int, starts, sizes *int32, minus, slots int,
	inverse *int32, rows int) (row, n int)

//go:noescape
func presenceAVX2(dst *byte, n int, present *uint64, last uint32, inverse *int32)

// copyRows is copyRowsPlain for the first rows; it returns for how many, and the values that they have.
func copyRows[T any](dst, values []T, c *vector.Column, inverse []int32, past bool) (rows, n int) {
	if c.Slots == 0 {
		return 0, 0
	}
	// The length of slot s is Lengths[s], or Offsets[s+1] - Offsets[s].
	sizes, minus := c.Lengths, 0
	if sizes == nil {
		sizes, minus = c.Offsets[1:], -1
	}
	return copyLists(dst, values, c.Offsets[:c.Slots], sizes[:c.Slots], minus, inverse, past)
}

// identity is the inverse of slots that are rows.
var identity = func() (v [1024]int32) {
	for i := range v {
		v[i] = int32(i)
	}
	return v
}()

// copySlots copies the lists of the first of the slots [lo, hi) of a partial column; it returns of how many, and their
// values.
func copySlots[T any](dst, values []T, c *vector.Column, lo, hi int) (slots, n int) {
	for lo < hi {
		k := min(hi-lo, len(identity))
		done, m := copyLists(dst[n:], values, c.Offsets[lo:lo+k], c.Lengths[lo:lo+k], 0, identity[:k], false)
		slots, n = slots+done, n+m
		if done < k {
			break
		}
		lo += k
	}
	return slots, n
}

// copyLists copies the lists of the first rows, sizes[s] - starts[s]&minus values from starts[s] on; past: past the
// caches.
func copyLists[T any](dst, values []T, starts, sizes []int32, minus int, inverse []int32, past bool) (rows, n int) {
	size := unsafe.Sizeof(*new(T))
	if !simd.AVX2 || size != 4 && size != 8 || len(dst) == 0 || len(values) == 0 || len(inverse) == 0 {
		return 0, 0
	}
	kernel := copyLists64AVX512
	switch {
	case !simd.AVX512 && size == 8:
		kernel = copyLists64AVX2
	case !simd.AVX512:
		kernel = copyLists32AVX2
	case past && size == 8:
		kernel = streamLists64AVX512
	case past:
		kernel = streamLists32AVX512
	case size == 4:
		kernel = copyLists32AVX512
	}
	return kernel((*byte)(unsafe.Pointer(&dst[0])), len(dst), (*byte)(unsafe.Pointer(&values[0])), len(values),
		&starts[0], &sizes[0], minus, len(starts), &inverse[0], len(inverse))
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

//go:noescape
func rangesAVX512(lengths, ends, offsets *int32, slots int, inverse *int32, rows int, sum int64) (done int, last int64)

// putRangesOf is PutRanges of the first rows of a column with an inverse and without Lengths; it returns for how many,
// and the last end.
func putRangesOf(lengths, ends []int32, c *vector.Column, inverse []int32, sum int64) (rows int, last int64) {
	if !simd.AVX512 || len(inverse) < 8 || c.Slots == 0 {
		return 0, sum
	}
	offsets := c.Offsets[:c.Slots+1]
	lengths, ends = lengths[:len(inverse)], ends[:len(inverse)]
	return rangesAVX512(&lengths[0], &ends[0], &offsets[0], c.Slots, &inverse[0], len(inverse), sum)
}

//go:noescape
func scatter32(dst *float32, stride int, values *float32, slots int, inverse *int32, rows int) (done int)

// scatterFloats is Scatter of one float32 a row, which needs no conversion, for the first rows; it returns for how
// many.
func scatterFloats(dst []float32, stride int, values []float32, inverse []int32) (rows int) {
	if !simd.AVX2 || len(inverse) < 4 || len(values) == 0 {
		return 0
	}
	_ = dst[(len(inverse)-1)*stride]
	return scatter32(&dst[0], stride, &values[0], len(values), &inverse[0], len(inverse))
}
