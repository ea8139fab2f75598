package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/verify"
)

// rowSet makes a set for a change.
func rowSet(t testing.TB, s *Store, d catalog.SegmentDescriptor, rows ...uint32) bitmap.Ref {
	t.Helper()
	r, err := s.core.Bitmaps.Put(t.Context(), d.ID, d.Rows, roaring.BitmapOf(rows...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// everySecond has many rows in no order that compresses, so that its set is an object.
func everySecond(t testing.TB, s *Store, d catalog.SegmentDescriptor, from uint64) bitmap.Ref {
	t.Helper()
	rows := roaring.New()
	for i := from; i < d.Rows; i += 2 {
		rows.Add(uint32(i))
	}
	r, err := s.core.Bitmaps.Put(t.Context(), d.ID, d.Rows, rows)
	if err != nil || objectSize(r) == 0 {
		t.Fatal(err, r)
	}
	return r
}

func mustCommit(t testing.TB, tab *Table, c commit.Change) *Snapshot {
	t.Helper()
	if c.Operation == "" {
		c.Operation = "test"
	}
	s, err := tab.Commit(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantConflict(t testing.TB, tab *Table, c commit.Change, what string) {
	t.Helper()
	c.Operation = "test"
	if s, err := tab.Commit(t.Context(), c); !errors.Is(err, ErrConflict) {
		t.Errorf("%s: %v %v, want a conflict", what, s, err)
	} else {
		t.Log(err)
	}
}

func readRows(t testing.TB, s *Snapshot, r bitmap.Ref) []uint32 {
	t.Helper()
	rows, err := s.t.s.core.Bitmaps.Read(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if rows.GetCardinality() != r.Count {
		t.Fatalf("%d rows, its entry says %d", rows.GetCardinality(), r.Count)
	}
	return rows.ToArray()
}

func verifyClean(t testing.TB, s *Store) *verify.Report {
	t.Helper()
	r, err := s.Verify(t.Context(), "", true, nil)
	if err != nil || r.DamageCount > 0 {
		t.Fatal(err, r.Damage)
	}
	return r
}

func TestDeletes(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, partition("p", "a"), []uint32{100, 50_000}, 1, segment.Options{}, "x")
	b := writeSegment(t, tab, partition("p", "b"), []uint32{10}, 1, segment.Options{}, "x")
	s1 := mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{a, b}}})
	// Deletes made against one snapshot unite, in whichever order they come; so do appends between.
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID, Rows: rowSet(t, tab.s,
		a, 0, 1, 2)},
		{Segment: b.ID, Rows: rowSet(t, tab.s, b, 9)}}}})
	c := writeSegment(t, tab, partition("p", "a"), []uint32{10}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{c}}})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID,
		Rows: everySecond(t,
			tab.s, a, 0)}}}})
	s := mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID,
		Rows: rowSet(t, tab.s,
			a, 1, 3)}}}})
	got, err := s.DeletionVectors(ctx, c, b, a)
	if err != nil || !got[0].IsEmpty() || got[1].Since != 2 || got[2].Since != 5 {
		t.Fatal(got, err)
	}
	if rows := readRows(t, s, got[1]); !slices.Equal(rows, []uint32{9}) {
		t.Fatal(rows)
	}
	want := []uint32{0, 1, 2, 3}
	for i := uint32(4); i < 50_100; i += 2 {
		want = append(want, i)
	}
	if rows := readRows(t, s, got[2]); !slices.Equal(rows, want) {
		t.Fatal(len(rows), len(want), rows[:6])
	}
	if i := s.Info(); i.DeletedRows != uint64(len(want))+1 || i.LiveRows() != i.Rows-i.DeletedRows || i.Rows != 50_120 {
		t.Fatalf("%+v", i)
	}
	// What is deleted already changes nothing, and keeps the version that caches go by.
	s = mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: b.ID, Rows: rowSet(t,
		tab.s, b, 9)}}}})
	if got, err := s.DeletionVectors(ctx, b); err != nil || got[0].Since != 2 {
		t.Fatal(got, err)
	}
	// The snapshots before see them.
	if got, err := s1.DeletionVectors(ctx, a); err != nil || !got[0].IsEmpty() {
		t.Fatal(got, err)
	}
	verifyClean(t, tab.s)
	// A compaction that has not seen the last deletes would bring rows back.
	merged := writeSegment(t, tab, partition("p", "a"), []uint32{10}, 1, segment.Options{}, "x")
	compaction := commit.Change{Base: 4, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.RemoveSegments{a.ID, c.ID}, commit.AddSegments{merged}}}
	wantConflict(t, tab, compaction, "compaction of what got deletes")
	compaction.Base = 6
	compaction.Set(commit.DeleteRows{{Segment: merged.ID, Rows: rowSet(t, tab.s, merged, 5)}})
	s = mustCommit(t, tab, compaction)
	if got, err := s.DeletionVectors(ctx, merged, b); err != nil || got[0].Count != 1 || got[1].Count != 1 ||
		s.Info().DeletedRows != 2 {
		t.Fatal(got, err, s.Info())
	}
	wantConflict(t, tab, commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID, Rows: rowSet(t,
		tab.s, a, 7)}}}},
		"deletes of a segment that is gone")
	// An overwrite takes what was deleted away with the rows.
	s = mustCommit(t, tab, commit.Change{Base: 7, Ops: []commit.Operation{commit.OverwritePartitions{a.Partition}}})
	if i := s.Info(); i.DeletedRows != 1 || i.Rows != 10 {
		t.Fatalf("%+v", i)
	}
	verifyClean(t, tab.s)
	for _, bad := range []struct {
		d    catalog.SegmentDescriptor
		rows uint32
	}{{b, 10}, {b, 1 << 31}} {
		if r, err := tab.s.core.Bitmaps.Put(ctx, bad.d.ID, bad.d.Rows, roaring.BitmapOf(bad.rows)); err == nil {
			t.Errorf("row %d of %d: %+v", bad.rows, bad.d.Rows, r)
		}
	}
	// Readers make bitmaps of all rows of a segment that has deleted ones: of no more rows than a bitmap can have.
	if r, err := tab.s.core.Bitmaps.Put(ctx, b.ID, 1<<32+1, roaring.BitmapOf(1)); err == nil {
		t.Errorf("a set of rows of a segment of 2^32 + 1: %+v", r)
	}
	entry := bitmap.AppendEntry(nil, rowSet(t, tab.s, b, 1))
	for rows, ok := range map[uint64]bool{10: true, 1 << 32: true, 1<<32 + 1: false} {
		if r, reason := bitmap.DecodeEntry(entry, rows, "o"); (reason == "") != ok {
			t.Errorf("a set of a segment of %d: %+v %s", rows, r, reason)
		}
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Ops: []commit.Operation{commit.DeleteRows{{Segment: b.ID,
		Rows: rowSet(t, tab.s, a, 7)}}}}); err == nil || errors.Is(err, ErrConflict) {
		t.Errorf("rows of another segment: %v", err)
	}
}

