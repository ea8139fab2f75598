package vector

import (
	"math/rand/v2"
	"testing"
)

func TestCopyBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		src := Bitmap{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()}
		from := r.IntN(256)
		n := r.IntN(256 - from + 1)
		at := r.IntN(256)
		dst := make(Bitmap, 8)
		dst.CopyBits(at, src, from, n)
		for i := range 512 {
			want := i >= at && i < at+n && src.Get(from+i-at)
			if got := dst.Get(i); got != want {
				t.Fatalf("%d bits from %d to %d: bit %d is %v", n, from, at, i, got)
			}
		}
	}
}
