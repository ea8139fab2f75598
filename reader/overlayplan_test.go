package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/segment"
)

// define commits overlays without layers.
func define(t *testing.T, snap *storage.Snapshot, overlays ...catalog.Overlay) *storage.Snapshot {
	t.Helper()
	for i := range overlays {
		slices.SortFunc(overlays[i].Features, func(a, b catalog.Feature) int { return compareID(a, b.ID) })
	}
	after, err := snap.Table().Commit(t.Context(), commit.Change{Operation: "overlay", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DefineOverlays(overlays)}})
	if err != nil {
		t.Fatal(err)
	}
	return after
}

func denseFeature(name string, e vector.Elem) catalog.Feature {
	return catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name,
		Type: vector.Type{Kind: vector.Dense, Elem: e}}
}

// What a plan has under overlays: their features by name, by glob and as keys, with types that hold what lies below
// too.
func TestOverlayFeatures(t *testing.T) {
	ctx := t.Context()
	_, snap := realStore(t)
	late, err := snap.Lookup(ctx, "late")
	if err != nil {
		t.Fatal(err)
	}
	wide := late[0] // float64 in the table
	wide.Type.Elem = vector.Float32
	n, err := snap.Lookup(ctx, "n")
	if err != nil {
		t.Fatal(err)
	}
	narrow := n[0] // int64 in the table
	narrow.Type.Elem = vector.Int8
	user := denseFeature("user", vector.Int64)
	user.Role = catalog.RoleUserKey
	snap = define(t, snap,
		catalog.Overlay{Name: "a", Features: []catalog.Feature{wide, denseFeature("lately", vector.Int8), user}},
		catalog.Overlay{Name: "b", Features: []catalog.Feature{narrow, denseFeature("lately", vector.Int16)}})
	for _, c := range []struct {
		overlays, features []string
		want               string
	}{
		{nil, []string{"l*"}, "late float64"},
		{[]string{"a"}, []string{"l*"}, "late float64, lately int8"},
		{[]string{"b", "a"}, []string{"lately", "n"}, "lately int16, n int64"},
		{[]string{"b"}, []string{"@all"}, "late float64, lately int16, n int64, ds string"},
		{[]string{"a"}, []string{"@keys"}, "user int64"},
	} {
		plan, err := NewPlan(ctx, snap, PlanOptions{Features: c.features, Overlays: c.overlays})
		if err != nil {
			t.Errorf("%v under %v: %v", c.features, c.overlays, err)
			continue
		}
		var got []string
		for _, f := range plan.Features {
			got = append(got, fmt.Sprint(f.Name, " ", f.Type))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%v under %v: %s, want %s", c.features, c.overlays, s, c.want)
		}
		if _, err := NewLayout(ctx, snap, plan); err != nil {
			t.Errorf("%v under %v: %v", c.features, c.overlays, err)
		}
	}
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, Overlays: []string{"b", "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := plan.String(); !strings.Contains(text, "overlay    a\noverlay    b\n") {
		t.Errorf("the plan is printed as\n%s", text)
	}
	for _, c := range []struct {
		overlays []string
		feature  string
		want     string
	}{
		{[]string{"c"}, "n", `overlay "c": not found`},
		{[]string{"a", "a"}, "n", "overlay a is named twice"},
		{[]string{"a"}, "latel", `did you mean "late" or "lately"?`},
		{nil, "lately", `overlay "a" has it`},
	} {
		if _, err := NewPlan(ctx, snap, PlanOptions{Features: []string{c.feature}, Overlays: c.overlays}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s under %v: %v, want %s", c.feature, c.overlays, err, c.want)
		}
	}
	// A plan of a snapshot that has not the overlay.
	plan.Overlays[0].Snapshot = 1
	if _, err := NewLayout(ctx, snap, plan); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an overlay of a snapshot that has none: %v", err)
	}
}

