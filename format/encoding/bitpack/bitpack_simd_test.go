//go:build amd64 && !purego

package bitpack

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

func TestPackBlocksMatchesFallback(t *testing.T) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(7, 5))
	for width := range 65 {
		for _, blocks := range []int{0, 1, 2, 5} {
			vals := make([]int64, blocks*BlockLen)
			for i := range vals {
				vals[i] = int64(r.Uint64()) >> r.IntN(64)
			}
			base := int64(r.Uint64())
			got, whole := guarded[byte](Len(len(vals), width), 0xA5)
			want := make([]byte, len(got))
			packBlocks(got, vals, width, base)
			packBlocksFallback(want, vals, width, base)
			if !slices.Equal(got, want) || !whole() {
				t.Fatalf("width %d, %d blocks: not what the fallback gives", width, blocks)
			}
		}
	}
}

func TestUnpackBlocksMatchesFallback(t *testing.T) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(7, 2))
	for width := range 65 {
		for _, blocks := range []int{0, 1, 2, 5} {
			n := blocks * BlockLen
			src := make([]byte, Len(n, width))
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			if width%7 == 3 {
				for i := range src {
					src[i] = 0xFF
				}
			}
			base := int64(r.Uint64())
			got, whole := guarded[int64](n, -7)
			want := make([]int64, n)
			unpackBlocks(got, src, width, base)
			unpackBlocksFallback(want, src, width, base)
			if !slices.Equal(got, want) || !whole() {
				t.Fatalf("width %d, %d blocks: not what the fallback gives", width, blocks)
			}
		}
	}
}

// FuzzBlocks holds the kernels against their fallbacks on the same bytes.
func FuzzBlocks(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 200, 255}, uint8(9), int64(5))
	f.Fuzz(func(t *testing.T, data []byte, width uint8, base int64) {
		if !simd.AVX2 {
			t.Skip("no AVX2")
		}
		w := int(width) % 65
		src := make([]byte, 2*BlockLen/8*w)
		for i := range src {
			if len(data) > 0 {
				src[i] = data[i%len(data)] + byte(i/len(data))
			}
		}
		got, want := make([]int64, 2*BlockLen), make([]int64, 2*BlockLen)
		unpackBlocks(got, src, w, base)
		unpackBlocksFallback(want, src, w, base)
		if !slices.Equal(got, want) {
			t.Fatalf("width %d: not what the fallback gives", w)
		}
		packed, plain := make([]byte, len(src)), make([]byte, len(src))
		packBlocks(packed, got, w, base+1)
		packBlocksFallback(plain, got, w, base+1)
		if !slices.Equal(packed, plain) {
			t.Fatalf("width %d: not what the fallback packs", w)
		}
	})
}
