package ingest

import (
	"context"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// A fakeColumn has its row number in each row, and remembers how many rows were asked of it, and how many at once.
type fakeColumn struct{ asked, most int }

func (c *fakeColumn) MayHave(int, int) bool { return true }
func (c *fakeColumn) Close()                {}
func (c *fakeColumn) Append(dst *vector.Column, lo, hi int) error {
	for row := lo; row < hi; row++ {
		dst.Ints = append(dst.Ints, int64(row))
		dst.AddSlot()
	}
	c.asked += hi - lo
	c.most = max(c.most, dst.Rows)
	return nil
}

// TestRewriteHoldsLiveRows: where nearly all rows are deleted, a stripe is made of its live rows alone: those between them take no memory.
func TestRewriteHoldsLiveRows(t *testing.T) {
	ctx := t.Context()
	s, err := storage.Open(ctx, object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	const rows, every = 100_000, 50
	deleted := roaring.New()
	deleted.AddRange(0, rows)
	for row := uint32(7); row < rows; row += every {
		deleted.Remove(row)
	}
	col := &fakeColumn{}
	f := storage.Feature{Name: "n", ID: storage.NewFeatureID("n", 0), Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}
	x := Rewrite{
		Table: table, Inputs: []RewriteInput{{Stripes: []RewriteStripe{{Rows: rows, RowBytes: 8, MostBytes: 8}}, Deleted: deleted}},
		Features: []RewriteFeature{{Feature: f, RawBytes: 8 * rows}}, Session: -1, Time: -1,
		Open: func(context.Context, int, int) (RewriteColumn, error) { return col, nil },
	}
	r, err := x.Run(ctx, Options{Memory: 16 << 20, StripeRows: 100, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.Segments) != 1 || r.Segments[0].Data.Rows != rows/every {
		t.Fatalf("%+v", r.Segments)
	}
	if col.most > 200 || col.asked > 2*rows/every {
		t.Errorf("%d rows were decoded for a stripe of 100, %d in all of %d", col.most, col.asked, rows/every)
	}
	next := uint32(0)
	err = r.Origins(r.Segments[0].Rows, func(at uint32, o Origin) error {
		if at != next || o.Row != 7+at*every || o.N != 1 {
			t.Fatalf("row %d is %+v", at, o)
		}
		next++
		return nil
	})
	if err != nil || next != rows/every {
		t.Fatal(next, err)
	}
}
