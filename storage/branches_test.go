package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

func TestBranches(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x", "y")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x", "y")),
		commit.AddSegments{a}}})
	// A branch, its overlay and its list in one commit.
	s := mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("lbl", "y")},
		commit.SetOverlaySegments{layer(t, tab, "lbl", a, 7, "y")}, commit.DefineLists{
			{Name: "some"}}, commit.SetListRows{{List: "some", Segment: a.ID, Rows: rowSet(t, tab.s, a,
			1)}}, commit.SetBranches{
			{Name: "exp", Overlays: []catalog.Pin{{Name: "lbl"}}, List: catalog.Pin{Name: "some"}, Owner: "me"}}}})
	b, err := s.Branch(ctx, "exp")
	if err != nil || b.Snapshot != 2 || b.Overlays[0].Snapshot != 2 || b.List.Snapshot != 2 || b.Added != 2 ||
		b.Owner != "me" || !b.Created.Equal(s.Info().Time) {
		t.Fatal(b, err)
	}
	// The table goes on without the segment, the overlay and the list: the branch stays as it was.
	c := writeSegment(t, tab, nil, []uint32{50}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{c}, commit.RemoveSegments{a.ID}, commit.DropOverlays{"lbl"}, commit.DropLists{"some"}}})
	read := func() *View {
		t.Helper()
		v, err := tab.s.Open(ctx, "ads@exp")
		if err != nil || v.Snapshot.Info().Number != 2 || len(v.Overlays) == 0 || v.Overlays[0].Name != "lbl" ||
			v.List != "some" || v.Branch != "exp" {
			t.Fatal(v, err)
		}
		segs, err := v.Snapshot.Segments(ctx, nil)
		if err != nil || len(segs) != 1 || segs[0].ID != a.ID {
			t.Fatal(segs, err)
		}
		layers, err := v.Overlays[0].In.OverlaySegments(ctx, []catalog.Overlay{v.Overlays[0].Overlay}, segs...)
		if err != nil || layers[0][0] == nil {
			t.Fatal(layers, err)
		}
		rows, err := v.ListIn.ListedRows(ctx, v.List, segs...)
		if err != nil || rows[0].Count != 1 {
			t.Fatal(rows, err)
		}
		return v
	}
	read()
	// An overlay made on the branch lies over segments that the table no longer has.
	onBranch := overlay("more", "x")
	onBranch.Branch = "exp"
	b.Overlays = append(b.Overlays, catalog.Pin{Name: "more"})
	mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.DefineOverlays{onBranch},
		commit.SetOverlaySegments{layer(t, tab, "more", a, 8, "x")}, commit.SetBranches{b}}})
	v := read()
	if len(v.Overlays) != 2 || v.Overlays[1].In.Info().Number != 4 {
		t.Fatal(v.Overlays)
	}
	layers, err := v.Overlays[1].In.OverlaySegments(ctx, []catalog.Overlay{v.Overlays[1].Overlay}, a)
	if err != nil || layers[0][0] == nil {
		t.Fatal(layers, err)
	}
	wantConflict(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.SetBranches{b}}}, "a branch set since")
	wantConflict(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.SetBranches{{Name: "exp"}}}},
		"a name taken since")
	for _, bad := range []catalog.Branch{{Name: "x", Snapshot: 9}, {Name: "x", Overlays: []catalog.Pin{{Name: "none"}}},
		{Name: "x", List: catalog.Pin{Name: "some"}},
		{Name: "x", Snapshot: 2, Overlays: []catalog.Pin{{Name: "none", Snapshot: 2}}}, {Name: ""}, {Name: "x@y"}} {
		if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Base: 4,
			Ops: []commit.Operation{commit.SetBranches{bad}}}); err == nil {
			t.Errorf("%+v is accepted", bad)
		} else {
			t.Log(err)
		}
	}
	if _, err := tab.s.Open(ctx, "ads@exq"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "exp") {
		t.Fatal(err)
	}
	verifyClean(t, tab.s)
	// With the branch goes the overlay that was made on it.
	s = mustCommit(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.DropBranches{"exp"}}})
	if o, err := s.Overlays(ctx); err != nil || len(o) > 0 || s.Manifest.Branches != 0 || s.Manifest.Overlays != 0 {
		t.Fatal(o, err)
	}
	// Snapshot 4 has the overlay yet when the segment under its layer has gone, with the last snapshot that had it: no
	// damage.
	if r, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 2}); err != nil || r.Oldest != 4 {
		t.Fatal(r, err)
	}
	if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || segmentThere(t, tab.s, a) {
		t.Fatal("gc left the segment", err)
	}
	verifyClean(t, tab.s)
}