// layer writes a layer of features over a segment.
func layer(t testing.TB, tab *Table, o string, base catalog.SegmentDescriptor, seed int64,
	names ...string) catalog.OverlaySegment {
	t.Helper()
	ctx := t.Context()
	g, err := tab.s.core.Segments.Open(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tab.NewOverlaySegment(ctx, base, segment.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		if err := w.AddFeature(ctx, i, feature(n, int64Type), denseRows(g.StripeRows(), seed)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := w.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.OverlaySegment{Overlay: o, Segment: base.ID, Data: d, All: true}
}

func overlay(name string, names ...string) catalog.Overlay {
	fs := features(names...)
	slices.SortFunc(fs, func(a, b catalog.Feature) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return catalog.Overlay{Name: name, Features: fs}
}

func TestOverlays(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, localStore(t))
	a := writeSegment(t, tab, partition("p", "a"), []uint32{100, 20}, 1, segment.Options{}, "x", "y")
	b := writeSegment(t, tab, partition("p", "b"), []uint32{10}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x", "y")),
		commit.AddSegments{a, b}}})
	over := layer(t, tab, "low", b, 1, "y", "z")
	over.All, over.Covered = false, rowSet(t, tab.s, b, 1, 4)
	s := mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("low", "y",
		"z"), overlay("high", "y")}, commit.SetOverlaySegments{layer(t, tab, "low", a, 2, "y", "z"), over,
		layer(t, tab, "high", b, 3, "y")}}})
	all, err := s.Overlays(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "low" || all[1].Name != "high" || all[0].Number >= all[1].Number ||
		all[0].Added != 2 {
		t.Fatal(all, err)
	}
	layers, err := s.OverlaySegments(ctx, all, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if l := layers[0][0]; l == nil || l.All || l.Data.ID != over.Data.ID || l.Since != 2 ||
		fmt.Sprint(readRows(t, s, l.Covered)) != "[1 4]" {
		t.Fatalf("%+v", l)
	}
	if layers[0][1] == nil || !layers[0][1].All || layers[1][0] == nil || layers[1][1] != nil {
		t.Fatal(layers)
	}
	g, err := s.OpenSegment(ctx, layers[1][0].Data)
	if err != nil || !slices.Equal(g.StripeRows(), []uint32{100, 20}) {
		t.Fatal(g, err)
	}
	if e, err := g.Lookup(ctx, catalog.NewFeatureID("z", 0)); err != nil || e[0] == nil {
		t.Fatal(e, err)
	}
	if _, err := s.Lookup(ctx, "z"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a feature of an overlay that is not merged is in the schema: %v", err)
	}
	if _, err := s.Overlay(ctx, "hihg"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "high") {
		t.Fatal(err)
	}
	verifyClean(t, tab.s)
	// gc keeps the layers.
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Removed) > 0 {
		t.Fatal(err, r.Removed)
	}
	// Two that set one layer: the later has not seen the first.
	wantConflict(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "low",
		a, 9, "y", "z")}}}, "a layer set since")
	mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "low", a,
		9, "y", "z")}}})
	wantConflict(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "low",
		a, 9, "y", "z")}}}, "a layer set since")
	// Names are taken.
	if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 3,
		Ops: []commit.Operation{commit.DefineOverlays{overlay("low", "q")}}}); !errors.Is(err, ErrExists) ||
		errors.Is(err, ErrConflict) {
		t.Fatal(err)
	}
	wantConflict(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("low", "q")}}},
		"a name taken since")
	// A compaction carries the layers, or does not take place.
	c := writeSegment(t, tab, partition("p", "a"), []uint32{60}, 1, segment.Options{}, "x")
	compaction := commit.Change{Base: 2, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.RemoveSegments{a.ID}, commit.AddSegments{c}, commit.SetOverlaySegments{layer(t, tab, "low", c, 2,
			"y", "z")}}}
	wantConflict(t, tab, compaction, "compaction under a new layer")
	compaction.Base = 3
	s = mustCommit(t, tab, compaction)
	if layers, err = s.OverlaySegments(ctx, all, c, a); err != nil || layers[0][0] == nil || layers[1][0] != nil {
		t.Fatal(layers, err)
	}
	wantConflict(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "high",
		a, 9, "y")}}}, "a layer over a segment that is gone")
	// Merged, its features are the table's.
	s = mustCommit(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.MergeOverlays{"low"}}})
	if f, err := s.Lookup(ctx, "z"); err != nil || f[0].ID != catalog.NewFeatureID("z", 0) || s.Info().Features != 3 {
		t.Fatal(f, err, s.Info())
	}
	if o, err := s.Overlay(ctx, "low"); err != nil || o.Merged != 5 {
		t.Fatal(o, err)
	}
	wantConflict(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "low",
		c, 9, "y", "z")}}}, "a layer of an overlay merged since")
	if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 5,
		Ops: []commit.Operation{commit.DropOverlays{"low"}}}); err == nil {
		t.Fatal("a merged overlay with layers was dropped")
	}
	s = mustCommit(t, tab, commit.Change{Base: 5, Ops: []commit.Operation{commit.DropOverlays{"high"}}})
	if left, err := s.Overlays(ctx); err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	// Its number is not given again.
	s = mustCommit(t, tab, commit.Change{Base: 6, Ops: []commit.Operation{commit.DefineOverlays{overlay("high", "y")}}})
	if o, err := s.Overlay(ctx, "high"); err != nil || o.Number != 2 {
		t.Fatal(o, err)
	}
	if layers, err = s.OverlaySegments(ctx, []catalog.Overlay{{Name: "high", Number: 2}}, b); err != nil ||
		layers[0][0] != nil {
		t.Fatal("a new overlay has the layers of one dropped", layers, err)
	}
	wantConflict(t, tab, commit.Change{Base: 6, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "high",
		b, 9, "y")}}}, "a layer of an overlay dropped and defined anew")
	// One that says something else than what lies below of segments that it has no layer of cannot become part of the
	// table.
	for _, m := range []catalog.MissingPolicy{catalog.Null, catalog.Refuse} {
		o := overlay("strict", "y")
		o.MissingLayers = m
		if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 7,
			Ops: []commit.Operation{commit.DefineOverlays{o}, commit.MergeOverlays{"strict"}}}); err == nil ||
			!strings.Contains(err.Error(), m.String()) {
			t.Errorf("an overlay with %v of segments without a layer was merged: %v", m, err)
		}
	}
	// Types and ids are held to the schema's.
	wrong := overlay("w", "y")
	wrong.Features[0].Type = vector.Type{Kind: vector.String}
	other := overlay("w", "y")
	other.Features[0].ID++
	for _, o := range []catalog.Overlay{wrong, other, overlay("a@b", "y"), overlay("n")} {
		if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 7,
			Ops: []commit.Operation{commit.DefineOverlays{o}}}); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	short := layer(t, tab, "high", b, 9, "y")
	short.Data.Rows--
	if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 7,
		Ops: []commit.Operation{commit.SetOverlaySegments{short}}}); err == nil {
		t.Error("a layer of other rows is accepted")
	}
	verifyClean(t, tab.s)
}

