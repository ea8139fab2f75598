//go:build unix

package rans

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/simd/simdtest"
)

// fencedLen is the length up to which every length is tried.
const fencedLen = 200

// No kernel reads or writes beside its slices, whatever their length, and whatever stands in them.
func TestStaysInBounds(t *testing.T) {
	in, out := simdtest.NewFence(t, 64*1024), simdtest.NewFence(t, 64*1024)
	r := rand.New(rand.NewPCG(7, 13))
	// States of 0 take two words of 0 each in every row, the most that there can be.
	for rows := 1; rows < 5; rows++ {
		for words := 0; words <= rows*rowWords+4; words += 2 {
			chunk := make([]byte, TableLen+StateLen+words)
			got := simdtest.Place(out, make([]int64, rows*lanes), false)
			if decode(new(Decoder), got, 0, 0, simdtest.Place(in, chunk, false)) {
				t.Fatalf("%d rows of %d bytes of words are read", rows, words)
			}
		}
	}
	e := new(Encoder)
	for n := range 2*fencedLen + 1 {
		for _, spread := range []int{2, 300, 60000} {
			vals, width := skewed(r, n, spread)
			if width == 0 {
				continue
			}
			chunk := e.Append(nil, vals, width, 0)
			bad := slices.Clone(chunk)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			for _, atStart := range []bool{false, true} {
				got := simdtest.Place(out, make([]int64, n), atStart)
				good := decode(new(Decoder), got, LowWidth(width), 0, simdtest.Place(in, chunk, atStart))
				if !good || !slices.Equal(got, vals) {
					t.Fatalf("%d values below %d: not read, or others", n, spread)
				}
				_ = decode(new(Decoder), got, LowWidth(width), 0, simdtest.Place(in, bad, atStart))
				cut := 2 * r.IntN(len(chunk)/2)
				_ = decode(new(Decoder), got, LowWidth(width), 0, simdtest.Place(in, chunk[:cut], atStart))
			}
		}
	}
}
