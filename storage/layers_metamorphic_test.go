package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// The model of what lies over a table: plain maps, copied from snapshot to snapshot.
type (
	layeredTable struct {
		segments []layeredSegment // in the canonical order
		overlays map[string]modelOverlay
		lists    map[string]int // by name: the snapshot that defined it
		branches map[string]modelBranch
		oldest   int
		overlaid int // how many overlays there ever were
	}
	layeredSegment struct {
		id      string
		rows    uint32
		deleted modelSet
		layers  map[string]modelLayer // by overlay
		listed  map[string]modelSet   // by list
	}
	modelSet struct {
		rows  map[uint32]bool
		since int
	}
	modelLayer struct {
		data  string
		all   bool
		cover modelSet
		since int
	}
	modelOverlay struct{ number, added, merged int }
	modelBranch  struct {
		snapshot, added int
		overlays        []string
		list            string
	}
)

func (t layeredTable) clone() layeredTable {
	t.segments = slices.Clone(t.segments)
	for i := range t.segments {
		s := &t.segments[i]
		s.layers, s.listed = maps.Clone(s.layers), maps.Clone(s.listed)
	}
	t.overlays, t.lists, t.branches = maps.Clone(t.overlays), maps.Clone(t.lists), maps.Clone(t.branches)
	return t
}

func (t layeredTable) find(id string) *layeredSegment {
	for i := range t.segments {
		if t.segments[i].id == id {
			return &t.segments[i]
		}
	}
	return nil
}

func (t layeredTable) deletedRows() (n int) {
	for _, s := range t.segments {
		n += len(s.deleted.rows)
	}
	return n
}

func unionOf(a, b map[uint32]bool) map[uint32]bool {
	out := maps.Clone(a)
	if out == nil {
		out = map[uint32]bool{}
	}
	maps.Copy(out, b)
	return out
}

// layeredRun is one run of the test.
type layeredRun struct {
	blobs     object.Store
	handles   []*Table
	snapshots []layeredTable // snapshot n is at n-1
	files     map[string]catalog.SegmentDescriptor
}

func (r *layeredRun) latest() layeredTable { return r.snapshots[len(r.snapshots)-1] }

// segment makes a segment of nothing.
func (r *layeredRun) segment(t *rapid.T, rows uint32) catalog.SegmentDescriptor {
	d, err := fakeSegment(context.Background(), r.handles[0], nil, uint64(rows))
	if err != nil {
		t.Fatal(err)
	}
	r.files[d.ID] = d
	return d
}

func (r *layeredRun) set(t *rapid.T, segment string, rows map[uint32]bool) bitmap.Ref {
	b := roaring.New()
	for row := range rows {
		b.Add(row)
	}
	set, err := r.handles[0].s.core.Bitmaps.Put(context.Background(), r.files[segment].ID, r.files[segment].Rows, b)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func drawRows(t *rapid.T, limit uint32) map[uint32]bool {
	out := map[uint32]bool{}
	for _, v := range rapid.SliceOfN(rapid.Uint32Range(0, limit-1), 0, 30).Draw(t, "rows") {
		out[v] = true
	}
	return out
}

// pick returns up to three segments of a view.
func pick(t *rapid.T, view layeredTable) []layeredSegment {
	var out []layeredSegment
	if len(view.segments) == 0 {
		return nil
	}
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(view.segments)-1), 1, min(3, len(view.segments)),
		rapid.ID).Draw(t, "segments") {
		out = append(out, view.segments[i])
	}
	return out
}

// want is what a commit must come to; nil: it is made.
type want error