// TestLayerOfOtherStripes: what commits do not look for, a deep verify finds.
func TestLayerOfOtherStripes(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{7, 3}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{a}}})
	other := writeSegment(t, tab, nil, []uint32{3, 7}, 1, segment.Options{}, "y")
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "y")},
		commit.SetOverlaySegments{{Overlay: "o", Segment: a.ID, Data: other, All: true}}}})
	for _, deep := range []bool{false, true} {
		if r, err := tab.s.Verify(ctx, "", deep, nil); err != nil || (r.DamageCount == 1) != deep {
			t.Errorf("deep %v: %+v %v", deep, r, err)
		}
	}
}

func TestSampleLists(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{50_000}, 1, segment.Options{}, "x")
	b := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{a, b}}})
	s := mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineLists{{Name: "clicks",
		Definition: "click = 1"}, {Name: "clicks2"}}, commit.SetListRows{{List: "clicks", Segment: a.ID,
		Rows: everySecond(t, tab.s, a,
			1)}, {List: "clicks", Segment: b.ID, Rows: rowSet(t, tab.s, b, 3)}, {
		List: "clicks2", Segment: b.ID, Rows: rowSet(t, tab.s, b, 4)}}}})
	got, err := s.ListedRows(ctx, "clicks", b, a)
	if err != nil || got[1].Count != 25_000 || fmt.Sprint(readRows(t, s, got[0])) != "[3]" ||
		readRows(t, s, got[1])[100] != 201 {
		t.Fatal(got, err)
	}
	if got, err := s.ListedRows(ctx, "clicks2", b, a); err != nil || fmt.Sprint(readRows(t, s, got[0])) != "[4]" ||
		!got[1].IsEmpty() {
		t.Fatal(got, err)
	}
	wantConflict(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.SetListRows{{List: "clicks",
		Segment: b.ID,
		Rows:    rowSet(t, tab.s, b, 5)}}}}, "rows of a list defined since")
	late := commit.Change{Base: 2, Ops: []commit.Operation{commit.SetListRows{{List: "clicks2", Segment: b.ID,
		Rows: rowSet(t, tab.s,
			b, 4, 5)}}}}
	mustCommit(t, tab, late)
	wantConflict(t, tab, late, "rows of a list set since")
	// of another segment
	mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.SetListRows{{List: "clicks2",
		Segment: a.ID,
		Rows:    rowSet(t, tab.s, a, 4, 5)}}}})
	s = mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.DropLists{"clicks"},
		commit.DefineLists{{Name: "clicks"}}, commit.SetListRows{{List: "clicks", Segment: b.ID, Rows: rowSet(t,
			tab.s, b, 5)}}}})
	if got, err := s.ListedRows(ctx, "clicks", b, a); err != nil || fmt.Sprint(readRows(t, s, got[0])) != "[5]" ||
		!got[1].IsEmpty() {
		t.Fatal(got, err)
	}
	if l, err := s.SampleList(ctx, "clicks"); err != nil || l.Added != 5 || l.Definition != "" {
		t.Fatal(l, err)
	}
	// A compaction that carries a list which was replaced meanwhile would bring the old rows back.
	c := writeSegment(t, tab, nil, []uint32{60}, 1, segment.Options{}, "x")
	compaction := commit.Change{Base: 4, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.RemoveSegments{a.ID}, commit.AddSegments{c}, commit.SetListRows{{List: "clicks", Segment: c.ID,
			Rows: rowSet(t, tab.s, c, 7)}}}}
	wantConflict(t, tab, compaction, "compaction and a list replaced")
	compaction.Base = 5
	mustCommit(t, tab, compaction)
	s = mustCommit(t, tab, commit.Change{Base: 6, Ops: []commit.Operation{commit.SetListRows{{List: "clicks",
		Segment: b.ID,
		Rows:    bitmap.Ref{}}}}})
	if got, err := s.ListedRows(ctx, "clicks", c, b); err != nil || got[0].Count != 1 || !got[1].IsEmpty() {
		t.Fatal(got, err)
	}
	// A compaction that has not seen that they were taken out would bring them back.
	d := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "x")
	compaction = commit.Change{Base: 6, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.RemoveSegments{b.ID}, commit.AddSegments{d}, commit.SetListRows{{List: "clicks", Segment: d.ID,
			Rows: rowSet(t, tab.s, d, 5)},
			{List: "clicks2", Segment: d.ID, Rows: rowSet(t, tab.s, d, 4, 5)}}}}
	wantConflict(t, tab, compaction, "compaction and rows taken out of a list")
	late = commit.Change{Base: 6, Ops: []commit.Operation{commit.SetListRows{{List: "clicks", Segment: b.ID,
		Rows: rowSet(t, tab.s, b, 5)}}}}
	wantConflict(t, tab, late, "rows of a list, taken out since")
	s = mustCommit(t, tab, commit.Change{Base: 7, Ops: []commit.Operation{commit.DropLists{"clicks"}}})
	if l, err := s.SampleLists(ctx); err != nil || len(l) != 1 || l[0].Name != "clicks2" {
		t.Fatal(l, err)
	}
	verifyClean(t, tab.s)
}

