//go:build unix

package gather

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/simd/simdtest"
)

// fencedLen is the length up to which every length is tried.
const fencedLen = 200

// The kernel reads and writes nothing beside its slices, whatever their length, and whatever stands in them.
func TestTwoStaysInBounds(t *testing.T) {
	var fences [4]*simdtest.Fence
	for i := range fences {
		fences[i] = simdtest.NewFence(t, 8*fencedLen)
	}
	r := rand.New(rand.NewPCG(7, 11))
	values := func(n int) []int64 {
		out := make([]int64, n)
		for i := range out {
			out[i] = int64(r.Uint64())
		}
		return out
	}
	for n := range fencedLen + 1 {
		for _, sizes := range [][2]int{{0, 0}, {1, 0}, {0, 1}, {7, 9}, {40, 0}, {64, 3}} {
			all := max(1, sizes[0]+sizes[1])
			codes := make([]int64, n)
			for i := range codes {
				codes[i] = int64(r.IntN(all))
			}
			bad := []int64{
				-1, -8, int64(all), 1 << 31, 1<<31 - 1, -1 << 31, 1<<32 + int64(r.IntN(all)), 1 << 60, 1 << 61, 1<<62 +
					1, -1 << 63, 1<<63 - 1,
			}
			if n > 0 && r.IntN(4) > 0 {
				codes[r.IntN(n)] = bad[r.IntN(len(bad))]
			}
			first, second := values(sizes[0]), values(sizes[1])
			want := make([]int64, n)
			place := twoFallback(want, first, second, codes)
			good := n
			if place >= 0 {
				good = place
			}
			for _, low := range []bool{false, true} {
				a, b := simdtest.Place(fences[0], first, low), simdtest.Place(fences[1], second, low)
				c, got := simdtest.Place(fences[2], codes, low), simdtest.Place(fences[3], make([]int64, n), low)
				if at := Two(got, a, b, c); at != place || !slices.Equal(got[:good], want[:good]) ||
					!slices.Equal(c, codes) {
					t.Fatalf("%d codes of %v values: bad %d, want %d, or other values", n, sizes, at, place)
				}
				if at := Two(c, a, b, c); at != place || !slices.Equal(c[:good], want[:good]) {
					t.Fatalf("%d codes of %v values in place: bad %d, want %d, or other values", n, sizes, at, place)
				}
			}
		}
	}
}
