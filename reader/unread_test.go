package reader

import (
	"errors"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
)

// TestUnreadLayers: a snapshot with merged overlays is refused, and not read as if it had none; the one before is read.
func TestUnreadLayers(t *testing.T) {
	ctx := t.Context()
	store, snap := realStore(t)
	n, err := snap.Lookup(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	base := snap.Info().Number
	for what, c := range map[string]storage.Change{
		"a merged overlay": {Operation: "overlay", Base: base, MergeOverlays: []string{"o"},
			Overlays: []storage.Overlay{{Name: "o", Features: n}}},
	} {
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
