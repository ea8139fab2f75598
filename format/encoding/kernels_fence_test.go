//go:build unix

package encoding

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
	r := rand.New(rand.NewPCG(seed, 10))
	for width := range 65 {
		src := make([]byte, packedLen(3*blockLen, width))
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		lengths := []int{blockLen - 1, blockLen, blockLen + 1, blockLen + 100, 2*blockLen - 1, 2 * blockLen,
			3 * blockLen}
		for n := range fencedLen + 1 {
			lengths = append(lengths, n)
		}
		for _, n := range lengths {
			p := src[:packedLen(n, width)]
			want := make([]int64, n)
			whole := n / blockLen * blockLen
			if whole > 0 {
				unpackBlocksFallback(want[:whole], p, width, 7)
			}
			unpackTail(want[whole:], p[whole/8*width:], width, 7, 0)
			for _, low := range []bool{false, true} {
				got := simdtest.Place(out, make([]int64, n), low)
				unpack(got, simdtest.Place(in, p, low), width, 7)
				if !slices.Equal(got, want) {
					t.Fatalf("%d values of %d bits differ", n, width)
				}
			}
		}
	}
}

func TestPackStaysInBounds(t *testing.T) {
	in, out := simdtest.NewFence(t, 64*1024), simdtest.NewFence(t, 64*1024)
	r := rand.New(rand.NewPCG(seed, 12))
	for width := range 65 {
		vals := make([]int64, 3*blockLen)
		for i := range vals {
			vals[i] = int64(r.Uint64())
		}
		for blocks := range 4 {
			v := vals[:blocks*blockLen]
			want := make([]byte, packedLen(len(v), width))
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

func TestGatherStaysInBounds(t *testing.T) {
	var fences [4]*simdtest.Fence
	for i := range fences {
		fences[i] = simdtest.NewFence(t, 8*fencedLen)
	}
	r := rand.New(rand.NewPCG(seed, 11))
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
				-1, -8, int64(all), 1 << 31, 1<<31 - 1, -1 << 31, 1<<32 + int64(r.IntN(all)), 1 << 60, 1 << 61, 1<<62 + 1, -1 << 63, 1<<63 - 1,
			}
			if n > 0 && r.IntN(4) > 0 {
				codes[r.IntN(n)] = bad[r.IntN(len(bad))]
			}
			first, second := values(sizes[0]), values(sizes[1])
			want := make([]int64, n)
			place := gatherTwoFallback(want, first, second, codes)
			good := n
			if place >= 0 {
				good = place
			}
			for _, low := range []bool{false, true} {
				a, b := simdtest.Place(fences[0], first, low), simdtest.Place(fences[1], second, low)
				c, got := simdtest.Place(fences[2], codes, low), simdtest.Place(fences[3], make([]int64, n), low)
				if at := gatherTwo(got, a, b, c); at != place || !slices.Equal(got[:good], want[:good]) ||
					!slices.Equal(c, codes) {
					t.Fatalf("%d codes of %v values: bad %d, want %d, or other values", n, sizes, at, place)
				}
				if at := gatherTwo(c, a, b, c); at != place || !slices.Equal(c[:good], want[:good]) {
					t.Fatalf("%d codes of %v values in place: bad %d, want %d, or other values", n, sizes, at, place)
				}
			}
		}
	}
}

func TestRANSStaysInBounds(t *testing.T) {
	in, out := simdtest.NewFence(t, 64*1024), simdtest.NewFence(t, 64*1024)
	r := rand.New(rand.NewPCG(seed, 13))
	// States of 0 take two words of 0 each in every row, the most that there can be.
	for rows := 1; rows < 5; rows++ {
		for words := 0; words <= rows*ransRowWords+4; words += 2 {
			chunk := make([]byte, 3+ransTableLen+ransStateLen+words)
			chunk[0] = byte(IDRANS)
			got := simdtest.Place(out, make([]int64, rows*ransLanes), false)
			if err := new(Decoder).Ints(got, simdtest.Place(in, chunk, false)); err != errRANS {
				t.Fatalf("%d rows of %d bytes of words: %v", rows, words, err)
			}
		}
	}
	for n := range 2*fencedLen + 1 {
		for _, spread := range []int{1, 2, 300, 60000} {
			vals := make([]int64, n)
			for i := range vals {
				vals[i] = 5 + int64(r.IntN(spread))
			}
			chunk, ok := forceInts(IDRANS, vals)
			if !ok {
				continue
			}
			bad := slices.Clone(chunk)
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
			for _, low := range []bool{false, true} {
				got := simdtest.Place(out, make([]int64, n), low)
				if err := new(Decoder).Ints(got, simdtest.Place(in, chunk, low)); err != nil || !slices.Equal(got,
					vals) {
					t.Fatalf("%d values below %d: %v, or others", n, spread, err)
				}
				_ = new(Decoder).Ints(got, simdtest.Place(in, bad, low))
				cut := 2 * r.IntN(len(chunk)/2)
				_ = new(Decoder).Ints(got, simdtest.Place(in, chunk[:cut], low))
			}
		}
	}
}