// newFeature returns a feature that a snapshot does not have, with the id that it gets.
func newFeature(t *testing.T, s *Snapshot, name string, of vector.Type) catalog.Feature {
	t.Helper()
	taken, err := s.FeatureIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := feature(name, of)
	f.ID, f.Generation = catalog.FreshID(name, taken)
	return f
}

func TestFeatureChanges(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	fs := features("x", "y", "k")
	fs[2].Role = catalog.RoleSessionKey
	a := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x", "y", "k")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(fs), commit.AddSegments{a}}})
	status := func(s catalog.FeatureStatus) *catalog.FeatureStatus { return &s }
	s := mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "x", Rename: "x2"},
		{Feature: "k", Rename: "key"}, {Feature: "y", Status: status(catalog.FeatureDeprecated)}}}})
	if f, err := s.Lookup(ctx, "x2", "y", "key"); err != nil || f[0].ID != fs[0].ID ||
		f[1].Status != catalog.FeatureDeprecated || f[2].ID != fs[2].ID {
		t.Fatal(f, err)
	}
	if k, err := s.KeyFeatures(ctx); err != nil || len(k) != 1 || k[0].Name != "key" {
		t.Fatal(k, err)
	}
	if f, err := s.Find(ctx, "x", "k"); err != nil || f[0] != nil || f[1] != nil {
		t.Fatal(f, err)
	}
	// A column of the old name, from a writer that has not heard, is not taken for the feature, nor for another.
	d := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x")
	wantConflict(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{d}}}, "a feature renamed since")
	x, fresh := newFeature(t, s, "x", int64Type), newFeature(t, s, "new", int64Type)
	if x.Generation != 1 || x.ID != catalog.NewFeatureID("x", 1) || fresh != feature("new", int64Type) {
		t.Fatal(x, fresh)
	}
	s = mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y",
		Status: status(catalog.FeatureDropped)}}}})
	if all, err := s.Features(ctx); err != nil || len(all) != 2 || s.Info().Features != 2 {
		t.Fatal(all, err, s.Info())
	}
	if all, err := s.AllFeatures(ctx); err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	wantConflict(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.AddFeatures(features("y"))}},
		"a feature dropped since")
	verifyClean(t, tab.s)
	// Taken back.
	s = mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y",
		Status: status(catalog.FeatureActive)}}}})
	if f, err := s.Lookup(ctx, "y"); err != nil || f[0] != fs[1] || s.Info().Features != 3 {
		t.Fatal(f, err)
	}
	// Dropped, and another of the name added.
	s = mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y",
		Status: status(catalog.FeatureDropped)}}}})
	y := newFeature(t, s, "y", vector.Type{Kind: vector.String})
	if y.Generation != 1 {
		t.Fatal(y)
	}
	s = mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures{y}}})
	if f, err := s.Lookup(ctx, "y"); err != nil || f[0].ID != catalog.NewFeatureID("y", 1) ||
		f[0].Type.Kind != vector.String || s.Info().Features != 3 {
		t.Fatal(f, err)
	}
	if k, err := s.NotedKeyFeatures(ctx); err != nil || k == nil || k.Of != 3 {
		t.Fatal("the keys' entry does not hold", k, err)
	}
	for _, bad := range []commit.FeatureChange{{Feature: "none", Rename: "z"}, {Feature: "x2", Rename: "key"},
		{Feature: "key", Status: status(catalog.FeatureDropped)}, {Feature: "x2"}} {
		if _, err := tab.Commit(ctx, commit.Change{Operation: "x",
			Ops: []commit.Operation{commit.ChangeFeatures{bad}}}); err == nil {
			t.Errorf("%+v is accepted", bad)
		} else {
			t.Log(err)
		}
	}
	verifyClean(t, tab.s)
}

