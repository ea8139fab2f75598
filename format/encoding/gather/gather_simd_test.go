//go:build amd64 && !purego

package gather

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/simd"
)

// guarded returns n values between two that must stay what they are, and a function that says whether they have.
func guarded[T comparable](n int, guard T) (s []T, whole func() bool) {
	all := make([]T, n+2)
	all[0], all[n+1] = guard, guard
	return all[1 : n+1 : n+1], func() bool { return all[0] == guard && all[n+1] == guard }
}

// sameValues fails unless both kernels give the same values, up to the first code that is bad, and the same place of
// it.
func sameValues(t *testing.T, first, second, codes []int64) {
	t.Helper()
	got, whole := guarded[int64](len(codes), -7)
	want, inPlace := make([]int64, len(codes)), slices.Clone(codes)
	a, b, c := Two(got, first, second, codes), twoFallback(want, first, second, codes), Two(inPlace,
		first, second, inPlace)
	good := len(codes)
	if b >= 0 {
		good = b
	}
	if a != b || c != b || !slices.Equal(got[:good], want[:good]) || !slices.Equal(inPlace[:good], want[:good]) ||
		!whole() {
		t.Fatalf("%d codes of %d + %d values: bad %d, in place %d, want %d, or other values", len(codes), len(first),
			len(second), a, c, b)
	}
}

func TestTwoMatchesFallback(t *testing.T) {
	if !simd.AVX512 {
		t.Skip("no AVX-512")
	}
	r := rand.New(rand.NewPCG(7, 4))
	for range 3000 {
		first, second := make([]int64, r.IntN(40)), make([]int64, r.IntN(3)*r.IntN(20))
		for i := range first {
			first[i] = int64(r.Uint64())
		}
		for i := range second {
			second[i] = int64(r.Uint64())
		}
		codes := make([]int64, r.IntN(60))
		all := max(1, len(first)+len(second))
		for i := range codes {
			codes[i] = int64(r.IntN(all))
		}
		if len(codes) > 0 && r.IntN(3) == 0 {
			codes[r.IntN(len(codes))] = []int64{-1, int64(all), 1 << 62, -1 << 63, int64(len(first)) - 1,
				int64(len(first))}[r.IntN(6)]
		}
		sameValues(t, first, second, codes)
	}
}

// FuzzTwo holds the kernel against its fallback.
func FuzzTwo(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 200, 255}, uint8(3), uint8(5), int64(5))
	f.Fuzz(func(t *testing.T, data []byte, first, second uint8, base int64) {
		if !simd.AVX512 {
			t.Skip("no AVX-512")
		}
		codes := make([]int64, len(data))
		for i, b := range data {
			codes[i] = int64(int8(b)) + base>>56
		}
		values := make([]int64, int(first)+int(second)%17)
		for i := range values {
			values[i] = base * int64(i+1)
		}
		sameValues(t, values[:first], values[first:], codes)
	})
}