// Features are told by their ids: what the table has renamed or dropped since the overlay was made.
func TestOverlayOfRenamedFeatures(t *testing.T) {
	ctx := t.Context()
	_, snap := realStore(t)
	n, err := snap.Lookup(ctx, "n", "late")
	if err != nil {
		t.Fatal(err)
	}
	n[0].Type.Elem = vector.Uint8
	snap = define(t, snap, catalog.Overlay{Name: "o", Features: n},
		catalog.Overlay{Name: "x", Features: []catalog.Feature{denseFeature("x", vector.Int8)}})
	change := func(changes ...commit.FeatureChange) {
		var err error
		snap, err = snap.Table().Commit(ctx, commit.Change{Operation: "rename",
			Ops: []commit.Operation{commit.ChangeFeatures(changes)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	dropped := catalog.FeatureDropped
	change(commit.FeatureChange{Feature: "n", Rename: "m"}, commit.FeatureChange{Feature: "late", Status: &dropped})
	all := func(overlays ...string) string {
		plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"@all"}, Overlays: overlays})
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, f := range plan.Features {
			out = append(out, f.Name)
		}
		return strings.Join(out, " ")
	}
	if got := all("o"); got != "m ds" {
		t.Errorf("features %s", got)
	}
	change(commit.FeatureChange{Feature: "m", Rename: "x"})
	if got := all("o"); got != "x ds" {
		t.Errorf("features %s", got)
	}
	if got := all("x"); !strings.Contains(got, "overlay x adds feature x, and the table has another of that name") {
		t.Errorf("two features of one name: %s", got)
	}
}

// stripesUnder returns the table of sessionsOfStripes with one overlay over its feature: over segment 0 a layer with
// all rows, over segment 1 one with those of which covers says so, over segment 2 a layer that covers none, and none
// over segment 3. What it holds is the number of the row, below 0.
func stripesUnder(t *testing.T, covers func(row uint32) bool) *testTable {
	table := sessionsOfStripes(t)
	o := &table.overlays
	o.defined = []catalog.Overlay{{Name: "o", Features: table.features}}
	o.covers = map[*catalog.OverlaySegment]*roaring.Bitmap{}
	for i := range 4 {
		if i == 3 {
			o.layers = append(o.layers, []*catalog.OverlaySegment{nil})
			continue
		}
		name := fmt.Sprint("layer", i)
		var file strings.Builder
		w, err := format.NewWriter(&file, table.features[0].Type, format.WriterOptions{Feature: 1, Name: "row"})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			c := vector.NewColumn(table.features[0].Type)
			for r := range 10 {
				c.Ints = append(c.Ints, -int64(30*i+10*k+r))
				c.AddSlot()
			}
			if err := w.WriteStripe(c); err != nil {
				t.Fatal(err)
			}
		}
		meta, _, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		table.blobs.objects[name] = []byte(file.String())
		l := &catalog.OverlaySegment{Overlay: "o", Segment: table.segments[i].ID,
			Data: catalog.SegmentDescriptor{ID: name, Rows: 30, Index: name + "/index"}, All: i == 0}
		table.indexes[name] = &testIndex{stripeRows: []uint32{10, 10, 10},
			entries: map[catalog.FeatureID]*segment.Entry{
				1: {Object: name, Length: uint64(file.Len()), ObjectSize: uint64(file.Len()), Meta: meta},
			}}
		covered := roaring.New()
		for r := range uint32(30) {
			if i == 1 && covers(r) {
				covered.Add(r)
			}
			if i == 0 || covered.Contains(r) {
				table.rows[30*i+int(r)][0].numbers = []number64{{i: -int64(30*i + int(r))}}
			}
		}
		l.Covered = bitmap.Ref{Count: covered.GetCardinality()}
		o.covers[l] = covered
		o.layers = append(o.layers, []*catalog.OverlaySegment{l})
	}
	return table
}

