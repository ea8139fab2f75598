package storage

import (
	"bytes"
	"errors"
	"maps"
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

// layer returns what an overlay has for a segment.
func (b *broken) layer(overlay, segment string) catalog.SegmentDescriptor {
	b.t.Helper()
	s, err := b.tab.Latest(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	o, err := s.Overlay(b.t.Context(), overlay)
	if err != nil {
		b.t.Fatal(err)
	}
	layers, err := s.OverlaySegments(b.t.Context(), []catalog.Overlay{o}, b.descs[segment])
	if err != nil || layers[0][0] == nil {
		b.t.Fatal(layers, err)
	}
	return layers[0][0].Data
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
	layer := b.layer("m", a2.id) // part of the table
	setStatus(t, b.tab, "y", catalog.FeatureDropped)
	mem := copyOf(t, b.mem)
	spoil(t, mem, b.descs[a1.id], "y")
	spoil(t, mem, layer, "y")

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

// TestRepairShallow: what is copied along is not looked at before. Where it is damaged nothing is done, and it is said
// how.
func TestRepairShallow(t *testing.T) {
	b := newBroken(t)
	a1 := b.now.segments[0]
	mem := copyOf(t, b.mem)
	spoil(t, mem, b.layer("o", a1.id), "z")
	ruin(t, mem, idOf(t, a1.id).KeysName(), nil)
	before := objectsOf(t, mem)
	r, err := brokenStore(t, mem).Repair(t.Context(), "ads", repair.Options{Shallow: true})
	if err != nil || len(r.Items) != 1 || r.Items[0].Action != repair.Rebuild {
		t.Fatal(err, deref(r.Items))
	}
	_, err = brokenStore(t, mem).Repair(t.Context(), "ads", repair.Options{Shallow: true, Apply: true})
	if err == nil || !strings.Contains(err.Error(), "without it") {
		t.Error(err)
	}
	if !maps.EqualFunc(before, objectsOf(t, mem), bytes.Equal) {
		t.Error("the store was changed")
	}
	b.repaired(mem, repair.Options{}, "deep")
}
