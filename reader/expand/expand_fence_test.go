//go:build unix && amd64 && !purego

package expand

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
	"github.com/dsistore/dsistore/internal/simd/simdtest"
)

// wrongNumbers are what damage may leave where a slot, a start or a length stands.
var wrongNumbers = []int32{-1, -8, 1 << 16, 1 << 29, 1 << 30, 1<<31 - 1, -1 << 31}

// copyRows reads and writes nothing beside its slices, whatever slots and lists say, and stops before the first that is
// not there.
func TestCopyRowsStaysInBounds(t *testing.T) { levels(t, copyRowsStaysInBounds) }

func copyRowsStaysInBounds(t *testing.T) {
	var fences [5]*simdtest.Fence
	for i := range fences {
		fences[i] = simdtest.NewFence(t, 64*1024)
	}
	r := rand.New(rand.NewPCG(1, 14))
	for try := range 6000 {
		c, _ := randomLists(r)
		inverse := slices.Clone(c.Inverse)
		if r.IntN(2) == 0 && len(inverse) > 0 {
			inverse[r.IntN(len(inverse))] = append(wrongNumbers, int32(c.Slots))[r.IntN(len(wrongNumbers)+1)]
		}
		offsets, lengths := slices.Clone(c.Offsets), slices.Clone(c.Lengths)
		if r.IntN(3) == 0 {
			offsets[r.IntN(len(offsets))] = wrongNumbers[r.IntN(len(wrongNumbers))]
		}
		if r.IntN(3) == 0 && len(lengths) > 0 {
			lengths[r.IntN(len(lengths))] = wrongNumbers[r.IntN(len(wrongNumbers))]
		}
		// The rows up to the first that is not there, or that there is no room for.
		var want []int64
		room, rows := r.IntN(2000), 0
		for _, s := range inverse {
			if s < 0 || int(s) >= c.Slots {
				break
			}
			from, n := int64(offsets[s]), int64(0)
			if c.Lengths != nil {
				n = int64(lengths[s])
			} else {
				n = int64(offsets[s+1]) - from
			}
			if n < 0 || n > 0 && (from < 0 || from+n > int64(len(c.Ints))) || len(want)+int(n) > room {
				break
			}
			if n > 0 {
				want = append(want, c.Ints[from:from+n]...)
			}
			rows++
		}
		low, past := try%2 == 0, try%4 < 2
		bad := *c
		bad.Offsets = simdtest.Place(fences[0], offsets, low)
		if c.Lengths != nil {
			bad.Lengths = simdtest.Place(fences[1], lengths, low)
		}
		bad.Inverse = simdtest.Place(fences[2], inverse, low)
		got := simdtest.Place(fences[4], make([]int64, room), low)
		done, n := copyRows(got, simdtest.Place(fences[3], c.Ints, low), &bad, bad.Inverse, past)
		if done > rows || done == rows && n != len(want) || done > 0 && n > 0 && done < rows ||
			!slices.Equal(got[:n], want[:n]) {
			t.Fatalf("%d rows with %d values, want %d with %d, or others", done, n, rows, len(want))
		}
		narrow := make([]float32, len(c.Ints))
		for i, v := range c.Ints {
			narrow[i] = float32(v)
		}
		floats := simdtest.Place(fences[4], make([]float32, room), low)
		done32, n32 := copyRows(floats, simdtest.Place(fences[3], narrow, low), &bad, bad.Inverse, past)
		if done32 != done || n32 != n {
			t.Fatalf("%d rows with %d values of 4 bytes, %d with %d of 8", done32, n32, done, n)
		}
		for i, v := range want[:n] {
			if floats[i] != float32(v) {
				t.Fatalf("value %d of 4 bytes differs", i)
			}
		}
	}
}

