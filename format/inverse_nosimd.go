//go:build !amd64 || purego

package format

import "github.com/dsistore/dsistore/format/vector"

func fillRuns(inverse, runs, slots []int32) error {
	return fillRunsFallback(inverse, runs, slots, 0, 0)
}

func fillChangeBits(inverse []int32, changes vector.Bitmap) {
	fillChangeBitsFallback(inverse, changes, 0)
}