// rules says plainly what Commit promises, about the one thing that each change of this test does.
func (r *layeredRun) rules(c commit.Change, base int) (layeredTable, want) {
	l := r.latest()
	n := len(r.snapshots) + 1
	next := l.clone()
	gone := func(id string) bool { return next.find(id) == nil }
	for _, id := range commit.Op[commit.RemoveSegments](&c) {
		s := next.find(id)
		if s == nil || s.deleted.since > base {
			return l, ErrConflict
		}
		for _, y := range s.layers {
			if y.since > base {
				return l, ErrConflict
			}
		}
		for _, y := range s.listed {
			if y.since > base {
				return l, ErrConflict
			}
		}
	}
	removed := func(s layeredSegment) bool { return slices.Contains(commit.Op[commit.RemoveSegments](&c), s.id) }
	at := slices.IndexFunc(next.segments, removed) // all are of one partition
	next.segments = slices.DeleteFunc(next.segments, removed)
	if at < 0 {
		at = len(next.segments)
	}
	for i, d := range commit.Op[commit.AddSegments](&c) {
		next.segments = slices.Insert(next.segments, at+i, layeredSegment{id: d.ID, rows: uint32(d.Rows),
			layers: map[string]modelLayer{}, listed: map[string]modelSet{}})
	}
	for _, name := range commit.Op[commit.DropOverlays](&c) {
		o, ok := l.overlays[name]
		switch {
		case !ok:
			return l, ErrNotFound
		case o.added > base:
			return l, ErrConflict
		}
		for i := range next.segments {
			if _, has := next.segments[i].layers[name]; has && o.merged > 0 {
				return l, errors.ErrUnsupported
			}
			delete(next.segments[i].layers, name)
		}
		delete(next.overlays, name)
	}
	for _, o := range commit.Op[commit.DefineOverlays](&c) {
		if _, ok := next.overlays[o.Name]; ok {
			return l, ErrExists
		}
		next.overlays[o.Name] = modelOverlay{number: next.overlaid, added: n}
		next.overlaid++
	}
	for _, name := range commit.Op[commit.MergeOverlays](&c) {
		o, ok := next.overlays[name]
		switch {
		case !ok || o.added > base:
			return l, ErrConflict
		case o.merged > 0:
			return l, errors.ErrUnsupported
		}
		o.merged = n
		next.overlays[name] = o
	}
	for _, name := range commit.Op[commit.DropLists](&c) {
		added, ok := l.lists[name]
		switch {
		case !ok:
			return l, ErrNotFound
		case added > base:
			return l, ErrConflict
		}
		for i := range next.segments {
			delete(next.segments[i].listed, name)
		}
		delete(next.lists, name)
	}
	for _, y := range commit.Op[commit.DefineLists](&c) {
		if _, ok := next.lists[y.Name]; ok {
			return l, ErrExists
		}
		next.lists[y.Name] = n
	}
	for _, name := range commit.Op[commit.DropBranches](&c) {
		b, ok := l.branches[name]
		switch {
		case !ok:
			return l, ErrNotFound
		case b.added > base:
			return l, ErrConflict
		}
		delete(next.branches, name)
	}
	for _, d := range commit.Op[commit.DeleteRows](&c) {
		if gone(d.Segment) {
			return l, ErrConflict
		}
		s := next.find(d.Segment)
		if u := unionOf(s.deleted.rows, r.rowsOf(d.Rows)); len(u) > len(s.deleted.rows) {
			s.deleted = modelSet{u, n}
		}
	}
	for _, y := range commit.Op[commit.SetOverlaySegments](&c) {
		o, ok := next.overlays[y.Overlay]
		if !ok || o.added > base && o.added < n || o.merged > base && o.merged < n || gone(y.Segment) {
			return l, ErrConflict
		}
		s := next.find(y.Segment)
		if s.layers[y.Overlay].since > base {
			return l, ErrConflict
		}
		s.layers[y.Overlay] = modelLayer{y.Data.ID, y.All, modelSet{r.rowsOf(y.Covered), n}, n}
	}
	for _, y := range commit.Op[commit.SetListRows](&c) {
		added, ok := next.lists[y.List]
		if !ok || added > base && added < n || gone(y.Segment) {
			return l, ErrConflict
		}
		s := next.find(y.Segment)
		if s.listed[y.List].since > base {
			return l, ErrConflict
		}
		s.listed[y.List] = modelSet{r.rowsOf(y.Rows), n}
	}
	for _, b := range commit.Op[commit.SetBranches](&c) {
		if _, ok := next.branches[b.Name]; ok {
			return l, ErrExists
		}
		if int(b.Snapshot) < l.oldest && !slices.ContainsFunc(slices.Collect(maps.Values(l.branches)),
			func(o modelBranch) bool { return o.snapshot == int(b.Snapshot) }) {
			return l, ErrNotFound
		}
		m := modelBranch{snapshot: int(b.Snapshot), added: n, list: b.List.Name}
		for _, p := range b.Overlays {
			m.overlays = append(m.overlays, p.Name)
		}
		next.branches[b.Name] = m
	}
	next.oldest = max(next.oldest, int(commit.Op[commit.ExpireBelow](&c)))
	return next, nil
}

