package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// overlaid puts an overlay over all rows of a table, in which "click" is 7 and "more" is a tenth of the row, makes it
// part of a branch, and then deletes the overlay from the table.
func overlaid(t *testing.T, at map[string]any) {
	t.Helper()
	ctx := t.Context()
	blobs, err := object.Open(at["uri"].(string))
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.Table(ctx, at["table"].(string))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	more := catalog.Feature{Name: "more", ID: catalog.NewFeatureID("more", 0), Type: vector.Type{Kind: vector.Dense,
		Elem: vector.Float64}}
	click, err := snap.Lookup(ctx, "click")
	if err != nil {
		t.Fatal(err)
	}
	features := []catalog.Feature{click[0], more}
	if more.ID < click[0].ID {
		features = []catalog.Feature{more, click[0]}
	}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := commit.Change{Operation: "overlay", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DefineOverlays{{Name: "o", Features: features}}}}
	for _, d := range segments {
		g, err := snap.OpenSegment(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		w, err := table.NewOverlaySegment(ctx, d, segment.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range features {
			err := w.AddFeature(ctx, i, f, func(to *format.Writer) error {
				row := 0
				for _, n := range g.StripeRows() {
					c := vector.NewColumn(f.Type)
					for range n {
						if f.Name == "click" {
							c.Ints = append(c.Ints, 7)
						} else {
							c.Doubles = append(c.Doubles, float64(row)/10)
						}
						c.AddSlot()
						row++
					}
					if err := to.WriteStripe(c); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		data, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.Set(append(commit.Op[commit.SetOverlaySegments](&c),
			catalog.OverlaySegment{Overlay: "o", Segment: d.ID, Data: data, All: true}))
	}
	if snap, err = table.Commit(ctx, c); err != nil {
		t.Fatal(err)
	}
	number := snap.Info().Number
	if snap, err = table.Commit(ctx, commit.Change{Operation: "branch", Base: number,
		Ops: []commit.Operation{commit.SetBranches{
			{Name: "exp", Snapshot: number, Overlays: []catalog.Pin{{Name: "o", Snapshot: number}}},
		}}}); err != nil {
		t.Fatal(err)
	}
	if _, err = table.Commit(ctx, commit.Change{Operation: "drop", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DropOverlays{"o"}}}); err != nil {
		t.Fatal(err)
	}
}

// Overlays are named, or a branch's; what a branch read when it was opened is in the reference that stands for it.
func TestOverlaysAndBranches(t *testing.T) {
	e := newEngine(t)
	at := ingested(t, e, 100)
	defer closeTakers(e)
	overlaid(t, at)
	answer := must[tableAnswer](t, e, "table", with(at, "branch", "exp"))
	if answer.Ref == nil || answer.Ref.Table != "ads" || answer.Ref.Branch != "exp" || answer.Ref.Snapshot != 2 ||
		answer.Number != 2 ||
		len(answer.Ref.Overlays) != 1 || answer.Ref.Overlays[0] != (pin{"o", 2}) || answer.Ref.List != nil {
		t.Fatalf("%+v", answer)
	}
	named := must[tableAnswer](t, e, "table", with(at, "table", "ads@exp"))
	if fmt.Sprintf("%+v", *named.Ref) != fmt.Sprintf("%+v", *answer.Ref) {
		t.Errorf("by its name %+v, want %+v", named.Ref, answer.Ref)
	}
	if plain := must[tableAnswer](t, e, "table", at); plain.Ref != nil || plain.Number != 4 {
		t.Errorf("the table itself: %+v", plain)
	}
	text, err := json.Marshal(answer.Ref)
	if err != nil {
		t.Fatal(err)
	}
	branch := map[string]any{}
	if err := json.Unmarshal(text, &branch); err != nil {
		t.Fatal(err)
	}
	two := with(at, "snapshot", 2)
	for what, ref := range map[string]map[string]any{"the branch": branch, "the overlay": with(two, "overlay",
		[]string{"o"})} {
		got := must[[]featureInfo](t, e, "features", with(ref, "features", []string{"more", "click"}))
		if len(got) != 2 || got[0].Elem != "float64" || got[1].Elem != "int32" {
			t.Errorf("%s: features %+v", what, got)
		}
		plan := must[planAnswer](t, e, "plan", with(ref, "features", []string{"click", "more"}, "filter",
			"more >= 9.5"))
		if plan.Rows != 5 || !strings.Contains(plan.Plan, `"overlays":[{"name":"o","snapshot":2}]`) {
			t.Errorf("%s: %d rows of %s", what, plan.Rows, plan.Plan)
		}
		r := e.TakeRecords(must[int64](t, e, "take", with(ref, "features", []string{"more", "click"}, "rows",
			encoded(20, 3))))
		if !r.Next() {
			t.Fatal(r.Err())
		}
		if got := r.RecordBatch(); got.Column(0).ValueStr(0) != "2" || got.Column(0).ValueStr(1) != "0.3" ||
			got.Column(1).ValueStr(1) != "7" {
			t.Errorf("%s: took %v", what, got)
		}
		r.Release()
	}
	for what, c := range map[string]struct {
		method string
		params map[string]any
		kind   string
		says   string
	}{
		"no branch":         {"table", with(at, "branch", "ex"), "not_found", `did you mean "exp"?`},
		"no branch by name": {"table", with(at, "table", "ads@ex"), "not_found", `did you mean "exp"?`},
		"two versions":      {"table", with(at, "branch", "exp", "snapshot", 2), "usage", "want one or the other"},
		"no overlay": {"plan", with(two, "features", []string{"click"}, "overlay", []string{"p"}), "not_found",
			`overlay "p"`},
		"an overlay that was": {"plan", with(at, "features", []string{"click"}, "overlay", []string{"o"}), "not_found",
			`overlay "o"`},
		"its feature alone": {"plan", with(two, "features", []string{"more"}), "not_found",
			`overlay "o" has it, which is not read here; add overlay="o"`},
		"its feature among features": {"features", with(two, "features", []string{"more"}), "not_found",
			`; add overlay="o"`},
	} {
		request, err := json.Marshal(map[string]any{"method": c.method, "params": c.params})
		if err != nil {
			t.Fatal(err)
		}
		if w := fails(t, e, string(request)); w.Kind != c.kind || !strings.Contains(w.Message, c.says) {
			t.Errorf("%s: %+v, want %s: %s", what, w, c.kind, c.says)
		}
	}
}

// Of a branch with a sample list its rows are counted, without those that were deleted; of a table those of its
// snapshot.
func TestRowsOfABranch(t *testing.T) {
	ctx := t.Context()
	e := newEngine(t)
	at := ingested(t, e, 100)
	must[map[string]any](t, e, "delete", with(at, "filter", "session_id = 1"))
	must[map[string]any](t, e, "samples_create", with(at, "name", "some", "filter", "click = 1"))
	must[map[string]any](t, e, "delete", with(at, "filter", "session_id = 2"))
	blobs, err := object.Open(at["uri"].(string))
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.Table(ctx, "ads")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(ctx, commit.Change{Operation: "branch", Base: 4,
		Ops: []commit.Operation{commit.SetBranches{
			{Name: "exp", Snapshot: 4, List: catalog.Pin{Name: "some", Snapshot: 3}}, {Name: "all", Snapshot: 1},
		}}}); err != nil {
		t.Fatal(err)
	}
	want := must[planAnswer](t, e, "plan", with(at, "snapshot", 4, "features", []string{"click"}, "filter",
		"click = 1")).Rows
	if want == 0 || want >= 100 {
		t.Fatal(want)
	}
	for branch, rows := range map[string]uint64{"exp": want, "all": 100} {
		ref := must[tableAnswer](t, e, "table", with(at, "branch", branch)).Ref
		if got := must[uint64](t, e, "rows", ref); got != rows {
			t.Errorf("branch %s: %d rows, want %d", branch, got, rows)
		}
	}
	if info, got := must[tableAnswer](t, e, "table", at), must[uint64](t, e, "rows", at); got != info.Rows ||
		got >= 100 {
		t.Errorf("the table: %d rows, want %d", got, info.Rows)
	}
}
