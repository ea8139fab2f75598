package writer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// TestSizesAreThoseOfEachRow holds setSizes against adding up row by row.
func TestSizesAreThoseOfEachRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	types := []vector.Type{
		{Kind: vector.Dense, Elem: vector.Int32}, {Kind: vector.Dense, Elem: vector.Float32}, {Kind: vector.Embedding,
			Elem: vector.Float32, Dim: 7},
		{Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Weighted, Elem: vector.Int64,
			Score: vector.Float32}, {Kind: vector.String},
		{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float64},
	}
	for _, rows := range []int{0, 1, sizedRows - 1, sizedRows, 2*sizedRows + 5} {
		var cols []*vector.Column
		want := make([]record, rows)
		for range 12 {
			c := vector.NewColumn(types[rng.IntN(len(types))])
			c.Rows, c.Slots = rows, rows
			if c.Type.IsList() {
				c.Offsets = make([]int32, rows+1)
			}
			for i := range want {
				n := c.Type.ValueBytes() * c.Type.Width()
				if c.Type.IsList() {
					length := rng.IntN(9)
					if i == 3 {
						length = math.MaxInt32 / 20 // twelve of them are more than 32 bits hold
					}
					c.Offsets[i+1] = c.Offsets[i] + int32(length)
					n = 4 + length*c.Type.ValueBytes()
				}
				want[i].bytes = uint32(min(uint64(want[i].bytes)+uint64(n), math.MaxUint32))
				want[i].most = max(want[i].most, uint32(n))
			}
			cols = append(cols, c)
		}
		got := make([]record, rows)
		setSizes(got, cols)
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%d rows: row %d is %d and %d: want %d and %d", rows, i, got[i].bytes, got[i].most,
					want[i].bytes, want[i].most)
			}
		}
	}
}
