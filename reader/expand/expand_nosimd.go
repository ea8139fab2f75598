//go:build !amd64 || purego

package expand

import "github.com/dsistore/dsistore/format/vector"

func copyRows[T any](_, _ []T, _ *vector.Column, _ []int32, _ bool) (rows, n int) { return 0, 0 }

func copySlots[T any](_, _ []T, _ *vector.Column, _, _ int) (slots, n int) { return 0, 0 }

func putRangesOf(_, _ []int32, _ *vector.Column, _ []int32, sum int64) (rows int, last int64) {
	return 0, sum
}

func putPresenceWords(vector.Bitmap, *vector.Column, []int32) (rows int) { return 0 }

func scatterFloats([]float32, int, []float32, []int32) (rows int) { return 0 }
