package storage

import (
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestPurge: within the grace period a purge takes the data that only expired snapshots name, and nothing else: not
// what a branch or a lease holds, not what no snapshot names, not the snapshots themselves.
func TestPurge(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Bitmaps.InlineBytes = 0 // every set is an object
	segs := replaceAll(t, tab, 4)
	// 5
	over := mustCommit(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "y")},
		commit.SetOverlaySegments{layer(t, tab, "o", segs[3], 7, "y")}, commit.DeleteRows{{Segment: segs[3].ID,
			Rows: rowSet(t, tab.s,
				segs[3], 1)}}}})
	layers, err := over.OverlaySegments(ctx, []catalog.Overlay{{Name: "o", Number: 0}}, segs[3])
	if err != nil || layers[0][0] == nil {
		t.Fatal(layers, err)
	}
	deleted, err := over.DeletionVectors(ctx, segs[3])
	if err != nil {
		t.Fatal(err)
	}
	// 6
	mustCommit(t, tab, commit.Change{Base: 5, Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 2}}}})
	three, err := tab.At(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := three.Lease(ctx, "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	more := replaceAll(t, tab, 1) // 7
	other, err := tab.s.NewTable(ctx, "other")
	if err != nil {
		t.Fatal(err)
	}
	others := replaceAll(t, other, 2)
	if r, err := other.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil || len(r.Expired) != 1 {
		t.Fatal(r, err)
	}
	// of a commit to come
	loose := writeSegment(t, tab, nil, []uint32{10}, 99, segment.Options{}, "x")
	if r, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil || len(r.Expired) != 6 { // 8
		t.Fatal(r, err)
	}
	r, err := tab.s.GC(ctx, gc.Options{})
	if err != nil || len(r.Removed) != 0 {
		t.Fatal(r, err)
	}
	// Of another table that is damaged nothing goes.
	if err := mem.PutIfAbsent(ctx, names.SnapshotName("damaged", 1), []byte("no snapshot")); err != nil {
		t.Fatal(err)
	}
	if r, err := tab.s.GC(ctx, gc.Options{}); err != nil || len(r.Skipped) != 1 || r.Skipped[0].Table != "damaged" {
		t.Fatal(r, err)
	}
	r, err = tab.Purge(ctx)
	if err != nil || r.Expired != 0 || len(r.Held) != 2 || len(r.Removed) == 0 {
		t.Fatal(r, err)
	}
	if err := mem.Delete(ctx, names.SnapshotName("damaged", 1)); err != nil {
		t.Fatal(err)
	}
	check := func(what string, d catalog.SegmentDescriptor, want bool) {
		t.Helper()
		if segmentThere(t, tab.s, d) != want {
			t.Errorf("%s: there %v", what, !want)
		}
	}
	check("segment of snapshot 1", segs[0], false)
	check("of a branch's", segs[1], true)
	check("of a leased one", segs[2], true)
	check("of snapshot 4", segs[3], false)
	check("a layer", layers[0][0].Data, false)
	check("of the newest", more[0], true)
	check("of no snapshot", loose, true)
	check("of an expired snapshot of another table", others[0], true)
	if id, _, ok := deleted[0].Object(); !ok {
		t.Error("deleted rows are not in an object")
	} else if _, err := tab.s.core.Blobs.Stat(ctx, id.RowsName()); err == nil {
		t.Error("deleted rows are there")
	}
	verifyClean(t, tab.s)
	// What stays behind is whole enough for all that comes: gc within the grace period and after it, leases that end,
	// new handles.
	if r, err := tab.s.GC(ctx, gc.Options{}); err != nil || len(r.Removed) != 0 {
		t.Fatal(r, err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Purge(ctx); err != nil {
		t.Fatal(err)
	}
	check("of a leased one, released", segs[2], false)
	if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired != 7 {
		t.Fatal(r, err)
	}
	verifyClean(t, tab.s)
	if s, err := newTable(t, mem).Latest(ctx); err != nil || s.Info().Operation != gc.Operation || s.Info().Rows != 10 {
		t.Fatal(s, err)
	}
}

// TestPurgeAgain: where nothing is left to remove, a purge removes nothing and makes no snapshot.
func TestPurgeAgain(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	replaceAll(t, tab, 4)
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	for pass, removed := range []int{6, 0, 0} {
		r, err := tab.Purge(ctx)
		if err != nil || len(r.Removed) != removed {
			t.Fatal(pass, r, err)
		}
		if s, err := tab.Latest(ctx); err != nil || s.Info().Number != 6 { // the expiry is 5
			t.Errorf("purge %d: snapshot %d is the newest", pass, s.Info().Number)
		}
	}
}

// TestPurgeBesideGC: a gc takes the expired snapshots while a purge reads them; of what has expired nothing is left.
func TestPurgeBesideGC(t *testing.T) {
	ctx := t.Context()
	meanwhile := &hookedStore{Store: object.NewMemory()}
	tab := newTable(t, meanwhile)
	segs := replaceAll(t, tab, 6)
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	at := 0
	meanwhile.reads = func(name string) {
		if name != names.SnapshotName(tab.log.Table, 4) {
			return
		}
		if at++; at == 1 {
			if r, err := newTable(t, meanwhile.Store).s.GC(ctx, gc.Options{NoWait: true}); err != nil ||
				r.Expired != 5 {
				t.Error(r, err)
			}
		}
	}
	_, err := tab.Purge(ctx)
	meanwhile.reads = nil
	if err != nil || at == 0 {
		t.Fatal(err, at)
	}
	for i, d := range segs {
		if segmentThere(t, tab.s, d) != (i == 5) {
			t.Errorf("segment of snapshot %d", i+1)
		}
	}
	verifyClean(t, tab.s)
}

// TestWithout: segments that leave a dropped feature out are refused once it was taken back.
func TestWithout(t *testing.T) {
	tab := newTable(t, object.NewMemory())
	a := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "x", "y")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x", "y")),
		commit.AddSegments{a}}})
	dropped, active := catalog.FeatureDropped, catalog.FeatureActive
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y",
		Status: &dropped}}}})
	b := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "x")
	c := commit.Change{Base: 2, Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{b},
		commit.RemoveSegments{a.ID}, commit.OmitFeatures{features("y")[0].ID}}}
	mustCommit(t, tab, commit.Change{Base: 2, Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y",
		Status: &active}}}})
	wantConflict(t, tab, c, "it is not dropped any more")
	// Dropped again, and its name taken by another: it is gone for good.
	mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.ChangeFeatures{{Feature: "y",
		Status: &dropped}}}})
	fresh, err := tab.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y := newFeature(t, fresh, "y", int64Type)
	mustCommit(t, tab, commit.Change{Base: 4, Ops: []commit.Operation{commit.AddFeatures{y}}})
	c.Base = 5
	mustCommit(t, tab, c)
	verifyClean(t, tab.s)
}
