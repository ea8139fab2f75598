package storage

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// sharedRows writes dense stripes whose values are of the same few, far apart.
func sharedRows(stripes []uint32) func(*format.Writer) error {
	return func(w *format.Writer) error {
		rng := rand.New(rand.NewPCG(1, 2))
		for _, rows := range stripes {
			c := &vector.Column{Type: int64Type, Rows: int(rows), Slots: int(rows)}
			for range rows {
				c.Ints = append(c.Ints, int64(uint64(rng.IntN(300)+1)*0x9e3779b97f4a7c15>>1))
			}
			if err := w.WriteStripe(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestVerifyDictionary: a deep verify finds every damaged byte of a feature file's dictionary, and says where it is, in
// a pack and in an object of its own.
func TestVerifyDictionary(t *testing.T) {
	ctx := t.Context()
	stripes := []uint32{600, 600, 500, 600, 600, 600, 600, 600}
	for _, standAlone := range []int64{0, 1} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		w, err := tab.NewSegment(ctx, nil, stripes, segment.Options{StandAloneBytes: standAlone})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"a", "b"} {
			if err := w.AddFeature(ctx, i, feature(name, int64Type), sharedRows(stripes)); err != nil {
				t.Fatal(err)
			}
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features("a", "b")), commit.AddSegments{d}}}); err != nil {
			t.Fatal(err)
		}
		g, err := tab.s.core.Segments.Open(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		found, err := g.Lookup(ctx, feature("b", int64Type).ID)
		if err != nil {
			t.Fatal(err)
		}
		e := found[0]
		at, length := e.Meta.Dictionary.Range()
		if length == 0 {
			t.Fatal("no dictionary")
		}
		clean := make([]byte, e.ObjectSize)
		if err := mem.ReadAt(ctx, e.Object, clean, 0); err != nil {
			t.Fatal(err)
		}
		put := func() {
			if err := errors.Join(mem.Delete(ctx, e.Object), mem.PutIfAbsent(ctx, e.Object, clean)); err != nil {
				t.Fatal(err)
			}
		}
		for i := at; i < at+length; i += 1 + length/50 {
			clean[e.Offset+i] ^= 1 << (i % 8)
			put()
			r, err := tab.Store().Verify(ctx, "", true, nil)
			if err != nil {
				t.Fatal(err)
			}
			var c *format.CorruptError
			if r.DamageCount != 1 || !errors.As(r.Damage[0], &c) || c.Object != e.Object || c.Feature != "b" ||
				c.Stripe != -1 ||
				c.Stream != "dictionary" || c.Offset != int64(e.Offset+at) {
				t.Fatalf("byte %d of the dictionary: %v", i, r.Damage)
			}
			clean[e.Offset+i] ^= 1 << (i % 8)
		}
		put()
		if r, err := tab.Store().Verify(ctx, "", true, nil); err != nil || r.DamageCount > 0 || r.Features != 2 {
			t.Fatal(err, r)
		}
	}
}
