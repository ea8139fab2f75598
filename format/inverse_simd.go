//go:build amd64 && !purego

package format

import (
	"math/bits"
	"unsafe"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
)

//go:noescape
func fillRunsAVX2(inverse *int32, rows int, runs, slots *int32, n int) (done, row int)

//go:noescape
func fillChangesAVX2(inverse *int32, changes *byte, n int, counts *uint64) (run int32)

// bitCounts is a table for fillChangesAVX2: byte j of entry b is how many of the bits 0 to j of b are set.
var bitCounts = func() (t [256]uint64) {
	for b := range t {
		for j := range 8 {
			t[b] |= uint64(bits.OnesCount8(uint8(b)<<(7-j))) << (8 * j)
		}
	}
	return t
}()

// fillRuns is fillRunsFallback from the first run on.
func fillRuns(inverse, runs, slots []int32) error {
	if !simd.AVX2 || len(inverse) < 32 || len(runs) == 0 {
		return fillRunsFallback(inverse, runs, slots, 0, 0)
	}
	var first *int32
	if slots != nil {
		first = &slots[:len(runs)][0]
	}
	done, row := fillRunsAVX2(&inverse[0], len(inverse), &runs[0], first, len(runs))
	return fillRunsFallback(inverse, runs, slots, done, row)
}

// fillChangeBits is fillChangeBitsFallback with run 0.
func fillChangeBits(inverse []int32, changes vector.Bitmap) {
	if n := len(inverse) &^ 63; simd.AVX2 && n > 0 {
		words := changes[:n/64]
		run := fillChangesAVX2(&inverse[0], (*byte)(unsafe.Pointer(&words[0])), n, &bitCounts[0])
		fillChangeBitsFallback(inverse[n:], changes[n/64:], run)
		return
	}
	fillChangeBitsFallback(inverse, changes, 0)
}
