package order

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/reader/plan"
)

// drawOrder draws segments with stripes, and an order over them.
func drawOrder(t *rapid.T) (*Epoch, [][]uint32, uint64) {
	s := plan.Shuffle{
		Unit: plan.UnitSession, BufferStripes: rapid.SampledFrom([]int{1, 2, 3, 16, 70}).Draw(t,
			"buffer_stripes"), Seed: rapid.Uint64().Draw(t, "seed"),
	}
	var stripes [][]uint32
	firstRow := []uint64{0}
	for range rapid.SampledFrom([]int{0, 1, 3, 63, 64, 65, 200}).Draw(t, "segments") {
		rows := rapid.SliceOfN(rapid.Uint32Range(1, 5), 0, 3).Draw(t, "stripes")
		sum := firstRow[len(firstRow)-1]
		for _, r := range rows {
			sum += uint64(r)
		}
		stripes, firstRow = append(stripes, rows), append(firstRow, sum)
	}
	return New(firstRow, s, rapid.Uint64().Draw(t, "epoch")), stripes, firstRow[len(firstRow)-1]
}

// Groups and buffers have every stripe once, no buffer more than its size, and rows follow each other without loss.
func TestOrderHasEachStripeOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, stripes, total := drawOrder(t)
		seen := map[[2]int]bool{}
		row := uint64(0)
		for g := range o.Groups() {
			if o.firstRow[g] != row {
				t.Fatalf("group %d starts at row %d, want %d", g, o.firstRow[g], row)
			}
			var rows [][]uint32
			for _, i := range o.Group(g) {
				rows = append(rows, stripes[i])
			}
			for i, w := range o.Buffers(g, rows) {
				if len(w.Stripes) == 0 || len(w.Stripes) > o.shuffle.BufferStripes || w.FirstRow != row ||
					w.Number != i || w.Group != g {
					t.Fatalf("buffer %d of group %d: %+v at row %d", i, g, w, row)
				}
				for _, r := range w.Stripes {
					at := [2]int{int(o.Group(g)[r.Segment]), int(r.Stripe)}
					if seen[at] {
						t.Fatalf("stripe %v comes twice", at)
					}
					seen[at] = true
					n := uint64(stripes[at[0]][at[1]])
					for k := row; k < row+n; k++ {
						if o.GroupAt(k) != g {
							t.Fatalf("row %d is in group %d, want %d", k, o.GroupAt(k), g)
						}
					}
					row += n
				}
			}
		}
		if row != total || o.firstRow[o.Groups()] != total {
			t.Fatalf("%d rows, want %d", row, total)
		}
		for i := range stripes {
			for j := range stripes[i] {
				if !seen[[2]int{i, j}] {
					t.Fatalf("stripe %d of segment %d does not come", j, i)
				}
			}
		}
	})
}

// The order of version 1 stays what it is for ever.
func TestOrderGolden(t *testing.T) {
	firstRow := []uint64{0, 3, 3, 10, 11, 20}
	s := plan.Shuffle{Unit: plan.UnitSession, BufferStripes: 2, Seed: 7}
	stripes := map[int32][]uint32{0: {1, 2}, 2: {3, 3, 1}, 3: {1}, 4: {4, 5}}
	text := ""
	for epoch := range uint64(2) {
		o := New(firstRow, s, epoch)
		var rows [][]uint32
		for _, i := range o.Group(0) {
			rows = append(rows, stripes[i])
		}
		text += fmt.Sprint(o.segments)
		for _, w := range o.Buffers(0, rows) {
			text += fmt.Sprint(w.FirstRow, w.Stripes)
		}
		runs := []Run{{0, 0, 1}, {0, 1, 2}, {0, 2, 3}, {0, 3, 4}, {0, 4, 5}}
		ShuffleRuns(&s, epoch, 0, 1, runs)
		for _, r := range runs {
			text += fmt.Sprint(" ", r.Lo)
		}
		text += "\n"
	}
	const want = `[3 4 0 2]0 [{0 0} {1 0}]5 [{2 1} {3 2}]8 [{2 0} {1 1}]14 [{3 0} {3 1}] 3 4 0 1 2
[2 3 4 0]0 [{3 1} {0 2}]3 [{0 1} {2 0}]10 [{0 0} {1 0}]14 [{3 0} {2 1}] 4 1 3 0 2
`
	if text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// Over many epochs each of the orders of four segments comes about equally often.
func TestOrderIsUniform(t *testing.T) {
	const epochs = 24000
	counts := map[string]int{}
	for epoch := range uint64(epochs) {
		counts[fmt.Sprint(New([]uint64{0, 1, 2, 3, 4}, plan.Shuffle{Unit: plan.UnitRow, BufferStripes: 1, Seed: 1},
			epoch).segments)]++
	}
	if len(counts) != 24 {
		t.Fatalf("%d orders of 24", len(counts))
	}
	square := 0.0
	for _, n := range counts {
		d := float64(n) - epochs/24
		square += d * d / (epochs / 24)
	}
	if square > 49.7 { // chi-square of 23 degrees of freedom, p = 0.001
		t.Errorf("chi-square %.1f: %v", square, counts)
	}
}

// Neighbouring seeds, epochs and buffers have orders of their own.
func TestOrderKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(3) {
		for epoch := range uint64(3) {
			for buffer := range 3 {
				runs := make([]Run, 40)
				for i := range runs {
					runs[i].Lo = int32(i)
				}
				s := plan.Shuffle{Unit: plan.UnitRow, BufferStripes: 4, Seed: seed}
				ShuffleRuns(&s, epoch, 0, buffer, runs)
				text := fmt.Sprint(runs)
				if seen[text] {
					t.Fatalf("seed %d, epoch %d, buffer %d has the order of another", seed, epoch, buffer)
				}
				seen[text] = true
				slices.SortFunc(runs, func(a, b Run) int { return int(a.Lo - b.Lo) })
				for i := range runs {
					if runs[i].Lo != int32(i) {
						t.Fatalf("run %d is lost", i)
					}
				}
			}
		}
	}
}

// An order over 10^5 segments costs a few bytes each and opens none.
func BenchmarkOrderOfManySegments(b *testing.B) {
	firstRow := make([]uint64, 100_001)
	for i := range firstRow {
		firstRow[i] = uint64(i) << 20
	}
	b.ReportAllocs()
	for b.Loop() {
		New(firstRow, plan.Shuffle{Unit: plan.UnitSession, BufferStripes: 16}, 1)
	}
}
