package workload

import (
	"math"
	"testing"
)

// A lower bound counts the ids that the rows hold, each once, and no feature takes less than nothing or more than its
// rows do plain.
func TestLowerBoundsCountWhatTheRowsHold(t *testing.T) {
	tr := truth(t, Options{Rows: 3000, Order: Clustered})
	bounds, err := tr.LowerBounds()
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range tr.Features() {
		b := bounds[i]
		for _, bits := range []float64{b.Dictionary, b.Values, b.Scores, b.Lengths, b.Starts, b.Inverse, b.Presence} {
			if bits < 0 || math.IsNaN(bits) || math.IsInf(bits, 0) {
				t.Errorf("feature %s: lower bound %+v", f.Name, b)
			}
		}
		c := values(t, tr, i, 0, tr.Rows())
		if plain := float64(64*c.Elements()+32*len(c.ScoreFloats)) + 16*float64(c.Rows); b.Total() > plain {
			t.Errorf("feature %s: lower bound of %.0f bits, the rows take %.0f plain", f.Name, b.Total(), plain)
		}
		if f.Type.IsList() {
			held := map[int64]bool{}
			for _, id := range c.Ints {
				held[id] = true
			}
			if want := setBits(idRange, len(held)); b.Dictionary != want {
				t.Errorf("feature %s: dictionary of %.0f bits, want %.0f for %d ids", f.Name, b.Dictionary, want,
					len(held))
			}
		}
	}
}

func TestBitsOfChoices(t *testing.T) {
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Max(want, 1) {
			t.Errorf("%s: %v bits, want %v", name, got, want)
		}
	}
	near("4 alike of 8", chanceBits(4, 8), 8)
	near("none of 8", chanceBits(0, 8), 0)
	near("one choice", choiceBits(map[int]int{7: 9}), 0)
	near("2 of 4", setBits(4, 2), math.Log2(6))
	near("all", setBits(4, 4), 0)
	near("3 of 2^63", setBits(idRange, 3), 3*63-math.Log2(6))
	near("two pairs of four", partitionBits(map[int]int{1: 2, 2: 2}), math.Log2(3))
}