func (r *layeredRun) rowsOf(set bitmap.Ref) map[uint32]bool {
	b, err := r.handles[0].s.core.Bitmaps.Read(context.Background(), set)
	if err != nil {
		panic(err)
	}
	out := map[uint32]bool{}
	for _, row := range b.ToArray() {
		out[row] = true
	}
	return out
}

func (r *layeredRun) sameRows(t *rapid.T, what string, got bitmap.Ref, wanted modelSet) {
	if int(got.Count) != len(wanted.rows) || int(got.Since) != wanted.since {
		t.Fatalf("%s: %d rows since %d, want %d since %d", what, got.Count, got.Since, len(wanted.rows), wanted.since)
	}
	if rows := r.rowsOf(got); !maps.Equal(rows, wanted.rows) && len(wanted.rows) > 0 {
		t.Fatalf("%s: %v, want %v", what, rows, wanted.rows)
	}
}

// check holds a snapshot to the model.
func (r *layeredRun) check(t *rapid.T, s *Snapshot, m layeredTable) {
	ctx := context.Background()
	segs, err := s.Segments(ctx, nil)
	if err != nil || len(segs) != len(m.segments) {
		t.Fatalf("snapshot %d: %d segments, want %d: %v", s.Info().Number, len(segs), len(m.segments), err)
	}
	if int(s.Info().DeletedRows) != m.deletedRows() || int(s.Info().Oldest) != m.oldest {
		t.Fatalf("%+v, want %d deleted, oldest %d", s.Info(), m.deletedRows(), m.oldest)
	}
	deleted, err := s.DeletionVectors(ctx, segs...)
	if err != nil {
		t.Fatal(err)
	}
	overlays, err := s.Overlays(ctx)
	if err != nil || len(overlays) != len(m.overlays) {
		t.Fatalf("%v, want %v: %v", overlays, m.overlays, err)
	}
	for _, o := range overlays {
		if w := m.overlays[o.Name]; (modelOverlay{int(o.Number), int(o.Added), int(o.Merged)}) != w {
			t.Fatalf("%+v, want %+v", o, w)
		}
	}
	layers, err := s.OverlaySegments(ctx, overlays, segs...)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := s.SampleLists(ctx)
	if err != nil || len(lists) != len(m.lists) {
		t.Fatalf("%v, want %v: %v", lists, m.lists, err)
	}
	for i, d := range segs {
		w := m.segments[i]
		if d.ID != w.id {
			t.Fatalf("segment %d is %s, want %s", i, d.ID, w.id)
		}
		r.sameRows(t, "deleted", deleted[i], w.deleted)
		for j, o := range overlays {
			y, ok := w.layers[o.Name]
			if got := layers[i][j]; (got != nil) != ok || ok && (got.Data.ID != y.data || got.All != y.all ||
				int(got.Since) != y.since) {
				t.Fatalf("layer %s of %s: %+v, want %+v", o.Name, d.ID, got, y)
			} else if ok && !y.all {
				r.sameRows(t, "covered", got.Covered, y.cover)
			}
		}
		for _, l := range lists {
			if m.lists[l.Name] != int(l.Added) {
				t.Fatalf("%+v, want it added in %d", l, m.lists[l.Name])
			}
			got, err := s.ListedRows(ctx, l.Name, d)
			if err != nil {
				t.Fatal(err)
			}
			r.sameRows(t, "listed", got[0], w.listed[l.Name])
		}
	}
	branches, err := s.Branches(ctx)
	if err != nil || len(branches) != len(m.branches) {
		t.Fatalf("%v, want %v: %v", branches, m.branches, err)
	}
	for _, b := range branches {
		if w := m.branches[b.Name]; int(b.Snapshot) != w.snapshot || int(b.Added) != w.added || b.List.Name != w.list ||
			len(b.Overlays) != len(w.overlays) {
			t.Fatalf("%+v, want %+v", b, w)
		}
	}
}

