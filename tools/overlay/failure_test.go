package overlay

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

func bitmapRange(from, to uint64) *roaring.Bitmap {
	b := roaring.New()
	b.AddRange(from, to)
	return b
}

// TestInterrupted ends overlays at each of their progress calls: the table is as it was, nothing is left but what gc
// takes, and the same again succeeds.
func TestInterrupted(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, partitionedFields, partitioned("a", 0, 1000), nil)
	path := labelsOf(t, 700)
	dir := t.TempDir()
	for _, opts := range []Options{{Exprs: []string{"y = click = 1"}}, {From: []string{path}},
		{From: []string{path}, Memory: 1}} {
		before := objectsAfterGC(t, s)
		number := latest(t, s).Info().Number
		opts.TempDir = dir
		for at := 1; ; at++ {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			opts.Progress = func(Progress) {
				if calls++; calls == at {
					cancel()
				}
			}
			_, err := Add(ctx, s, "ads", "o", opts)
			cancel()
			if err == nil {
				if calls >= at {
					t.Fatalf("ended at call %d, and no error", at)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("at call %d: %v", at, err)
			}
			if after := objectsAfterGC(t, s); !slices.Equal(before, after) {
				t.Fatalf("at call %d: objects are left: %v, before %v", at, after, before)
			}
		}
		snap := latest(t, s)
		if i := snap.Info(); i.Number <= number || i.Operation != "overlay" { // those of gc lie between
			t.Fatalf("snapshot %d by %s after %d", i.Number, i.Operation, number)
		}
		if _, err := snap.Table().Commit(t.Context(), commit.Change{Operation: "drop", Base: snap.Info().Number,
			Ops: []commit.Operation{commit.DropOverlays{"o"}}}); err != nil {
			t.Fatal(err)
		}
	}
	verifyClean(t, s)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Fatalf("spill files are left: %v, %v", left, err)
	}
}

// TestStoreThatFails lets the store fail, or die, at random operations: the overlay is there whole or not at all, and
// gc finds what is left.
func TestStoreThatFails(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	path := labelsOf(t, 700)
	operations := int64(0) // of one that succeeds
	for i := range fewer(60) {
		blobs := object.NewMemory()
		sound := newStore(t, blobs)
		ingestRows(t, sound, partitionedFields, partitioned("a", 0, 1000), nil)
		fault := object.NewFault(blobs)
		s := newStore(t, fault)
		opts := Options{From: []string{path}, TempDir: t.TempDir(), Workers: 2}
		if i%3 == 0 {
			opts.Memory = 1
		}
		if i > 0 {
			mode := []object.FaultMode{object.FailBefore, object.FailAfter}[r.IntN(2)]
			if at := 1 + r.Int64N(operations+1); i%2 == 0 {
				fault.FailAt(at, mode)
			} else {
				fault.DieAt(at, mode)
			}
		}
		_, err := Add(t.Context(), s, "ads", "o", opts)
		if i == 0 {
			if operations = fault.Operations(); err != nil {
				t.Fatal(err)
			}
		}
		snap := latest(t, sound)
		if _, missing := snap.Overlay(t.Context(), "o"); missing == nil {
			checkOverlay(t, snap, "o", []string{"id"}, wantLabel(700))
		} else if err == nil {
			t.Fatalf("no error, and no overlay")
		}
		verifyClean(t, sound)
		objectsAfterGC(t, sound)
		verifyClean(t, sound)
		if _, missing := snap.Overlay(t.Context(), "o"); missing != nil {
			if _, err := Add(t.Context(), sound, "ads", "o", opts); err != nil {
				t.Fatal(err)
			}
		}
	}
}
