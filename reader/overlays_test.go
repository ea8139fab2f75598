package reader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/format/vector/vectortest"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// A world is a table in a store with overlays and branches, and what each of its snapshots has, as rows of values.
type world struct {
	t        *rapid.T
	store    *storage.Store
	table    *storage.Table
	features []catalog.Feature // "n" is the number of the row, "extra" is in overlays only
	segments []worldSegment
	now      worldState
	states   []worldState // of snapshots 1, 2, ...
}

type worldSegment struct {
	d      catalog.SegmentDescriptor
	first  int       // number of its first row
	rows   [][]value // [row][feature]
	gone   []bool
	stripe []uint32
}

// A worldState is what a snapshot has; what it refers to does not change.
type worldState struct {
	snap     *storage.Snapshot
	segments int
	overlays []worldOverlay // in the order of their numbers
	deleted  map[int]bool   // numbers of rows
	branches map[string]worldBranch
	lists    map[string]map[int]bool // numbers of rows
}

type worldOverlay struct {
	catalog.Overlay
	merged bool
	layers map[int]worldLayer // by segment
}

type worldLayer struct {
	rows    [][]value // nil: the feature is not there
	covered []bool
}

type worldBranch struct {
	snapshot int
	overlays []catalog.Pin
	list     map[int]bool // numbers of rows; nil: all
}

func newWorld(t *rapid.T) *world {
	ctx := context.Background()
	store, err := storage.Create(ctx, object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, now: worldState{deleted: map[int]bool{}, branches: map[string]worldBranch{},
		lists: map[string]map[int]bool{}}}
	if w.table, err = store.NewTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	add := func(name string, typ vector.Type) {
		w.features = append(w.features, catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name, Type: typ})
	}
	add("n", vector.Type{Kind: vector.Dense, Elem: vector.Int64})
	add("label", vector.Type{Kind: vector.Dense, Elem: vector.Int32})
	add("list", vector.Type{Kind: vector.Sparse, Elem: vector.Int64})
	add("weighted", vector.Type{Kind: vector.Weighted, Elem: vector.Int64, Score: vector.Float32})
	add("extra", vectortest.DrawType(t))
	return w
}