// compaction replaces segments of a view by one, and carries what the view has over them.
func (r *layeredRun) compaction(t *rapid.T, view layeredTable) (c commit.Change) {
	inputs := pick(t, view)
	rows := uint32(0)
	for _, s := range inputs {
		rows += s.rows
	}
	out := r.segment(t, rows)
	c.Set(commit.AddSegments{out})
	deleted := map[uint32]bool{}
	cover, listed := map[string]map[uint32]bool{}, map[string]map[uint32]bool{}
	at := uint32(0)
	for _, s := range inputs {
		c.Set(append(commit.Op[commit.RemoveSegments](&c), s.id))
		for row := range s.deleted.rows {
			deleted[at+row] = true
		}
		for name, y := range s.layers {
			if cover[name] == nil {
				cover[name] = map[uint32]bool{}
			}
			for row := range s.rows {
				if y.all || y.cover.rows[row] {
					cover[name][at+row] = true
				}
			}
		}
		for name, y := range s.listed {
			if listed[name] == nil {
				listed[name] = map[uint32]bool{}
			}
			for row := range y.rows {
				listed[name][at+row] = true
			}
		}
		at += s.rows
	}
	if len(deleted) > 0 {
		c.Set(commit.DeleteRows{{Segment: out.ID, Rows: r.set(t, out.ID, deleted)}})
	}
	for _, name := range slices.Sorted(maps.Keys(cover)) {
		y := catalog.OverlaySegment{Overlay: name, Segment: out.ID, Data: r.segment(t, rows),
			All: len(cover[name]) == int(rows)}
		if !y.All {
			y.Covered = r.set(t, out.ID, cover[name])
		}
		c.Set(append(commit.Op[commit.SetOverlaySegments](&c), y))
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if len(listed[name]) > 0 {
			c.Set(append(commit.Op[commit.SetListRows](&c), commit.ListRows{List: name, Segment: out.ID,
				Rows: r.set(t, out.ID,
					listed[name])}))
		}
	}
	return c
}

