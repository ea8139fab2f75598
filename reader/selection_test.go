package reader

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/ioplan"
)

// selectedSegment returns a segment of which those rows are selected that in says.
func selectedSegment(stripeRows []uint32, in func(row uint32) bool) (*ioplan.Segment, *roaring.Bitmap) {
	b := roaring.New()
	first := ioplan.StartsOf(0, stripeRows)
	for r := range uint32(first[len(stripeRows)]) {
		if in(r) {
			b.Add(r)
		}
	}
	b.RunOptimize()
	return &ioplan.Segment{Selected: b, First: first, Starts: ioplan.StartsOf(7, ioplan.SelectedRows(stripeRows, b))}, b
}

// Places of a stripe are the rows that Bitmap.Select finds, whatever the bitmap's containers are.
func TestSelectRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 17))
	for name, in := range map[string]func(uint32) bool{
		"half":     func(uint32) bool { return r.IntN(2) == 0 },
		"few":      func(uint32) bool { return r.IntN(300) == 0 },
		"runs":     func(row uint32) bool { return row%391 > 100 },
		"a gap":    func(row uint32) bool { return row < 20_000 || row > 130_000 && row%3 == 0 },
		"all":      func(uint32) bool { return true },
		"the last": func(row uint32) bool { return row%16384 == 16383 },
	} {
		g, b := selectedSegment([]uint32{16384, 1, 60_000, 700, 65_536, 16384}, in)
		for i := range g.Stripes() {
			n := int(g.Starts[i+1] - g.Starts[i])
			for _, share := range []int{1, 2, 50, 1000} {
				var positions, want []int32
				for p := range n {
					if r.IntN(share) == 0 || p == n-1 {
						row, err := b.Select(uint32(g.Starts[i]-g.Starts[0]) + uint32(p))
						if err != nil {
							t.Fatal(err)
						}
						positions, want = append(positions, int32(p)), append(want, int32(row)-int32(g.First[i]))
					}
				}
				if g.SelectRows(i, positions); !slices.Equal(positions, want) {
					t.Fatalf("%s: positions of stripe %d are other rows than Select says", name, i)
				}
			}
		}
	}
}

// BenchmarkSelectRows finds some rows of a stripe of 16384 in a segment of 2^20, of whose rows half are selected here
// and there, one in 20, and 20 of 37.
func BenchmarkSelectRows(b *testing.B) {
	const stripe = 16384
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct {
		name string
		in   func(uint32) bool
	}{
		{"half", func(uint32) bool { return r.IntN(2) == 0 }},
		{"few", func(uint32) bool { return r.IntN(20) == 0 }},
		{"runs", func(row uint32) bool { return row%37 < 20 }},
	} {
		g, _ := selectedSegment([]uint32{40 * stripe, stripe, 23 * stripe}, x.in)
		n := int(g.Starts[2] - g.Starts[1])
		for _, want := range []int{1, 8, 64, 512} {
			positions, rows := make([]int32, want), make([]int32, want)
			for i := range positions {
				positions[i] = int32(i * n / want)
			}
			b.Run(fmt.Sprintf("%s/%d", x.name, want), func(b *testing.B) {
				for b.Loop() {
					copy(rows, positions)
					g.SelectRows(1, rows)
				}
			})
		}
	}
}