// putPresenceWords and scatterFloats read and write nothing beside their slices, for every number of rows and any
// slots.
func TestScatterStaysInBounds(t *testing.T) {
	const most = 200
	var fences [3]*simdtest.Fence
	for i := range fences {
		fences[i] = simdtest.NewFence(t, 64*1024)
	}
	r := rand.New(rand.NewPCG(1, 15))
	for rows := range most + 1 {
		for _, slots := range []int{1, 2, 31, 32, 33, 63, 64, 65, 150} {
			low := r.IntN(2) == 0
			inverse := make([]int32, rows)
			for i := range inverse {
				inverse[i] = int32(r.IntN(slots))
			}
			values, present := make([]float32, slots), make(vector.Bitmap, vector.BitmapWords(slots))
			for s := range values {
				values[s] = r.Float32()
				if r.IntN(2) == 0 {
					present.Set(s)
				}
			}
			wrong := rows
			if rows > 0 && r.IntN(2) == 0 {
				wrong = r.IntN(rows)
				inverse[wrong] = append(wrongNumbers, int32(slots))[r.IntN(len(wrongNumbers)+1)]
			}
			placed := simdtest.Place(fences[0], inverse, low)
			c := &vector.Column{Slots: slots, Rows: rows, Inverse: placed,
				Present: simdtest.Place(fences[1], present, low)}
			bits := vector.Bitmap(simdtest.Place(fences[2], make(vector.Bitmap, vector.BitmapWords(rows)), low))
			for i := range putPresenceWords(bits, c, placed) {
				if s := inverse[i]; i != wrong && bits.Get(i) != present.Get(int(s)) {
					t.Fatalf("%d rows of %d slots: presence of row %d differs", rows, slots, i)
				}
			}
			stride := 1 + r.IntN(5)
			dst := simdtest.Place(fences[2], make([]float32, max(0, (rows-1)*stride+1)), low)
			done := scatterFloats(dst, stride, simdtest.Place(fences[1], values, low), placed)
			if done > wrong {
				t.Fatalf("%d rows of %d slots: row %d is written, whose slot is not there", rows, slots, wrong)
			}
			for i := range done {
				if dst[i*stride] != values[inverse[i]] {
					t.Fatalf("%d rows of %d slots: row %d differs", rows, slots, i)
				}
			}
		}
	}
}

// putRangesOf stops before eight rows of which one has a slot that is not there, and reads and writes nothing beside
// its slices.
func TestPutRangesStaysInBounds(t *testing.T) {
	if !simd.AVX512 {
		t.Skip("no AVX-512")
	}
	var fences [4]*simdtest.Fence
	for i := range fences {
		fences[i] = simdtest.NewFence(t, 4096)
	}
	r := rand.New(rand.NewPCG(1, 24))
	for try := range 3000 {
		c, _ := randomLists(r)
		if c.Lengths != nil {
			continue
		}
		inverse, rows := slices.Clone(c.Inverse), c.Rows&^7
		if r.IntN(2) == 0 && len(inverse) > 0 {
			at := r.IntN(len(inverse))
			inverse[at] = append(wrongNumbers, int32(c.Slots))[r.IntN(len(wrongNumbers)+1)]
			rows = min(rows, at&^7)
		}
		low := try%2 == 0
		bad := *c
		bad.Offsets = simdtest.Place(fences[0], c.Offsets, low)
		lengths, ends := simdtest.Place(fences[1], inverse, low), simdtest.Place(fences[2], inverse, low)
		want := [2][]int32{slices.Clone(inverse), slices.Clone(inverse)}
		wantSum := putRangesPlain(want[0][:rows], want[1][:rows], c, inverse[:rows], 5)
		got, sum := putRangesOf(lengths, ends, &bad, simdtest.Place(fences[3], inverse, low), 5)
		if got != rows || sum != wantSum || !slices.Equal(lengths, want[0]) || !slices.Equal(ends, want[1]) {
			t.Fatalf("%d rows, sum %d, want %d, %d, or others", got, sum, rows, wantSum)
		}
	}
}
