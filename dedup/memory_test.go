package dedup

import (
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

func columnBytes(c *vector.Column) int {
	return 4*(cap(c.Inverse)+cap(c.Offsets)+cap(c.Lengths)+cap(c.Floats)+cap(c.ScoreFloats)) +
		8*(cap(c.Present)+cap(c.Ints)+cap(c.Doubles)+cap(c.ScoreDoubles)) + cap(c.Data)
}

func (t *slotTable) scratch() int { return 4*cap(t.slots) + 4*cap(t.hashes) }

func (f *Finder) scratch() int {
	out := f.out
	out.Inverse, out.Offsets, out.Lengths, out.Present = nil, nil, nil, nil // memory that is counted below
	n := columnBytes(&out) + f.table.scratch() +
		4*(cap(f.marked)+cap(f.codes)+cap(f.slotReps)+cap(f.rows)+cap(f.ofRow)+cap(f.ofUnion)+cap(f.inverse)) +
		8*(cap(f.spans)+cap(f.partials.placed)) + 4*(cap(f.partials.starts)+cap(f.partials.lengths)) +
		8*(cap(f.present)+cap(f.partPresent))
	for _, s := range [][]int32{f.offsets, f.slotLength} {
		n += 4 * cap(s)
	}
	return n + 8*len(f.estimate.seen)
}

// TestScratchIsBounded: what a Finder and a Union hold stays within what callers count for them, whatever the stripes
// are.
func TestScratchIsBounded(t *testing.T) {
	for _, ty := range types {
		for _, repeat := range []int{0, 50, 100} {
			for _, rows := range []int{2, 1000, 5000, 16384} {
				rng := rand.New(rand.NewPCG(uint64(rows), 3))
				var f Finder
				var u Union
				f.Reset(ty, Options{Sizer: new(modelSizer)}, Choice{})
				c := vector.NewColumn(ty)
				list := []int{1, 0, 1}
				for range rows {
					if rng.IntN(100) >= repeat {
						list = make([]int, rng.IntN(8))
						if !ty.IsList() {
							list = make([]int, ty.Width())
						}
						for i := range list {
							list[i] = rng.IntN(2)
							if ty.Elem.FirstOutOfRange([]int64{100}) < 0 {
								list[i] = rng.IntN(100)
							}
						}
					}
					if !ty.IsList() {
						list = append(list, make([]int, ty.Width())...)[:ty.Width()]
					}
					appendModel(c, list)
				}
				f.Find(c)
				f.FindRuns(runsOf(c))
				for _, runs := range []bool{true, false} {
					u.Reset(rows, runs)
					u.Add(runsOf(c))
					u.Inverse()
					f.FindIn(runsOf(c), &u)
				}
				if got, most := f.scratch(), int(ScratchBytes(int64(rows), int64(c.SizeBytes()))); got > most {
					t.Errorf("%v, %d rows, %d %% repeat: a Finder holds %d bytes: want %d at most", ty, rows, repeat,
						got, most)
				}
				got := u.table.scratch() + 8*cap(u.pairs.keys) + 4*(cap(u.pairs.slots)+cap(u.pairs.codes)) +
					4*(cap(u.starts)+cap(u.merged)+cap(u.other)) +
					4*(cap(u.runs)+cap(u.codes)+cap(u.reps)+cap(u.column.Inverse))
				if most := int(UnionBytes(int64(rows))); got > most+4096 {
					t.Errorf("%v, %d rows, %d %% repeat: a Union holds %d bytes: want %d at most", ty, rows, repeat,
						got, most)
				}
			}
		}
	}
}
