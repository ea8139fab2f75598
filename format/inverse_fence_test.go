//go:build unix

package format

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd/simdtest"
)

// fillRuns and fillChangeBits read and write nothing beside their slices, whatever their length and whatever the runs
// say.
func TestFillStaysInBounds(t *testing.T) {
	const most = 200
	in, of, out := simdtest.NewFence(t, 4*most), simdtest.NewFence(t, 4*most), simdtest.NewFence(t, 4*most)
	r := rand.New(rand.NewPCG(1, 13))
	for rows := range most + 1 {
		for try := range 40 {
			var runs, slots []int32
			longest := 1 + r.IntN(1+r.IntN(60))
			for left := rows; left > 0; {
				runs = append(runs, int32(1+r.IntN(min(left, longest))))
				left -= int(runs[len(runs)-1])
			}
			if len(runs) > 0 && r.IntN(3) == 0 {
				runs[r.IntN(len(runs))] = []int32{0, -1, -16, 1 << 30, 1<<31 - 1, -1 << 31, int32(rows),
					int32(rows + 1)}[r.IntN(8)]
			}
			if r.IntN(4) == 0 {
				runs = runs[:r.IntN(len(runs)+1)]
			}
			if try%2 == 0 {
				slots = make([]int32, len(runs))
				for i := range slots {
					slots[i] = int32(r.Uint32())
				}
			}
			want := make([]int32, rows)
			wrong := fillRunsFallback(want, runs, slots, 0, 0)
			for _, low := range []bool{false, true} {
				given := slots
				if given != nil {
					given = simdtest.Place(of, slots, low)
				}
				got := simdtest.Place(out, make([]int32, rows), low)
				err := fillRuns(got, simdtest.Place(in, runs, low), given)
				if fmt.Sprint(err) != fmt.Sprint(wrong) || err == nil && !slices.Equal(got, want) {
					t.Fatalf("%d rows, runs %v: %v, want %v, or other rows", rows, runs, err, wrong)
				}
			}
		}
		changes := make(vector.Bitmap, vector.BitmapWords(rows))
		for i := range changes {
			changes[i] = r.Uint64() & r.Uint64()
		}
		want := make([]int32, rows)
		fillChangeBitsFallback(want, changes, 0)
		for _, low := range []bool{false, true} {
			got := simdtest.Place(out, make([]int32, rows), low)
			fillChangeBits(got, simdtest.Place(in, changes, low))
			if !slices.Equal(got, want) {
				t.Fatalf("%d rows of changes differ", rows)
			}
		}
	}
}