// objectsRead returns the objects that were read since, each once.
func (m *memoryBlobs) objectsRead(since int) []string {
	var out []string
	for _, r := range m.reads[since:] {
		out = append(out, r.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Of what is hidden nothing is read: not the segment under a layer with all rows, not a layer without a row of a
// stripe, nor what lies under one that has the whole stripe.
func TestOverlaysReadWhatIsSeen(t *testing.T) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		covers func(uint32) bool
		want   []string
	}{
		"a part": {func(r uint32) bool { return r%2 == 0 },
			[]string{"layer0", "layer1", "seg1", "seg2", "seg3"}},
		"none":          {func(uint32) bool { return false }, []string{"layer0", "seg1", "seg2", "seg3"}},
		"all":           {func(uint32) bool { return true }, []string{"layer0", "layer1", "seg2", "seg3"}},
		"whole stripes": {func(r uint32) bool { return r < 10 }, []string{"layer0", "layer1", "seg1", "seg2", "seg3"}},
	} {
		table := stripesUnder(t, c.covers)
		l := table.layout([]int{0}, 7, OutputColumns)
		since, opens := len(table.blobs.reads), table.opens.Load()
		s := open(t, l, Options{})
		row := 0
		for row < 120 {
			b, err := s.Next(ctx)
			if err != nil {
				t.Fatal(name, err)
			}
			checkBatch(t, table, []int{0}, b, row)
			row += b.Rows
			b.Release()
		}
		if got := table.blobs.objectsRead(since); !slices.Equal(got, c.want) {
			t.Errorf("%s: read %v, want %v", name, got, c.want)
		}
		stats := s.Stats()
		s.Close()
		cost, err := l.Cost(ctx, Options{})
		if err != nil || cost.BytesNeeded != stats.BytesNeeded || cost.BytesUnneeded != stats.BytesUnneeded ||
			cost.Requests != stats.Requests {
			t.Errorf("%s: cost %+v of %+v: %v", name, cost, stats, err)
		}
		if name == "whole stripes" { // a stripe of the layer, two of the segment under it
			one := table.indexes["seg1"].entries[1].Meta.Stripes
			layer := table.indexes["layer1"].entries[1].Meta.Stripes
			want := one[1].Length + one[2].Length + layer[0].Length
			for _, e := range []string{"layer0", "seg2", "seg3"} {
				for _, s := range table.indexes[e].entries[1].Meta.Stripes {
					want += s.Length
				}
			}
			if stats.BytesNeeded != want || stats.BytesUnneeded != 0 {
				t.Errorf("%s: %d bytes needed and %d over, want %d", name, stats.BytesNeeded, stats.BytesUnneeded, want)
			}
		}
		// The index of segment 3 and of those under layers, and of layers that have rows.
		want := int64(4 + 1)
		if slices.Contains(c.want, "layer1") {
			want++
		}
		if got := table.opens.Load() - opens; got != 2*want { // Cost has opened them too
			t.Errorf("%s: %d indexes opened, want %d", name, got, 2*want)
		}
	}
}

// Statistics are those of what is seen.
func TestOverlaysPrune(t *testing.T) {
	ctx := t.Context()
	for text, want := range map[string]Pruning{
		// Segment 0 is below 0 or 0, 1 is mixed, 2 and 3 are above.
		"row < -100": {Segments: 4, SegmentsNever: 4, Rows: 120},
		"row < 30": {Segments: 4, SegmentsNever: 2, SegmentsAlways: 1, StripesEvaluated: 1, StripesAlways: 0,
			StripesNever: 2, Rows: 120, RowsSelected: 35, Requests: 2},
		// Of segment 1 only the first stripe is merged.
		"row < -31": {Segments: 4, SegmentsNever: 3, StripesEvaluated: 1, StripesNever: 2, Rows: 120,
			RowsSelected: 4, Requests: 2},
		"row IS NOT NULL": {Segments: 4, SegmentsAlways: 4, Rows: 120, RowsSelected: 120},
		"row BETWEEN 40 AND 49": {Segments: 4, SegmentsNever: 3, StripesAlways: 1, StripesNever: 2, Rows: 120,
			RowsSelected: 10},
	} {
		table := stripesUnder(t, func(r uint32) bool { return r < 10 && r%2 == 0 })
		f, features := table.parse(t, text)
		l := table.layout([]int{0}, 4, OutputColumns)
		if err := l.filter(ctx, f, features, LayoutOptions{Selections: NewSelections(1 << 20)}); err != nil {
			t.Fatal(err)
		}
		got := *l.Pruning()
		got.Seconds, got.BytesNeeded, got.BytesUnneeded = 0, 0, 0
		if got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// What a filter selects is kept by what lies over a segment, too.
func TestSelectionsOfOverlays(t *testing.T) {
	kept := NewSelections(1 << 20)
	some := func(r uint32) bool { return r%2 == 0 }
	for i, c := range []struct {
		covers func(uint32) bool
		since  uint64
		want   uint64 // rows of segments 0 and 1 that are below 0
		kept   uint64
	}{
		{some, 1, 29 + 15, 0}, {some, 1, 29 + 15, 2},
		{func(uint32) bool { return true }, 2, 29 + 30, 1}, // the layer over segment 1 was replaced
	} {
		table := stripesUnder(t, c.covers)
		table.overlays.layers[1][0].Since = c.since
		f, features := table.parse(t, "row < 0 OR row = 999")
		l := table.layout([]int{0}, 4, OutputColumns)
		if err := l.filter(context.Background(), f, features, LayoutOptions{Selections: kept}); err != nil {
			t.Fatal(err)
		}
		if p := l.Pruning(); l.Rows() != c.want || p.SegmentsKept < c.kept {
			t.Errorf("%d: %d rows, want %d: %+v", i, l.Rows(), c.want, p)
		}
	}
}

// A layer whose stripes are not those of its segment is damage.
func TestLayerOfOtherStripes(t *testing.T) {
	table := stripesUnder(t, func(r uint32) bool { return r == 0 })
	table.indexes["layer1"].stripeRows = []uint32{10, 11, 9}
	s := open(t, table.layout([]int{0}, 4, OutputColumns), Options{})
	defer s.Close()
	var err error
	for err == nil {
		var b *Batch
		if b, err = s.Next(t.Context()); err == nil {
			b.Release()
		}
	}
	var corrupt *format.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Object != "layer1/index" ||
		!strings.Contains(corrupt.Reason, "the stripes of a layer of overlay o are not those of segment seg1") {
		t.Errorf("%v", err)
	}
}
