package expand

import (
	"testing"

	"pgregory.net/rapid"
)

func TestOrBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := make([]uint64, 4)
		for i := range src {
			src[i] = rapid.Uint64().Draw(t, "word")
		}
		lo := rapid.IntRange(0, 255).Draw(t, "lo")
		n := rapid.IntRange(0, 256-lo).Draw(t, "n")
		at := rapid.IntRange(0, 256-n).Draw(t, "at")
		dst := make([]uint64, 4)
		orBits(dst, at, src, lo, n)
		for i := range 256 {
			want := uint64(0)
			if i >= at && i < at+n {
				k := lo + i - at
				want = src[k/64] >> (k % 64) & 1
			}
			if dst[i/64]>>(i%64)&1 != want {
				t.Fatalf("bit %d", i)
			}
		}
	})
}
