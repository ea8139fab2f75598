package encoding

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Decoder.LookUp gives what decoding and looking up give, through every codec, and finds the first code that is past
// both dictionaries.
func TestLookUp(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 22))
	first, second := make([]int64, 700), make([]int64, 90)
	for i := range first {
		first[i] = int64(r.Uint64())
	}
	for i := range second {
		second[i] = int64(r.Uint64())
	}
	both := slices.Concat(first, second)
	all := len(both)
	d := new(Decoder)
	for _, n := range lengths {
		for _, bad := range []int{-1, 0, n / 3, n - 1} {
			codes := make([]int64, n)
			for i := range codes {
				codes[i] = int64(min(r.IntN(all), r.IntN(all)))
			}
			if bad >= n || bad < 0 && n == 0 {
				continue
			}
			if bad >= 0 {
				codes[bad] = []int64{int64(all), -1, 1 << 20}[r.IntN(3)]
			}
			for _, id := range intIDs() {
				chunk, ok := forceInts(id, codes)
				if !ok {
					continue
				}
				want := make([]int64, n)
				for i, c := range codes {
					if c < 0 || c >= int64(all) {
						break
					}
					want[i] = both[c]
				}
				got := make([]int64, n)
				at, code, err := d.LookUp(got, first, second, chunk)
				if err != nil || at != bad {
					t.Fatalf("%d codes, %s: bad code at %d, want %d: %v", n, Describe(chunk), at, bad, err)
				}
				if bad < 0 && !slices.Equal(got, want) ||
					bad >= 0 && (code != codes[bad] || !slices.Equal(got[:bad], want[:bad])) {
					t.Fatalf("%d codes, %s: other values, or code %d", n, Describe(chunk), code)
				}
				if _, _, err := d.LookUp(got, first, second, chunk[:len(chunk)-1]); err == nil && bad < 0 {
					t.Fatalf("%d codes, %s: cut short, and read", n, Describe(chunk))
				}
			}
		}
	}
}