// TestOpenRef: a branch is opened at a cost that does not grow with the number of tables, however long its name.
func TestOpenRef(t *testing.T) {
	ctx := t.Context()
	counted := object.NewCounted(localStore(t))
	tab := newTable(t, counted)
	long := strings.Repeat("é", catalog.MaxReferenceName/2) // which no file name can be
	mustCommit(t, tab, commit.Change{})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.SetBranches{{Name: long, Snapshot: 1},
		{Name: "b", Snapshot: 1}}}})
	cost := func() int64 {
		t.Helper()
		start := counted.Counts()
		for _, branch := range []string{"b", long} {
			if v, err := tab.s.Open(ctx, "ads@"+branch); err != nil || v.Branch != branch ||
				v.Snapshot.Info().Number != 1 {
				t.Fatal(v, err)
			}
		}
		return counted.Counts().Sub(start).Requests()
	}
	before := cost()
	for i := range 20 {
		other, err := tab.s.NewTable(ctx, fmt.Sprint("a", i))
		if err != nil {
			t.Fatal(err)
		}
		mustCommit(t, other, commit.Change{})
	}
	if after := cost(); after > before+4 { // what is read ahead may be asked for twice
		t.Errorf("%d requests with one table, %d with 21", before, after)
	}
	// No table of the whole name can stand before the branch.
	if _, err := tab.s.NewTable(ctx, "ads@b"); !errors.Is(err, names.ErrName) {
		t.Fatal(err)
	}
	for _, ref := range []string{"ads@", "@b", "ads@b@b", "@", ""} {
		if v, err := tab.s.Open(ctx, ref); !errors.Is(err, names.ErrName) {
			t.Errorf("%q: %v, %v", ref, v, err)
		}
	}
}

// TestOverlaysOnBranches: layers of overlays that were made on a branch lie over the segments of its snapshot, and stay
// so.
func TestOverlaysOnBranches(t *testing.T) {
	ctx := t.Context()
	tab := newTable(t, object.NewMemory())
	on := func(name, branch string) catalog.Overlay {
		o := overlay(name, "x")
		o.Branch = branch
		return o
	}
	a := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{}, "x")
	c := writeSegment(t, tab, nil, []uint32{50}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{a}}})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{c}, commit.RemoveSegments{a.ID}}})
	// Branches and overlays on them in one commit, of a snapshot before and of the one that is made.
	s := mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.DefineOverlays{on("o", "old"),
		on("n", "now")}, commit.SetOverlaySegments{layer(t, tab, "o", a, 7, "x"), layer(t, tab, "n", c, 8,
		"x")}, commit.SetBranches{{Name: "old", Snapshot: 1, Overlays: []catalog.Pin{{Name: "o"}}}, {
		Name: "now", Overlays: []catalog.Pin{{Name: "n"}}}}}})
	for branch, base := range map[string]catalog.SegmentDescriptor{"old": a, "now": c} {
		v, err := tab.OpenBranch(ctx, branch)
		if err != nil || len(v.Overlays) != 1 {
			t.Fatal(v, err)
		}
		segs, err := v.Snapshot.Segments(ctx, nil)
		if err != nil || len(segs) != 1 || segs[0].ID != base.ID {
			t.Fatal(segs, err)
		}
		if layers, err := v.Overlays[0].In.OverlaySegments(ctx, []catalog.Overlay{v.Overlays[0].Overlay},
			segs...); err != nil || layers[0][0] == nil {
			t.Fatal(branch, layers, err)
		}
	}
	b, err := s.Branch(ctx, "old")
	if err != nil {
		t.Fatal(err)
	}
	b.Owner = "else"
	b.Overlays = []catalog.Pin{{Name: "o"}}
	s = mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.SetBranches{b}}}) // 4
	wantConflict(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "o", a,
		9, "x")}}}, "a layer on a branch set since")
	wantConflict(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.SetOverlaySegments{layer(t, tab, "o", c,
		9, "x")}}}, "a layer over a segment that the branch has not")
	if b, err = s.Branch(ctx, "old"); err != nil {
		t.Fatal(err)
	}
	b.Snapshot, b.Overlays = 2, nil
	for _, bad := range []struct {
		c    commit.Change
		says string
	}{
		{commit.Change{Ops: []commit.Operation{commit.DefineOverlays{on("p", "odl")}}}, "old"},
		{commit.Change{Ops: []commit.Operation{commit.DefineOverlays{on("p", "old")}, commit.DropBranches{"old"}}},
			"gone"},
		{commit.Change{Ops: []commit.Operation{commit.SetBranches{{Name: "third", Snapshot: 1,
			Overlays: []catalog.Pin{{Name: "o", Snapshot: 4}}}}}}, "branch old"},
		{commit.Change{Ops: []commit.Operation{commit.SetBranches{{Name: "third",
			Overlays: []catalog.Pin{{Name: "o"}}}}}}, "branch old"},
		{commit.Change{Ops: []commit.Operation{commit.SetBranches{b}}}, "overlay o was made"},
	} {
		bad.c.Base, bad.c.Operation = 4, "test"
		if _, err := tab.Commit(ctx, bad.c); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%+v: %v, want an error with %q", bad.c, err, bad.says)
		}
	}
	// Without the overlay the branch goes to another snapshot, and another one lies over that one's segments.
	mustCommit(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.DropOverlays{"o"},
		commit.DefineOverlays{on("o2", "old")}, commit.SetOverlaySegments{layer(t, tab, "o2", c, 9,
			"x")}, commit.SetBranches{b}}})
	verifyClean(t, tab.s)
}