// write adds the files of features to a segment and finishes it. Some of what repeats is stored once.
func (w *world) write(s *segment.Writer, stripes []uint32, features []int,
	rows [][]value) catalog.SegmentDescriptor {
	ctx := context.Background()
	for i, f := range features {
		err := s.AddFeature(ctx, i, w.features[f], func(to *format.Writer) error {
			row := 0
			for _, n := range stripes {
				var slots []value
				var inverse []int32
				for r := range int(n) {
					v := rows[row+r][f]
					if k := len(slots) - 1; k >= 0 && equalValues(slots[k], v, w.features[f].Type) {
						inverse = append(inverse, int32(k))
						continue
					}
					inverse = append(inverse, int32(len(slots)))
					slots = append(slots, v)
				}
				row += int(n)
				if len(slots) == int(n) {
					inverse = nil
				}
				if err := to.WriteStripe(slotColumn(w.features[f].Type, slots, inverse, inverse != nil)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	d, err := s.Finish(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) drawRows(n int, features []int) [][]value {
	rows := make([][]value, n)
	for r := range rows {
		rows[r] = make([]value, len(w.features))
		for f := range rows[r] {
			rows[r][f].null = true
			switch {
			case !slices.Contains(features, f):
			case r > 0 && rapid.Bool().Draw(w.t, "as before"):
				rows[r][f] = rows[r-1][f]
			default:
				rows[r][f] = drawValue(w.t, w.features[f].Type)
			}
		}
	}
	return rows
}

// commit makes the change, and keeps what the snapshot has.
func (w *world) commit(c commit.Change) {
	if w.now.snap != nil {
		c.Base = w.now.snap.Info().Number
	}
	c.Operation = "test"
	snap, err := w.table.Commit(context.Background(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.now.snap = snap
	kept := w.now
	kept.overlays, kept.deleted = slices.Clone(kept.overlays), maps.Clone(kept.deleted)
	kept.branches = maps.Clone(kept.branches)
	kept.lists = maps.Clone(kept.lists)
	for i := range kept.overlays {
		kept.overlays[i].layers = maps.Clone(kept.overlays[i].layers)
	}
	w.states = append(w.states, kept)
}

func (w *world) ingest() {
	ctx := context.Background()
	var stripes []uint32
	total := 0
	for range rapid.IntRange(1, 3).Draw(w.t, "stripes") {
		stripes = append(stripes, uint32(rapid.IntRange(1, 6).Draw(w.t, "rows")))
		total += int(stripes[len(stripes)-1])
	}
	features := []int{0, 1}
	for f := 2; f < 4; f++ {
		if rapid.IntRange(0, 3).Draw(w.t, "stored") > 0 {
			features = append(features, f)
		}
	}
	first := 0
	if k := len(w.segments) - 1; k >= 0 {
		first = w.segments[k].first + len(w.segments[k].rows)
	}
	rows := w.drawRows(total, features)
	for r := range rows {
		rows[r][0] = value{numbers: []number64{{i: int64(first + r)}}}
	}
	day := catalog.PartitionValue{Key: "ds", Value: fmt.Sprintf("%04d", len(w.segments))}
	s, err := w.table.NewSegment(ctx, catalog.Partition{day}, stripes, segment.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	d := w.write(s, stripes, features, rows)
	w.segments = append(w.segments, worldSegment{d: d, first: first, rows: rows, gone: make([]bool, total),
		stripe: stripes})
	w.now.segments++
	c := commit.Change{Ops: []commit.Operation{commit.AddSegments{d}}}
	for _, f := range features {
		c.Set(append(commit.Op[commit.AddFeatures](&c), w.features[f]))
	}
	w.commit(c)
}

// layer draws a layer of an overlay over a segment.
func (w *world) layer(o *worldOverlay, i int) catalog.OverlaySegment {
	ctx := context.Background()
	g := &w.segments[i]
	var features []int
	for f, x := range w.features {
		if slices.ContainsFunc(o.Features, func(y catalog.Feature) bool { return x.ID == y.ID }) {
			features = append(features, f)
		}
	}
	rows := w.drawRows(len(g.rows), features)
	share := rapid.SampledFrom([]int{0, 3, 5, 7, 10}).Draw(w.t, "coverage")
	covered, set := make([]bool, len(rows)), roaring.New()
	for r := range covered {
		if covered[r] = rapid.IntRange(0, 9).Draw(w.t, "covered") < share; covered[r] {
			set.Add(uint32(r))
		}
	}
	s, err := w.table.NewOverlaySegment(ctx, g.d, segment.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	out := catalog.OverlaySegment{Overlay: o.Name, Segment: g.d.ID, Data: w.write(s, g.stripe, features, rows),
		All: share == 10 && rapid.Bool().Draw(w.t, "all")}
	if !out.All {
		if out.Covered, err = w.store.Bitmaps().Put(ctx, g.d.ID, g.d.Rows, set); err != nil {
			w.t.Fatal(err)
		}
	}
	o.layers[i] = worldLayer{rows: rows, covered: covered}
	return out
}

func (w *world) addOverlay() {
	positions := rapid.Permutation([]int{1, 2, 3, 4}).Draw(w.t, "features")[:rapid.IntRange(1, 4).Draw(w.t, "how many")]
	o := worldOverlay{layers: map[int]worldLayer{}}
	o.Name, o.Number = fmt.Sprint("o", len(w.now.overlays)), uint32(len(w.now.overlays))
	for _, f := range positions {
		o.Features = append(o.Features, w.features[f])
	}
	slices.SortFunc(o.Features, func(a, b catalog.Feature) int { return compareID(a, b.ID) })
	o.MissingRows = catalog.MissingPolicy(rapid.IntRange(0, 1).Draw(w.t, "missing rows"))
	o.MissingLayers = catalog.MissingPolicy(rapid.IntRange(0, 2).Draw(w.t, "missing"))
	c := commit.Change{Ops: []commit.Operation{commit.DefineOverlays{o.Overlay}}}
	for i := range w.now.segments {
		if rapid.IntRange(0, 3).Draw(w.t, "layer") > 0 {
			c.Set(append(commit.Op[commit.SetOverlaySegments](&c), w.layer(&o, i)))
		}
	}
	w.now.overlays = append(w.now.overlays, o)
	w.commit(c)
}

// step changes the table in some way.
func (w *world) step() {
	ctx := context.Background()
	switch rapid.IntRange(0, 7).Draw(w.t, "step") {
	case 0, 1:
		w.ingest()
	case 2, 3:
		w.addOverlay()
	case 4: // layers over segments that have none, or others
		if len(w.now.overlays) == 0 {
			return
		}
		o := &w.now.overlays[rapid.IntRange(0, len(w.now.overlays)-1).Draw(w.t, "overlay")]
		c := commit.Change{Ops: []commit.Operation{commit.SetOverlaySegments{w.layer(o,
			rapid.IntRange(0, w.now.segments-1).Draw(w.t, "segment"))}}}
		w.commit(c)
	case 5:
		for i := range w.now.overlays {
			if o := &w.now.overlays[i]; !o.merged && o.MissingLayers == catalog.FallThrough {
				o.merged = true
				w.commit(commit.Change{Ops: []commit.Operation{commit.MergeOverlays{o.Name}}})
				return
			}
		}
	case 6:
		i := rapid.IntRange(0, w.now.segments-1).Draw(w.t, "segment")
		r := rapid.IntRange(0, len(w.segments[i].rows)-1).Draw(w.t, "row")
		set, err := w.store.Bitmaps().Put(ctx, w.segments[i].d.ID, w.segments[i].d.Rows, roaring.BitmapOf(uint32(r)))
		if err != nil {
			w.t.Fatal(err)
		}
		w.now.deleted[w.segments[i].first+r] = true
		w.commit(commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: w.segments[i].d.ID, Rows: set}}}})
	case 7:
		w.branch()
	}
}

func (w *world) branch() {
	at := rapid.IntRange(0, len(w.states)-1).Draw(w.t, "of snapshot")
	b := worldBranch{snapshot: at}
	name := fmt.Sprint("b", len(w.now.branches))
	of := catalog.Branch{Name: name, Snapshot: uint64(at + 1)}
	for _, o := range w.drawNames(w.states[at]) {
		in := rapid.IntRange(at, len(w.states)-1).Draw(w.t, "as of")
		b.overlays = append(b.overlays, catalog.Pin{Name: o, Snapshot: uint64(in + 1)})
	}
	of.Overlays = b.overlays
	c := commit.Change{}
	if rapid.Bool().Draw(w.t, "list") {
		b.list = map[int]bool{}
		c.Set(commit.DefineLists{{Name: "l" + name}})
		for i := range w.states[at].segments {
			set := roaring.New()
			for r := range w.segments[i].rows {
				if rapid.Bool().Draw(w.t, "listed") {
					set.Add(uint32(r))
					b.list[w.segments[i].first+r] = true
				}
			}
			rows, err := w.store.Bitmaps().Put(context.Background(), w.segments[i].d.ID, w.segments[i].d.Rows, set)
			if err != nil {
				w.t.Fatal(err)
			}
			c.Set(append(commit.Op[commit.SetListRows](&c),
				commit.ListRows{List: "l" + name, Segment: w.segments[i].d.ID, Rows: rows}))
		}
		of.List = catalog.Pin{Name: "l" + name}
		w.now.lists["l"+name] = b.list
	}
	c.Set(commit.SetBranches{of})
	w.now.branches[name] = b
	w.commit(c)
}

func (w *world) drawNames(s worldState) []string {
	var names []string
	for _, o := range s.overlays {
		names = append(names, o.Name)
	}
	names = rapid.Permutation(names).Draw(w.t, "overlays")
	if rapid.Bool().Draw(w.t, "all overlays") {
		return names
	}
	return names[:rapid.IntRange(0, len(names)).Draw(w.t, "overlays named")]
}

// errRefused: an overlay refuses to be read somewhere.
var errRefused = errors.New("refused")

// rows returns what there is to be read of the features, row by row with "n" first, under overlays given from the
// lowest up.
func (w *world) rows(s worldState, features []int, stack []worldOverlay, list map[int]bool,
	keep func(row []value) bool) ([][]value, error) {
	var out [][]value
	for i := range s.segments {
		g := &w.segments[i]
		some := false
		for r := range g.rows {
			n := g.first + r
			if s.deleted[n] || list != nil && !list[n] {
				continue
			}
			row := slices.Clone(g.rows[r])
			for _, o := range stack {
				l, ok := o.layers[i]
				for f, x := range w.features {
					switch {
					case !slices.ContainsFunc(o.Features, func(y catalog.Feature) bool { return x.ID == y.ID }):
					case ok && l.covered[r]:
						row[f] = l.rows[r][f]
					case ok && o.MissingRows == catalog.Null, !ok && o.MissingLayers == catalog.Null:
						row[f] = value{null: true}
					}
				}
			}
			if keep == nil || keep(row) {
				out = append(out, row)
				some = true
			}
		}
		if !some {
			continue
		}
		for _, f := range features {
			for _, o := range slices.Backward(stack) {
				if !slices.ContainsFunc(o.Features, func(y catalog.Feature) bool { return w.features[f].ID == y.ID }) {
					continue
				}
				l, ok := o.layers[i]
				if !ok && o.MissingLayers == catalog.Refuse {
					return nil, errRefused
				}
				if !ok && o.MissingLayers == catalog.Null || ok &&
					(o.MissingRows == catalog.Null || !slices.Contains(l.covered, false)) {
					break
				}
			}
		}
	}
	return out, nil
}

// overlay returns an overlay as it was in a snapshot.
func (w *world) overlay(pin catalog.Pin) worldOverlay {
	all := w.states[pin.Snapshot-1].overlays
	return all[slices.IndexFunc(all, func(o worldOverlay) bool { return o.Name == pin.Name })]
}

// read reads a snapshot or branch in some way, and compares.
func (w *world) read() {
	ctx := context.Background()
	t := w.t
	at := rapid.IntRange(0, len(w.states)-1).Draw(t, "snapshot")
	ref := "t"
	view := &storage.View{Snapshot: w.states[at].snap}
	var pins []catalog.Pin
	var list map[int]bool
	if names := slices.Sorted(maps.Keys(w.now.branches)); len(names) > 0 && rapid.Bool().Draw(t, "branch") {
		name := rapid.SampledFrom(names).Draw(t, "name")
		b := w.now.branches[name]
		at, pins, list = b.snapshot, b.overlays, b.list
		ref = "t@" + name
		var err error
		if view, err = w.store.Open(ctx, ref); err != nil {
			t.Fatal(err)
		}
	}
	s := w.states[at]
	opts := PlanOptions{BatchSize: rapid.IntRange(1, 9).Draw(t, "batch"), Dedup: drawDedup(t)}
	if names := slices.Sorted(maps.Keys(s.lists)); len(names) > 0 && rapid.Bool().Draw(t, "listed") {
		opts.SampleList = rapid.SampledFrom(names).Draw(t, "list")
		both := map[int]bool{}
		for n := range s.lists[opts.SampleList] {
			both[n] = list == nil || list[n]
		}
		list = both
	}
	for _, name := range w.drawNames(s) {
		if !slices.ContainsFunc(pins, func(p catalog.Pin) bool { return p.Name == name }) {
			opts.Overlays = append(opts.Overlays, name)
			pins = append(pins, catalog.Pin{Name: name, Snapshot: uint64(at + 1)})
		}
	}
	var stack, named []worldOverlay
	for _, o := range s.overlays {
		if o.merged {
			stack = append(stack, o)
		}
	}
	added := false // some named or merged overlay has "extra"
	for _, p := range pins {
		named = append(named, w.overlay(p))
	}
	stack = append(stack, named...)
	for _, o := range stack {
		added = added || slices.ContainsFunc(o.Features, func(f catalog.Feature) bool { return f.Name == "extra" })
	}
	features := []int{0}
	for f := 1; f < len(w.features); f++ {
		known := f == 1 || f == 4 && added
		for i := range s.segments {
			known = known || f < 4 && slices.ContainsFunc(w.segments[i].rows,
				func(r []value) bool { return !r[f].null })
		}
		if known && rapid.IntRange(0, 2).Draw(t, "projected") > 0 {
			features = append(features, f)
		}
	}
	for _, f := range features {
		opts.Features = append(opts.Features, w.features[f].Name)
	}
	var keep func([]value) bool
	if _, err := w.rows(s, features, stack, list, nil); err == nil && slices.Contains(features, 1) &&
		rapid.Bool().Draw(t, "filtered") {
		opts.Filter = rapid.SampledFrom([]string{"label > 0", "label IS NULL", "NOT label > 0"}).Draw(t, "filter")
		keep = func(row []value) bool {
			v := row[1]
			switch opts.Filter {
			case "label > 0":
				return !v.null && v.numbers[0].i > 0
			case "label IS NULL":
				return v.null
			}
			return !v.null && v.numbers[0].i <= 0
		}
	}
	want, wantErr := w.rows(s, features, stack, list, keep)
	what := fmt.Sprintf("%s snapshot %d, overlays %v, features %v, filter %q, list %q", ref, at+1, pins, opts.Features,
		opts.Filter, opts.SampleList)
	plan, err := NewViewPlan(ctx, view, opts)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	travelled := new(Plan)
	if err := json.Unmarshal(text, travelled); err != nil || travelled.Hash() != plan.Hash() {
		t.Fatalf("%s: %s: %v", what, text, err)
	}
	sc, err := OpenPlan(ctx, w.store, travelled, drawOptions(t))
	if wantErr != nil {
		if err == nil || !strings.Contains(err.Error(), "refuses to be read there") {
			t.Fatalf("%s: %v, want a refusal", what, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer sc.Close()
	check := func(b *Batch, rows []int) {
		for i, f := range features {
			for r, at := range rows {
				if got := columnValue(b.Columns[i], r); !equalValues(got, want[at][f], w.features[f].Type) {
					t.Fatalf("%s: row %d, feature %s: %+v, want %+v", what, at, w.features[f].Name, got, want[at][f])
				}
			}
		}
	}
	got := 0
	for {
		b, err := sc.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got+b.Rows > len(want) {
			t.Fatalf("%s: more than %d rows", what, len(want))
		}
		check(b, indices(got + b.Rows)[got:])
		got += b.Rows
		b.Release()
	}
	if got != len(want) || sc.Rows() != uint64(len(want)) {
		t.Fatalf("%s: %d rows, want %d", what, got, len(want))
	}
	if plan.Dedup != DedupKJT || len(want) == 0 {
		return
	}
	l, err := NewLayoutWith(ctx, view.Snapshot, plan, LayoutOptions{View: view})
	if err != nil {
		t.Fatal(err)
	}
	taker, err := l.Taker(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer taker.Close()
	for range 3 { // in the end stripes are kept
		positions := rapid.SliceOfN(rapid.IntRange(0, len(want)-1), 1, 9).Draw(t, "positions")
		rows := make([]uint64, len(positions))
		for i, p := range positions {
			rows[i] = uint64(p)
		}
		b, err := taker.Take(ctx, rows)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		check(b, positions)
		b.Release()
	}
}

// What is read of a table under overlays is what a model has that puts them over the rows one by one: whichever
// overlays are named, merged or a branch's, whatever they cover, and with segments that came after them.
func TestOverlaysInAStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.store.Close()
		w.ingest()
		for range rapid.IntRange(1, 9).Draw(t, "steps") {
			w.step()
			w.read()
		}
		w.read()
	})
}
