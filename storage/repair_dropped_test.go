package storage

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/repair"
)

// spoil changes a byte of the first stripe of a feature of a segment, or of a layer's.
func spoil(t *testing.T, mem *object.Memory, d catalog.SegmentDescriptor, feature string) {
	t.Helper()
	g, err := brokenStore(t, mem).core.Segments.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	e, err := g.Lookup(t.Context(), catalog.NewFeatureID(feature, 0))
	if err != nil || e[0] == nil {
		t.Fatal(e, err)
	}
	data := objectsOf(t, mem)[e[0].Object]
	data[e[0].Offset+e[0].Meta.Stripes[0].Offset] ^= 1
	ruin(t, mem, e[0].Object, data)
}

// setStatus drops or restores a feature.
func setStatus(t *testing.T, tab *Table, feature string, s catalog.FeatureStatus) {
	t.Helper()
	mustCommit(t, tab, commit.Change{Operation: "features",
		Ops: []commit.Operation{commit.ChangeFeatures{{Feature: feature, Status: &s}}}})
}

// TestRepairDroppedFeatures: dropped features cost no rows, wherever they are damaged. What is lost of them is said,
// for they can be restored, and one that is restored meanwhile keeps the repair from losing it.
func TestRepairDroppedFeatures(t *testing.T) {
	b := newBroken(t)
	a1, a2 := b.now.segments[0], b.now.segments[1]
	layers, err := func() ([][]*catalog.OverlaySegment, error) {
		s, err := b.tab.Latest(t.Context())
		if err != nil {
			return nil, err
		}
		o, err := s.Overlay(t.Context(), "m") // part of the table
		if err != nil {
			return nil, err
		}
		return s.OverlaySegments(t.Context(), []catalog.Overlay{o}, b.descs[a2.id])
	}()
	if err != nil || layers[0][0] == nil {
		t.Fatal(layers, err)
	}
	setStatus(t, b.tab, "y", catalog.FeatureDropped)
	mem := copyOf(t, b.mem)
	spoil(t, mem, b.descs[a1.id], "y")
	spoil(t, mem, layers[0][0].Data, "y")

	dry, err := brokenStore(t, mem).Repair(t.Context(), "ads", repair.Options{})
	if err != nil || len(dry.Items) != 2 || dry.LostRows > 0 {
		t.Fatal(err, deref(dry.Items))
	}
	for _, i := range dry.Items {
		if i.Action != repair.Rebuild || !strings.Contains(i.Lost, "dropped features lose their values: y") {
			t.Errorf("%+v", *i)
		}
	}

	h := &hookedStore{Store: copyOf(t, mem)}
	other := newTable(t, h)
	h.before = func(name string) {
		if _, ok := names.ParseSnapshot("ads", name); ok {
			h.before = nil
			setStatus(t, other, "y", catalog.FeatureActive)
		}
	}
	_, err = brokenStore(t, h).Repair(t.Context(), "ads", repair.Options{Apply: true})
	if !errors.Is(err, ErrConflict) {
		t.Errorf("the feature was restored meanwhile: %v", err)
	}

	s := brokenStore(t, mem)
	if r, err := s.Repair(t.Context(), "ads", repair.Options{Apply: true}); err != nil || !r.Applied {
		t.Fatal(r, err)
	}
	verifyClean(t, s)
}

// TestRepairUnderOverlay: what a merged overlay replaces in all rows of a segment nobody reads, and it costs none.
func TestRepairUnderOverlay(t *testing.T) {
	b := newBroken(t)
	a2, b1 := b.now.find(b.now.segments[1].id), b.now.segments[3]
	if b1.layers["m"] == nil || b1.layers["m"].cover != nil || a2.layers["m"].cover == nil {
		t.Fatal("the model is another")
	}
	for _, c := range []struct {
		segment *brokenSegment
		feature string
		want    repair.Action
	}{{b1, "y", repair.Rebuild}, {a2, "y", repair.DropRows}, {b1, "x", repair.DropRows}} {
		mem := copyOf(t, b.mem)
		spoil(t, mem, b.descs[c.segment.id], c.feature)
		s, r := b.repaired(mem, repair.Options{}, c.feature)
		if len(r.Items) != 1 || r.Items[0].Action != c.want || r.Items[0].ID != c.segment.id {
			t.Errorf("%s: %+v, want %q", c.feature, deref(r.Items), c.want)
		}
		b.check(s, r, c.feature)
		b.checkSound(s, r, c.feature)
	}
}
