//go:build !amd64 || purego

package format

import "github.com/dsistore/dsistore/format/vector"

func fillRuns(inverse, runs, slots []int32) error { return fillRunsPlain(inverse, runs, slots, 0, 0) }

func fillChangeBits(inverse []int32, changes vector.Bitmap) { fillChangeBitsPlain(inverse, changes, 0) }
