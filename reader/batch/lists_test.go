package batch

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/ioplan"
)

// drawParts draws a column of lists that are parts of one run of values.
func drawParts(t *rapid.T, slots int) *vector.Column {
	c := vector.NewColumn(vector.Type{Kind: vector.Sparse, Elem: vector.Int64})
	c.Ints = rapid.SliceOfN(rapid.Int64(), 0, 6).Draw(t, "values")
	c.Offsets, c.Lengths, c.Rows, c.Slots = nil, make([]int32, 0), slots, slots
	present := make(vector.Bitmap, vector.BitmapWords(slots))
	for s := range slots {
		from, length := int32(0), int32(0)
		if rapid.IntRange(0, 3).Draw(t, "null") > 0 {
			present.Set(s)
			from = int32(rapid.IntRange(0, len(c.Ints)).Draw(t, "from"))
			length = int32(rapid.IntRange(0, len(c.Ints)-int(from)).Draw(t, "length"))
		}
		c.Offsets, c.Lengths = append(c.Offsets, from), append(c.Lengths, length)
	}
	if present.Count() < slots {
		c.Present = present
	}
	return c
}

// Partial duplicates are given as they are: the values that lists share are there once, and never are there more than
// the lists have.
func TestPartialDuplicatesShareValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawParts(t, rapid.IntRange(1, 40).Draw(t, "slots"))
		g := Group{Slots: c.Slots, to: 1}
		x := listFiller{b: &Batch{pieces: []Piece{{Stripe: &ioplan.Stripe{Columns: []*ioplan.Decoded{{Column: c}}}}}}}
		x.b.maker.selector.spans = []slotSpan{{hi: int32(c.Slots)}}
		starts, lengths := make([]int32, c.Slots), make([]int32, c.Slots)
		n, ok := x.placeFeature(starts, lengths, &g, 0, 0)
		out := make([]int64, n)
		for _, v := range x.copies {
			copy(out[v.at:], c.Ints[v.from:v.to])
		}
		sum, runs, lo, hi := 0, 0, int32(0), int32(0)
		for s := range c.Slots {
			sum += int(c.Lengths[s])
			if lengths[s] != c.Lengths[s] || !slices.Equal(out[starts[s]:starts[s]+lengths[s]],
				c.Ints[c.Offsets[s]:c.Offsets[s]+c.Lengths[s]]) {
				t.Fatalf("slot %d is not the list that it was", s)
			}
			if lengths[s] == 0 {
				continue
			}
			a, b := c.Offsets[s], c.Offsets[s]+lengths[s]
			if lo < hi && a <= hi && lo <= b {
				lo, hi = min(lo, a), max(hi, b)
			} else {
				runs += int(hi - lo)
				lo, hi = a, b
			}
		}
		if runs += int(hi - lo); !ok || n != runs || n > sum {
			t.Fatalf("%d values for lists of %d in all, in runs of %d", n, sum, runs)
		}
	})
}
