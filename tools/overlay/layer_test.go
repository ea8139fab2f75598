package overlay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// TestFiller holds stripes to a loop over rows: covered ones have their values, deleted ones are null, and a number
// that means nothing is one that a covered row next to it has.
func TestFiller(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 300 {
		typ := payloadTypes[r.IntN(len(payloadTypes))][0]
		rows := 1 + r.IntN(400)
		pick := func(share float64) vector.Bitmap {
			return bitmapOf(randomRows(r, rows, share), rows)
		}
		var dead, covered vector.Bitmap
		if r.IntN(2) == 0 {
			dead = pick(r.Float64())
		}
		if r.IntN(4) > 0 {
			covered = pick(r.Float64() * float64(r.IntN(2)))
			for i := range rows {
				if dead != nil && dead.Get(i) {
					covered.Clear(i)
				}
			}
		}
		n := 0
		for i := range rows {
			if (dead == nil || !dead.Get(i)) && (covered == nil || covered.Get(i)) {
				n++
			}
		}
		values := randomColumn(r, typ, n)
		at := 0
		read := func(dst *vector.Column, n int) error {
			dst.AppendRows(values, at, at+n)
			at += n
			return nil
		}
		x := filler{column: vector.NewColumn(typ), read: read, dead: dead, covered: covered}
		next := 0
		for from := 0; from < rows; {
			to := min(rows, from+1+r.IntN(150))
			if err := x.stripe(from, to); err != nil {
				t.Fatal(err)
			}
			c := x.column
			if err := c.Validate(); err != nil || c.Rows != to-from {
				t.Fatalf("%d rows of %d: %v", c.Rows, to-from, err)
			}
			near := map[string]bool{"null": true} // that the stripe's covered rows have
			for i := from; i < to; i++ {
				if (dead == nil || !dead.Get(i)) && (covered == nil || covered.Get(i)) {
					want := textOf(values, next)
					if got := textOf(c, i-from); got != want {
						t.Fatalf("row %d is %s, want %s", i, got, want)
					}
					near[want] = true
					next++
				}
			}
			for i := from; i < to; i++ {
				if got := textOf(c, i-from); !near[got] || dead != nil && dead.Get(i) && got != "null" {
					t.Fatalf("row %d is %s", i, got)
				}
			}
			from = to
		}
	}
}

// Where some rows are covered and those have values, a number takes no presence bitmap.
func TestUncoveredNumbersAreThere(t *testing.T) {
	rows := 200
	covered := make(vector.Bitmap, vector.BitmapWords(rows))
	for i := 5; i < rows; i += 3 {
		covered.Set(i)
	}
	x := filler{column: vector.NewColumn(vector.Type{Kind: vector.Dense, Elem: vector.Int64}), covered: covered,
		read: func(dst *vector.Column, n int) error {
			for range n {
				dst.Ints = append(dst.Ints, 1000)
				dst.AddSlot()
			}
			return nil
		}}
	if err := x.stripe(0, rows); err != nil {
		t.Fatal(err)
	}
	if x.column.Present != nil || x.column.Ints[0] != 1000 || x.column.Ints[rows-1] != 1000 {
		t.Fatalf("presence %v, values %v", x.column.Present, x.column.Ints)
	}
}

// TestLabelBytes: a label of 0 and 1 costs about its entropy, and at most half a byte a row, all in.
func TestLabelBytes(t *testing.T) {
	const rows = 100_000
	s := newStore(t, object.NewMemory())
	table, err := s.NewTable(t.Context(), "ads")
	if err != nil {
		t.Fatal(err)
	}
	id := catalog.Feature{ID: catalog.NewFeatureID("x", 0), Name: "x",
		Type: vector.Type{Kind: vector.Dense, Elem: vector.Float64}}
	stripes := []uint32{}
	for left := rows; left > 0; left -= 16384 {
		stripes = append(stripes, uint32(min(left, 16384)))
	}
	r := rand.New(rand.NewPCG(7, 7))
	x := vector.NewColumn(id.Type)
	for range rows {
		x.Doubles = append(x.Doubles, r.Float64())
		x.AddSlot()
	}
	first := 0
	w := newSegment(t, table, stripes, id, func(n int) *vector.Column {
		c := vector.NewColumn(id.Type)
		c.AppendRows(x, first, first+n)
		first += n
		return c
	})
	if _, err := table.Commit(t.Context(), commit.Change{Operation: "test",
		Ops: []commit.Operation{commit.AddSegments{w}, commit.AddFeatures{id}}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []float64{0.5, 0.2, 0.03, 0.001} {
		name := fmt.Sprint("share ", p)
		report, err := Add(t.Context(), s, "ads", name, Options{Exprs: []string{fmt.Sprintf("label = x < %v", p)}})
		if err != nil {
			t.Fatal(err)
		}
		perRow := float64(report.BytesOut) / rows
		entropy := -(p*math.Log2(p) + (1-p)*math.Log2(1-p)) / 8
		t.Logf("share %v: %.4f B/row, entropy %.4f", p, perRow, entropy)
		// Index and directories are some hundred bytes.
		if perRow > 0.5 || perRow > 1.3*entropy+0.02 {
			t.Errorf("share %v: %.4f B/row, entropy %.4f", p, perRow, entropy)
		}
	}
}
