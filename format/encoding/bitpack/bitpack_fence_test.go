//go:build unix

package bitpack

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/internal/simd/simdtest"
)

// fencedLen is the length up to which every length is tried.
const fencedLen = 200

// No kernel reads or writes beside its slices, whatever their length, and whatever stands in them.

func TestUnpackStaysInBounds(t *testing.T) {
	in, out := simdtest.NewFence(t, 64*1024), simdtest.NewFence(t, 64*1024)
	r := rand.New(rand.NewPCG(7, 10))
	for width := range 65 {
		src := make([]byte, Len(3*BlockLen, width))
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		lengths := []int{BlockLen - 1, BlockLen, BlockLen + 1, BlockLen + 100, 2*BlockLen - 1, 2 * BlockLen,
			3 * BlockLen}
		for n := range fencedLen + 1 {
			lengths = append(lengths, n)
		}
		for _, n := range lengths {
			p := src[:Len(n, width)]
			want := make([]int64, n)
			whole := n / BlockLen * BlockLen
			if whole > 0 {
				unpackBlocksFallback(want[:whole], p, width, 7)
			}
			UnpackTail(want[whole:], p[whole/8*width:], width, 7, 0)
			for _, low := range []bool{false, true} {
				got := simdtest.Place(out, make([]int64, n), low)
				Unpack(got, simdtest.Place(in, p, low), width, 7)
				if !slices.Equal(got, want) {
					t.Fatalf("%d values of %d bits differ", n, width)
				}
			}
		}
	}
}

func TestPackStaysInBounds(t *testing.T) {
	in, out := simdtest.NewFence(t, 64*1024), simdtest.NewFence(t, 64*1024)
	r := rand.New(rand.NewPCG(7, 12))
	for width := range 65 {
		vals := make([]int64, 3*BlockLen)
		for i := range vals {
			vals[i] = int64(r.Uint64())
		}
		for blocks := range 4 {
			v := vals[:blocks*BlockLen]
			want := make([]byte, Len(len(v), width))
			packBlocksFallback(want, v, width, 7)
			for _, low := range []bool{false, true} {
				got := simdtest.Place(out, make([]byte, len(want)), low)
				packBlocks(got, simdtest.Place(in, v, low), width, 7)
				if !slices.Equal(got, want) {
					t.Fatalf("%d blocks of %d bits differ", blocks, width)
				}
			}
		}
	}
}
