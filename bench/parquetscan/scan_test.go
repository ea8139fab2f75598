package parquetscan

import (
	"errors"
	"io"
	"math"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
)

// The tensors hold what the generator says its files hold, for any batch size and number of threads, over row groups
// and files.
func TestTensorsHoldTheTruth(t *testing.T) {
	o := workload.Options{Rows: 2500, Sparse: 30, Dense: 30, RowGroupRows: 700, Files: 2}
	s, err := workload.Generate(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	truth, err := workload.NewTruth(o)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	var columns []Column
	var want []*vector.Column
	for i, f := range truth.Features() {
		c, err := truth.Column(i, 0, truth.Rows())
		if err != nil {
			t.Fatal(err)
		}
		columns, want = append(columns, Column{f.Name, f.Type}), append(want, c)
	}
	for _, opts := range []Options{{BatchSize: 1000}, {BatchSize: 1}, {BatchSize: 7, NoMemoryMap: true}, {Threads: 3}} {
		sc, err := Open(paths, columns, opts)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for {
			tensors, rows, err := sc.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, columns, want, tensors, at, rows)
			at += rows
		}
		if at != int(o.Rows) {
			t.Errorf("options %+v: %d rows; want %d", opts, at, o.Rows)
		}
		if err := sc.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(paths, []Column{{"nothing", columns[0].Type}}, Options{}); err == nil {
		t.Error("a column that does not exist was opened")
	}
}

func check(t *testing.T, columns []Column, want []*vector.Column, got *reader.Tensors, at, rows int) {
	t.Helper()
	matrices := append([]reader.Matrix{got.Dense}, got.Embeddings...)
	for _, m := range matrices {
		for k, f := range m.Features {
			c, width := want[f], max(int(columns[f].Type.Dim), 1)
			for row := range rows {
				if m.PresentOf(k).Get(row) == c.IsNull(at+row) {
					t.Fatalf("feature %s row %d: presence is wrong", columns[f].Name, at+row)
				}
				for d := range width {
					v := float32(0)
					switch i := (at+row)*width + d; c.Type.Physical() {
					case vector.Int64Values:
						v = float32(c.Ints[i])
					case vector.Float32Values:
						v = c.Floats[i]
					case vector.Float64Values:
						v = float32(c.Doubles[i])
					}
					if g := m.Values[row*m.Width+k+d]; math.Float32bits(g) != math.Float32bits(v) {
						t.Fatalf("feature %s row %d: %v; want %v", columns[f].Name, at+row, g, v)
					}
				}
			}
		}
	}
	for _, j := range []*reader.Jagged{&got.Sparse, &got.Weighted} {
		for k, f := range j.Features {
			c := vector.NewColumn(columns[f].Type)
			for row := range rows {
				lo, hi := j.Offsets[k*rows+row], j.Offsets[k*rows+row+1]
				c.Reset()
				c.AppendNulls(1)
				if j.PresentOf(k).Get(row) {
					c.Present = nil
				}
				c.Ints, c.Offsets[1] = j.Values[lo:hi], hi-lo
				if j.Weights != nil {
					c.ScoreFloats = j.Weights[lo:hi]
				}
				if hi-lo != j.Lengths[k*rows+row] || !vector.RowsEqual(c, 0, want[f], at+row) {
					t.Fatalf("feature %s row %d differs", columns[f].Name, at+row)
				}
			}
		}
	}
}
