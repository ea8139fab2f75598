package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/repair"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// TestNewerSnapshot: a snapshot that a later version wrote is not damage; nothing is committed after it or collected.
func TestNewerSnapshot(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := newTable(t, l)
	if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures(features("a"))}}); err != nil {
		t.Fatal(err)
	}
	name := names.SnapshotName("ads", 1)
	path := filepath.Join(l.Root(), name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[7]++ // the version
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := newTable(t, l).Latest(ctx); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("one byte of a snapshot of this version: %v", err)
	}
	b[snapshot.HeaderBytes-1]++ // of the checksum, which is of other bytes
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	tab = newTable(t, l)
	_, latest := tab.Latest(ctx)
	_, listed := tab.Snapshots(ctx)
	_, committed := tab.Commit(ctx, commit.Change{Operation: "ingest"})
	report, collected := tab.Store().GC(ctx, gc.Options{NoWait: true})
	if collected == nil && len(report.Skipped) == 1 {
		collected = report.Skipped[0].Err
	}
	for what, err := range map[string]error{"latest": latest, "snapshots": listed, "commit": committed,
		"gc": collected} {
		if !errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrCorrupt) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r, err := tab.Store().Verify(ctx, "", false, nil)
	if err != nil || len(r.Damage) == 0 || !errors.Is(r.Damage[0], format.ErrUnsupported) {
		t.Errorf("verify: %v %+v", err, r)
	}
	// A marker that this version cannot read may be one of the newer version.
	marker := filepath.Join(l.Root(), names.Marker)
	if err := os.WriteFile(marker, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, l, Options{})
	if err != nil {
		t.Fatal(err)
	}
	damage, err := s.RepairMarker(ctx, true)
	if b, rerr := os.ReadFile(marker); !errors.Is(err, format.ErrUnsupported) || damage != nil || string(b) != "x" ||
		rerr != nil {
		t.Errorf("marker: %v, %v, %q, %v", damage, err, b, rerr)
	}
}

// TestNewerEntry: an entry of a kind that a later version added is no damage either. The table is read and written
// without it, verify names it, and a repair leaves the table alone.
func TestNewerEntry(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []lsm.Kind{lsm.Listing, lsm.Schema} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		segs := commit.AddSegments{segmentWith(t, tab, partition("ds", "1"), []uint32{20}, 1, segment.Options{},
			features("a")...)}
		m := mustCommit(t, tab, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features("a")), segs}}).Manifest
		m.Info.Number++
		m.Info.AddedRows = 0
		m.Parent, m.Commit = m.Commit, names.RandomID()
		tree := &m.Listing
		if kind == lsm.Schema {
			tree = &m.Schema
		}
		tree.Memtable = lsm.MergeEntries(tree.Memtable, []lsm.Entry{{Key: []byte("~new"), Value: []byte("x")}})
		name := names.SnapshotName("ads", m.Info.Number)
		if err := mem.PutIfAbsent(ctx, name, snapshot.AppendManifest(nil, m)); err != nil {
			t.Fatal(err)
		}
		tab = newTable(t, mem)
		s, err := tab.Latest(ctx)
		if err != nil || s.Info().Number != 2 || s.Info().Rows != 20 {
			t.Fatal(s, err)
		}
		r, err := tab.Store().Verify(ctx, "", true, nil)
		if err != nil || len(r.Damage) != 1 || !errors.Is(r.Damage[0], format.ErrUnsupported) ||
			errors.Is(r.Damage[0], format.ErrCorrupt) || !strings.Contains(r.Damage[0].Error(), `"~new"`) {
			t.Errorf("verify: %v %+v", err, r)
		}
		repaired, err := tab.Store().Repair(ctx, "ads", repair.Options{Apply: true})
		if !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("repair: %+v %v", repaired, err)
		}
		s = mustCommit(t, tab, commit.Change{Operation: "ingest"})
		tree = &s.Manifest.Listing
		if kind == lsm.Schema {
			tree = &s.Manifest.Schema
		}
		if !slices.ContainsFunc(tree.Memtable, func(e lsm.Entry) bool { return string(e.Key) == "~new" }) {
			t.Errorf("a commit has lost the entry")
		}
	}
}

// TestNewestOfAnyNumber: what a header says of how many snapshots there are sizes nothing before they are found.
func TestNewestOfAnyNumber(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	m := mustCommit(t, tab, commit.Change{}).Manifest
	m.Info.Number, m.Parent = names.MaxSnapshot, names.RandomID()
	if err := mem.PutIfAbsent(ctx, names.SnapshotName("ads", names.MaxSnapshot), snapshot.AppendManifest(nil,
		m)); err != nil {
		t.Fatal(err)
	}
	if all, err := newTable(t, mem).Snapshots(ctx); !errors.Is(err, format.ErrCorrupt) {
		t.Error(len(all), err)
	}
	if r, err := newTable(t, mem).Expire(ctx, gc.ExpireOptions{KeepLast: 1, DryRun: true}); !errors.Is(err,
		format.ErrCorrupt) {
		t.Error(r, err)
	}
	if r, err := newTable(t, mem).s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Skipped) != 1 {
		t.Error(r, err)
	}
	if r, err := newTable(t, mem).s.Verify(ctx, "ads", false, nil); err != nil || r.DamageCount == 0 {
		t.Error(r, err)
	}
}
