package writer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
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

// TestRewriteHoldsLiveRows: where nearly all rows are deleted, a stripe is made of its live rows alone: those between
// them take no memory.
func TestRewriteHoldsLiveRows(t *testing.T) {
	ctx := t.Context()
	s, err := storage.Create(ctx, object.NewMemory(), storage.Options{})
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
	f := catalog.Feature{Name: "n", ID: catalog.NewFeatureID("n", 0),
		Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}
	x := Rewrite{
		Table: table, Inputs: []RewriteInput{{Stripes: []RewriteStripe{{Rows: rows, RowBytes: 8, MostBytes: 8}},
			Deleted: deleted}},
		Features: []*Feature{{Feature: f, RawBytes: 8 * rows}}, Session: -1, Time: -1,
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

// A ledger counts what opened columns hold.
type ledger struct {
	mu         sync.Mutex
	held, most int64
	loads      int // of stripes
}

func (l *ledger) add(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += n
	l.most = max(l.most, l.held)
	if n > 0 {
		l.loads++
	}
}

// A heldColumn holds size bytes from an Append until it is closed, as one that has a stripe decoded. Its rows are lists
// of ids, or the keys of the rows of an input among others.
type heldColumn struct {
	ledger               *ledger
	size                 int64
	feature, input       int
	inputs, stripe, rows int
	held                 int // the stripe that is decoded, from 1; 0: none
}

func (c *heldColumn) MayHave(int, int) bool { return true }

func (c *heldColumn) Close() {
	if c.held > 0 {
		c.ledger.add(-c.size)
	}
	c.held = 0
}

func (c *heldColumn) Append(dst *vector.Column, lo, hi int) error {
	for row := lo; row < hi; row++ {
		if at := row/c.stripe + 1; at != c.held {
			c.Close()
			c.ledger.add(c.size)
			c.held = at
		}
		global := int64(row*c.inputs + c.input) // inputs take turns
		switch {
		case c.feature < 2:
			dst.Ints = append(dst.Ints, global/4) // sessions of 4, and times
			dst.AddSlot()
		case row%7 == 3:
			dst.AppendNulls(1)
		default:
			for i := range int64(c.feature) + global%3 {
				dst.Ints = append(dst.Ints, global*31+i)
			}
			dst.AddSlot()
		}
	}
	return nil
}

// TestRewriteOfManyInputs: what decoded stripes of many inputs take together stays within the memory, each is decoded a
// few times however many inputs there are, and what is written is what is written with all the memory there is.
func TestRewriteOfManyInputs(t *testing.T) {
	ctx := t.Context()
	const inputs, rows, inputStripe = 40, 600, 200
	types := []vector.Type{{Kind: vector.Dense, Elem: vector.Int64}, {Kind: vector.Dense, Elem: vector.Int64},
		{Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Sparse, Elem: vector.Int64}, {Kind: vector.Sparse,
			Elem: vector.Int64}}
	run := func(memory, size int64, dedup Dedup) (*ledger, []byte) {
		t.Helper()
		blobs := object.NewMemory()
		s, err := storage.Create(ctx, blobs, storage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		table, err := s.NewTable(ctx, "ads")
		if err != nil {
			t.Fatal(err)
		}
		book := &ledger{}
		x := Rewrite{Table: table, Session: 0, Time: 1}
		for range inputs {
			in := RewriteInput{Deleted: roaring.BitmapOf(5, 6, 7, 399)}
			for range rows / inputStripe {
				in.Stripes = append(in.Stripes, RewriteStripe{Rows: inputStripe, RowBytes: 100, MostBytes: 50})
			}
			x.Inputs = append(x.Inputs, in)
		}
		for i, typ := range types {
			name := fmt.Sprint("f", i)
			x.Features = append(x.Features, &Feature{Feature: catalog.Feature{Name: name,
				ID: catalog.NewFeatureID(name, 0), Type: typ},
				RawBytes: inputs * rows * 30, HeldBytes: inputs * size, MostBytes: size})
		}
		x.Open = func(_ context.Context, input, feature int) (RewriteColumn, error) {
			return &heldColumn{ledger: book, size: size, feature: feature, input: input, inputs: inputs,
				stripe: inputStripe, rows: rows}, nil
		}
		r, err := x.Run(ctx, Options{Memory: memory, StripeRows: 500, StripeBytes: 4 << 20, Workers: 2, Dedup: dedup,
			TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if len(r.Segments) != 1 || r.Segments[0].Data.Rows != inputs*(rows-4) {
			t.Fatalf("%+v", r.Segments)
		}
		if book.held != 0 {
			t.Errorf("%d bytes are held in the end", book.held)
		}
		return book, segmentBytes(t, s, blobs, r.Segments[0].Data)
	}
	for _, dedup := range []Dedup{DedupOff, DedupAuto} {
		wide, want := run(1<<40, 1<<20, dedup)
		if wide.most < inputs<<20 {
			t.Fatalf("with all the memory only %d bytes were held", wide.most)
		}
		const memory = 64 << 20
		book, got := run(memory, 1<<20, dedup)
		// A quarter is for stripes that are written, and half of the half that an ingest has for its buffer, for keys.
		if book.most > memory/2 {
			t.Errorf("%v: %d MiB were held of %d MiB of memory", dedup, book.most>>20, memory>>20)
		}
		if book.most > wide.most/2 {
			t.Errorf("%v: %d MiB were held, %d MiB with all the memory", dedup, book.most>>20, wide.most>>20)
		}
		// Once for the values, once or twice for the keys, and in samples.
		if stripes := inputs * rows / inputStripe * len(types); book.loads > 4*stripes {
			t.Errorf("%v: stripes were decoded %d times, of %d", dedup, book.loads, stripes)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%v: %d bytes were written, %d others with all the memory", dedup, len(got), len(want))
		}
	}
}

// segmentBytes returns the feature files of a segment, in the order of their ids, with the salt 0: a segment's id is
// random.
func segmentBytes(t *testing.T, s *storage.Store, blobs object.Store, d catalog.SegmentDescriptor) []byte {
	t.Helper()
	g, err := s.Segments().Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := g.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range entries {
		body := io.NewSectionReader(object.ReaderAt(t.Context(), blobs, e.Object), int64(e.Offset)+4, int64(e.Length)-4)
		if _, _, err := format.CopyFile(&b, e.Meta, 0, body); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
