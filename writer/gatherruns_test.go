package writer

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format/vector"
)

var gatheredTypes = []vector.Type{
	{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Dense, Elem: vector.Float32}, {Kind: vector.Dense,
		Elem: vector.Float64},
	{Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Sparse, Elem: vector.Float32}, {Kind: vector.Sparse,
		Elem: vector.Float64},
	{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32}, {Kind: vector.Weighted, Elem: vector.Int32,
		Score: vector.Float64},
	{Kind: vector.Embedding, Elem: vector.Float32, Dim: 2}, {Kind: vector.Embedding, Elem: vector.Int8,
		Dim: 3}, {Kind: vector.Bytes},
}

// fewValues are numbers that compare in surprising ways: by bits they are four.
var fewValues = []float64{0, math.Copysign(0, -1), math.NaN(), 1}

// drawFew appends a row with few possible values.
func drawFew(t *rapid.T, c *vector.Column) {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		c.AppendNulls(1)
		return
	}
	n := c.Type.Width()
	if c.Type.IsList() {
		n = rapid.IntRange(0, 2).Draw(t, "length")
	}
	for range n {
		v := fewValues[rapid.IntRange(0, 3).Draw(t, "value")]
		switch c.Type.Physical() {
		case vector.Float32Values:
			c.Floats = append(c.Floats, float32(v))
		case vector.Float64Values:
			c.Doubles = append(c.Doubles, v)
		case vector.ByteValues:
			c.Data = append(c.Data, byte(math.Float64bits(v)>>56))
		default:
			c.Ints = append(c.Ints, int64(math.Float64bits(v)>>62))
		}
		switch s := fewValues[rapid.IntRange(0, 3).Draw(t, "score")]; {
		case c.Type.Kind != vector.Weighted:
		case c.Type.Score == vector.Float64:
			c.ScoreDoubles = append(c.ScoreDoubles, s)
		default:
			c.ScoreFloats = append(c.ScoreFloats, float32(s))
		}
	}
	c.AddSlot()
}

// TestRunsAreTheGatheredRows: what is gathered by runs expands to what is gathered row by row, and no two neighbouring
// runs are equal.
func TestRunsAreTheGatheredRows(t *testing.T) {
	var runs runGatherer
	var whole gatherer
	var compact, rows vector.Column
	rapid.Check(t, func(t *rapid.T) {
		ty := rapid.SampledFrom(gatheredTypes).Draw(t, "type")
		srcs := make([]*vector.Column, rapid.IntRange(1, 4).Draw(t, "sources"))
		for i := range srcs {
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "no source") == 0 {
				continue
			}
			srcs[i] = vector.NewColumn(ty)
			for range rapid.IntRange(1, 9).Draw(t, "rows") {
				drawFew(t, srcs[i])
			}
		}
		var pieces []piece
		n := 0
		for range rapid.IntRange(1, 12).Draw(t, "pieces") {
			src := rapid.IntRange(0, len(srcs)-1).Draw(t, "source")
			size := 5
			if srcs[src] != nil {
				size = srcs[src].Rows
			}
			p := piece{src: uint32(src), row: uint32(rapid.IntRange(0, size-1).Draw(t, "row"))}
			p.n = uint32(rapid.IntRange(1, size-int(p.row)).Draw(t, "n"))
			pieces = append(pieces, p)
			n += int(p.n)
		}
		compact.Type, rows.Type = ty, ty
		rows = *vector.NewColumn(ty)
		if _, err := whole.gather(&rows, srcs, pieces, n); err != nil {
			t.Fatal(err)
		}
		compact = *vector.NewColumn(ty)
		s, err := runs.gather(&compact, srcs, pieces, n)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Values.Validate(); err != nil || s.Rows != n || len(s.Starts) != s.Values.Rows || s.Starts[0] != 0 {
			t.Fatalf("%d rows, starts %v of %d values: %v", s.Rows, s.Starts, s.Values.Rows, err)
		}
		if got, want := s.Elements(), rows.Elements(); got != want {
			t.Fatalf("%d values: want %d", got, want)
		}
		run := 0
		for row := range n {
			if run+1 < len(s.Starts) && int(s.Starts[run+1]) == row {
				run++
				if vector.RowsEqual(s.Values, run-1, s.Values, run) {
					t.Fatalf("runs %d and %d are equal", run-1, run)
				}
			}
			if !vector.RowsEqual(s.Values, run, &rows, row) {
				t.Fatalf("row %d is not that of run %d", row, run)
			}
		}
		if run != len(s.Starts)-1 {
			t.Fatalf("starts %v of %d rows", s.Starts, n)
		}
	})
}
