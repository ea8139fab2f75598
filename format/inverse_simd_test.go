//go:build amd64 && !purego

package format

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/simd"
)

// sameRuns fails unless fillRuns and its fallback give the same rows, or the same error, and nothing beyond them.
func sameRuns(t *testing.T, rows int, runs []int32) {
	t.Helper()
	const guard = -7
	all := make([]int32, rows+16)
	for i := range all {
		all[i] = guard
	}
	got, want := all[:rows:rows], make([]int32, rows)
	var slots []int32
	if len(runs)%2 == 1 {
		for i := range runs {
			slots = append(slots, int32(i*i%31))
		}
	}
	a, b := fillRuns(got, runs, slots), fillRunsFallback(want, runs, slots, 0, 0)
	if fmt.Sprint(a) != fmt.Sprint(b) || a == nil && !slices.Equal(got, want) {
		t.Fatalf("%d rows, runs %v: %v, want %v", rows, runs, a, b)
	}
	for _, v := range all[rows:] {
		if v != guard {
			t.Fatalf("%d rows, runs %v: written beyond", rows, runs)
		}
	}
}

func TestFillRunsMatchesFallback(t *testing.T) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(1, 5))
	for range 3000 {
		var runs []int32
		rows, longest := 0, 1+r.IntN(1+r.IntN(80))
		for range r.IntN(60) {
			runs = append(runs, int32(1+r.IntN(longest)))
			rows += int(runs[len(runs)-1])
		}
		switch r.IntN(4) {
		case 0:
			rows += r.IntN(40) - 20 // too many, or too few
		case 1:
			if len(runs) > 0 {
				runs[r.IntN(len(runs))] = []int32{0, -1, -1 << 31, 1<<31 - 1}[r.IntN(4)]
			}
		}
		sameRuns(t, max(rows, 0), runs)
	}
}

func TestFillChangesMatchesFallback(t *testing.T) {
	if !simd.AVX2 {
		t.Skip("no AVX2")
	}
	r := rand.New(rand.NewPCG(1, 6))
	for range 2000 {
		rows := r.IntN(400)
		changes := make(vector.Bitmap, vector.BitmapWords(rows))
		for range r.IntN(rows + 1) {
			changes.Set(r.IntN(rows))
		}
		all := make([]int32, rows+1)
		all[rows] = -7
		want := make([]int32, rows)
		fillChangeBits(all[:rows], changes)
		fillChangeBitsFallback(want, changes, 0)
		if !slices.Equal(all[:rows], want) || all[rows] != -7 {
			t.Fatalf("%d rows: %v, want %v", rows, all[:rows], want)
		}
	}
}

func FuzzFillRuns(f *testing.F) {
	f.Add([]byte{1, 2, 3, 40, 5, 17, 16, 15, 250}, int8(0))
	f.Fuzz(func(t *testing.T, data []byte, by int8) {
		if !simd.AVX2 {
			t.Skip("no AVX2")
		}
		runs, rows := make([]int32, len(data)), int(by)
		for i, b := range data {
			runs[i] = int32(b)
			if b > 250 {
				runs[i] = int32(int8(b)) << 24
			}
			rows += int(b)
		}
		sameRuns(t, max(rows, 0), runs)
	})
}
