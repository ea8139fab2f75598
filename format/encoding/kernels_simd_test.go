//go:build amd64 && !purego

package encoding

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
	r := rand.New(rand.NewPCG(seed, 5))
	for width := range 65 {
		for _, blocks := range []int{0, 1, 2, 5} {
			vals := make([]int64, blocks*blockLen)
			for i := range vals {
				vals[i] = int64(r.Uint64()) >> r.IntN(64)
			}
			base := int64(r.Uint64())
			got, whole := guarded[byte](packedLen(len(vals), width), 0xA5)
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
	r := rand.New(rand.NewPCG(seed, 2))
	for width := range 65 {
		for _, blocks := range []int{0, 1, 2, 5} {
			n := blocks * blockLen
			src := make([]byte, packedLen(n, width))
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

// sameGather fails unless both kernels give the same values, up to the first code that is bad, and the same place of
// it.
func sameGather(t *testing.T, first, second, codes []int64) {
	t.Helper()
	got, whole := guarded[int64](len(codes), -7)
	want, inPlace := make([]int64, len(codes)), slices.Clone(codes)
	a, b, c := gatherTwo(got, first, second, codes), gatherTwoFallback(want, first, second, codes), gatherTwo(inPlace,
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

func TestGatherTwoMatchesFallback(t *testing.T) {
	if !simd.AVX512 {
		t.Skip("no AVX-512")
	}
	r := rand.New(rand.NewPCG(seed, 4))
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
		sameGather(t, first, second, codes)
	}
}

// FuzzKernels holds the kernels against their fallbacks on the same bytes.
func FuzzKernels(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 200, 255}, uint8(9), uint8(3), int64(5))
	f.Fuzz(func(t *testing.T, data []byte, width, values uint8, base int64) {
		if !simd.AVX2 {
			t.Skip("no AVX2")
		}
		w := int(width) % 65
		src := make([]byte, 2*blockLen/8*w)
		for i := range src {
			if len(data) > 0 {
				src[i] = data[i%len(data)] + byte(i/len(data))
			}
		}
		got, want := make([]int64, 2*blockLen), make([]int64, 2*blockLen)
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
		codes := make([]int64, len(data))
		for i, b := range data {
			codes[i] = int64(int8(b)) + base>>56
		}
		first := want[:values]
		sameGather(t, first, want[len(first):len(first)+int(values)%17], codes)
	})
}