// draw makes a change of one kind against a view.
func (r *layeredRun) draw(t *rapid.T, view layeredTable) (c commit.Change) {
	overlay := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "overlay")
	list := rapid.SampledFrom([]string{"l", "l2"}).Draw(t, "list")
	branch := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "branch")
	layers := func() {
		for _, s := range pick(t, view) {
			y := catalog.OverlaySegment{Overlay: overlay, Segment: s.id, Data: r.segment(t, s.rows),
				All: rapid.Bool().Draw(t, "all")}
			if !y.All {
				y.Covered = r.set(t, s.id, drawRows(t, s.rows))
			}
			c.Set(append(commit.Op[commit.SetOverlaySegments](&c), y))
		}
	}
	listRows := func() {
		for _, s := range pick(t, view) {
			c.Set(append(commit.Op[commit.SetListRows](&c), commit.ListRows{List: list, Segment: s.id,
				Rows: r.set(t, s.id,
					drawRows(t, s.rows))}))
		}
	}
	kind := rapid.SampledFrom([]string{"append", "append", "delete", "delete", "overlay", "layers", "merge",
		"drop overlay", "list", "list rows",
		"replace list", "drop list", "branch", "drop branch", "compact", "compact", "expire"}).Draw(t, "kind")
	switch c.Operation = kind; kind {
	case "append":
		c.Set(commit.AddSegments{r.segment(t, rapid.Uint32Range(1, 400).Draw(t, "rows"))})
	case "delete":
		for _, s := range pick(t, view) {
			c.Set(append(commit.Op[commit.DeleteRows](&c), commit.DeletionVector{Segment: s.id, Rows: r.set(t, s.id,
				drawRows(t, s.rows))}))
		}
	case "overlay":
		c.Set(commit.DefineOverlays{{Name: overlay, Features: features("f-" + overlay)}})
		layers()
	case "layers":
		layers()
	case "merge":
		c.Set(commit.MergeOverlays{overlay})
	case "drop overlay":
		c.Set(commit.DropOverlays{overlay})
	case "list":
		c.Set(commit.DefineLists{{Name: list}})
		listRows()
	case "list rows":
		listRows()
	case "replace list":
		c.Set(commit.DropLists{list})
		c.Set(commit.DefineLists{{Name: list}})
		listRows()
	case "drop list":
		c.Set(commit.DropLists{list})
	case "branch":
		b := catalog.Branch{Name: branch, Snapshot: c.Base}
		c.Set(commit.SetBranches{b})
	case "drop branch":
		c.Set(commit.DropBranches{branch})
	case "compact":
		if len(view.segments) > 0 {
			c = r.compaction(t, view)
		}
	case "expire":
		c.Set(commit.ExpireBelow(uint64(max(1, len(r.snapshots)-rapid.IntRange(0, 5).Draw(t, "keep")))))
	}
	c.Operation = kind
	return c
}

// collect runs gc, and looks at what it left: all that snapshots that stay name, and no segment besides.
func (r *layeredRun) collect(t *rapid.T, s *Store) {
	ctx := context.Background()
	report, err := s.GC(ctx, gc.Options{NoWait: true})
	if err != nil || len(report.Skipped) > 0 {
		t.Fatal(report, err)
	}
	// It makes a snapshot, with what the one before has, where there was garbage.
	newest, err := (&Table{s: s, log: s.core.Log(r.handles[0].log.Table)}).Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if newest.Info().Operation == gc.Operation && int(newest.Info().Number) == len(r.snapshots)+1 {
		r.snapshots = append(r.snapshots, r.latest().clone())
	}
	keep := map[string]bool{}
	l := r.latest()
	for n := max(1, l.oldest); n <= len(r.snapshots); n++ {
		keep[fmt.Sprint(n)] = true
	}
	for _, b := range l.branches {
		keep[fmt.Sprint(b.snapshot)] = true
	}
	named := map[string]bool{}
	for n, m := range r.snapshots {
		if !keep[fmt.Sprint(n+1)] {
			continue
		}
		for _, s := range m.segments {
			named[s.id] = true
			for _, y := range s.layers {
				named[y.data] = true
			}
		}
	}
	there := map[string]bool{}
	for info, err := range r.blobs.List(ctx, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if segment, ok := strings.CutSuffix(info.Name, "/"+names.IndexFile); ok {
			there[segment[3:]] = true
		}
	}
	if !maps.Equal(there, named) {
		t.Fatalf("gc left %d segments, want %d", len(there), len(named))
	}
}