// TestFeaturesByID: whatever names features have had since, overlays and dropped features are told by their ids.
func TestFeaturesByID(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x", "y")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x", "y")),
		commit.AddSegments{a}}})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "x", "z")},
		commit.SetOverlaySegments{layer(t, tab, "o", a, 3, "x", "z")}}})
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "x", Rename: "x2"}}}})
	s := mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.MergeOverlays{"o"}}})
	if f, err := s.Lookup(ctx, "x2", "z"); err != nil || f[0].ID != catalog.NewFeatureID("x", 0) ||
		f[1].ID != catalog.NewFeatureID("z", 0) || s.Info().Features != 3 {
		t.Fatal(f, err, s.Info())
	}
	if f, err := s.Find(ctx, "x"); err != nil || f[0] != nil {
		t.Fatal("the name before is another feature", f, err)
	}
	o, err := s.Overlay(ctx, "o")
	if err != nil || o.Merged != 4 || !slices.ContainsFunc(o.Features,
		func(f catalog.Feature) bool { return f.Name == "x2" && f.ID == catalog.NewFeatureID("x", 0) }) {
		t.Fatal(o, err)
	}
	verifyClean(t, tab.s)
	// A dropped feature does not come back, also when another has had its name since.
	dropped := catalog.FeatureDropped
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y", Status: &dropped}}}})
	late := func(what string) {
		t.Helper()
		wantConflict(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.AddFeatures(features("y"))}}, what)
		c := commit.Change{Operation: "test", Base: 5,
			Ops: []commit.Operation{commit.DefineOverlays{overlay("p", "y")}}}
		if _, err := tab.Commit(ctx, c); err == nil || strings.Contains(err.Error(), "same id") {
			t.Errorf("%s: an overlay of it: %v", what, err)
		}
	}
	late("a feature dropped since")
	byID := func(what string, want ...string) {
		t.Helper()
		s, err := tab.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.FeaturesByID(ctx, catalog.NewFeatureID("x", 0), catalog.NewFeatureID("y", 0),
			catalog.NewFeatureID("nobody", 0), catalog.NewFeatureID("z", 0))
		if err != nil || found[2] != nil {
			t.Fatal(what, found[2], err)
		}
		for i, f := range append(found[:2], found[3]) {
			if got := fmt.Sprint(f.Name, " ", f.Status); got != want[i] ||
				f.ID != catalog.NewFeatureID(string("xyz"[i]), 0) {
				t.Errorf("%s: %s, want %s", what, got, want[i])
			}
		}
	}
	byID("dropped", "x2 active", "y dropped", "z active")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "x2", Rename: "y"}}}})
	late("a feature dropped since, whose name another has")
	byID("its name is another's", "y active", "y dropped", "z active")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y", Rename: "w"}}}})
	late("a feature dropped since, whose name another had")
	byID("its name was another's", "w active", "y dropped", "z active")
	if s, err = tab.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	y := newFeature(t, s, "y", int64Type)
	if y.Generation != 1 {
		t.Fatal(y)
	}
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures{y}}})
}

// TestMergeOfDropped: an overlay with a feature that the table has dropped does not become part of it, however often
// that is tried.
func TestMergeOfDropped(t *testing.T) {
	tab := newTable(t, localStore(t))
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x", "y")),
		commit.AddSegments{writeSegment(t, tab, partition("p", "a"), []uint32{10}, 1, segment.Options{}, "x", "y")}}})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "y")}}})
	dropped := catalog.FeatureDropped
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y", Status: &dropped}}}})
	_, err := tab.Commit(t.Context(), commit.Change{Operation: "test", Base: 3,
		Ops: []commit.Operation{commit.MergeOverlays{"o"}}})
	if err == nil || errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "feature y, which was dropped") {
		t.Fatal(err)
	}
	verifyClean(t, tab.s)
}
