package reader

import (
	"errors"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
)

// TestUnreadLayers: a snapshot with deletes or merged overlays is refused, and not read as if it had none; the one before is read.
func TestUnreadLayers(t *testing.T) {
	ctx := t.Context()
	store, snap := realStore(t)
	segs, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := snap.Lookup(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := store.PutRows(ctx, segs[0], roaring.BitmapOf(1))
	if err != nil {
		t.Fatal(err)
	}
	base := snap.Info().Number
	for what, c := range map[string]storage.Change{
		"deletes": {Operation: "delete", Deletes: []storage.Deletes{{Segment: segs[0].ID, Rows: rows}}},
		"a merged overlay": {Operation: "overlay", Base: base, MergeOverlays: []string{"o"},
			Overlays: []storage.Overlay{{Name: "o", Features: n}}},
	} {
		store, snap := store, snap
		if what != "deletes" {
			store, snap = realStore(t)
		}
		after, err := snap.Table().Commit(ctx, c)
		if err != nil {
			t.Fatal(what, err)
		}
		for _, s := range []*storage.Snapshot{snap, after} {
			plan, err := NewPlan(ctx, s, PlanOptions{Features: []string{"n"}})
			if err != nil {
				t.Fatal(what, err)
			}
			r, err := OpenPlan(ctx, store, plan, Options{})
			if s == after {
				if !errors.Is(err, format.ErrUnsupported) {
					t.Errorf("%s: %v", what, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(what, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