// TestMetamorphicLayers runs random changes by writers that have not seen the latest ones, expiry, gc and time travel,
// against the model.
func TestMetamorphicLayers(t *testing.T) {
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		now := time.Now().Add(time.Hour).UTC() // past everything that gc looks at
		r := &layeredRun{blobs: object.NewMemory(), files: map[string]catalog.SegmentDescriptor{}}
		open := func() *Table {
			s, err := Create(ctx, r.blobs, Options{Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			s.core.Trees.MemtableBytes = rapid.SampledFrom([]uint64{0, 300, 2000, lsm.DefaultMemtableBytes}).Draw(t,
				"tail")
			s.core.Bitmaps.InlineBytes = rapid.SampledFrom([]int{0, 40, bitmap.MaxInline}).Draw(t, "inline")
			tab, err := s.NewTable(ctx, "ads")
			if err != nil {
				t.Fatal(err)
			}
			return tab
		}
		r.handles = []*Table{open(), open(), open()}
		first := r.segment(t, 100)
		if _, err := r.handles[0].Commit(ctx, commit.Change{Operation: "test",
			Ops: []commit.Operation{commit.AddSegments{first}}}); err != nil {
			t.Fatal(err)
		}
		r.snapshots = []layeredTable{{
			segments: []layeredSegment{{id: first.ID, rows: 100, layers: map[string]modelLayer{},
				listed: map[string]modelSet{}}},
			overlays: map[string]modelOverlay{}, lists: map[string]int{}, branches: map[string]modelBranch{},
		}}
		handle := func() *Table { return r.handles[rapid.IntRange(0, len(r.handles)-1).Draw(t, "handle")] }
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) {
				now = now.Add(time.Second)
				base := max(1, len(r.snapshots)-rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4}).Draw(t, "behind"))
				view := r.snapshots[base-1]
				c := r.draw(t, view)
				c.Base = uint64(base)
				branches := commit.Op[commit.SetBranches](&c)
				for i := range branches {
					branches[i].Snapshot = uint64(base)
					for _, name := range slices.Sorted(maps.Keys(view.overlays)) {
						branches[i].Overlays = append(branches[i].Overlays, catalog.Pin{Name: name,
							Snapshot: uint64(base)})
					}
					for _, name := range slices.Sorted(maps.Keys(view.lists)) {
						branches[i].List = catalog.Pin{Name: name, Snapshot: uint64(base)}
					}
				}
				if commit.Op[commit.ExpireBelow](&c) >= commit.ExpireBelow(len(r.snapshots)+1) {
					c.Set(commit.ExpireBelow(len(r.snapshots)))
				}
				next, wanted := r.rules(c, base)
				s, err := handle().Commit(ctx, c)
				what := "made"
				switch {
				case wanted == nil && err != nil:
					t.Fatalf("%s against %d of %d: %v", c.Operation, base, len(r.snapshots), err)
				case wanted == nil:
					r.snapshots = append(r.snapshots, next)
					if int(s.Info().Number) != len(r.snapshots) {
						t.Fatalf("snapshot %d, want %d", s.Info().Number, len(r.snapshots))
					}
					r.check(t, s, next)
				case err == nil:
					t.Fatalf("%s against %d of %d was made, want %v", c.Operation, base, len(r.snapshots), wanted)
				case !errors.Is(wanted, errors.ErrUnsupported) && !errors.Is(err, wanted):
					t.Fatalf("%s against %d of %d: %v, want %v", c.Operation, base, len(r.snapshots), err, wanted)
				default:
					what = wanted.Error()
				}
				outcomes[c.Operation+": "+what]++
			},
			"latest": func(t *rapid.T) {
				s, err := handle().Latest(ctx)
				if err != nil || int(s.Info().Number) != len(r.snapshots) {
					t.Fatal(s, err)
				}
				r.check(t, s, r.latest())
			},
			"travel": func(t *rapid.T) {
				n := rapid.IntRange(max(1, r.latest().oldest), len(r.snapshots)).Draw(t, "number")
				s, err := handle().At(ctx, uint64(n))
				if err != nil {
					t.Fatal(err)
				}
				r.check(t, s, r.snapshots[n-1])
			},
			"branch": func(t *rapid.T) {
				for _, name := range slices.Sorted(maps.Keys(r.latest().branches)) {
					v, err := handle().OpenBranch(ctx, name)
					if err != nil || int(v.Snapshot.Info().Number) != r.latest().branches[name].snapshot {
						t.Fatal(v, err)
					}
					r.check(t, v.Snapshot, r.snapshots[v.Snapshot.Info().Number-1])
				}
			},
			"gc": func(t *rapid.T) { r.collect(t, handle().s) },
			"reopen": func(t *rapid.T) {
				r.handles[rapid.IntRange(0, len(r.handles)-1).Draw(t, "handle")] = open()
			},
		})
	})
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		t.Log(k, outcomes[k])
	}
}
