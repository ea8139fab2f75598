package storage

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// populate makes a table of several snapshots with packs, single files, an overwrite and a removal.
func populate(t testing.TB, blobs object.Store) *Table {
	t.Helper()
	ctx := t.Context()
	tab := newTable(t, blobs)
	var first catalog.SegmentDescriptor
	for i := range 4 {
		p := partition("ds", fmt.Sprint(i%3))
		d := writeSegment(t, tab, p, []uint32{300, 200}, int64(i), segment.Options{StandAloneBytes: 600,
			PackBytes: 1500}, "a", "b", "c", "d", fmt.Sprint("e", i))
		if i == 0 {
			first = d
		}
		if _, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features("a", "b", "c", "d", fmt.Sprint("e", i))),
				commit.AddSegments{d}, commit.AddSources{{Fingerprint: fmt.Sprint("print", i),
					Name: "file"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "delete", Base: 4,
		Ops: []commit.Operation{commit.RemoveSegments{first.ID}}}); err != nil {
		t.Fatal(err)
	}
	d := writeSegment(t, tab, partition("ds", "1"), []uint32{10}, 1, segment.Options{}, "a")
	if _, err := tab.Commit(ctx, commit.Change{Operation: "overwrite", Base: 5,
		Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{d},
			commit.OverwritePartitions{partition("ds", "1")}}}); err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestVerifyClean(t *testing.T) {
	for _, deep := range []bool{false, true} {
		tab := populate(t, localStore(t))
		last := uint64(0)
		r, err := tab.Store().Verify(t.Context(), "", deep, func(done, total uint64) {
			if done <= last || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		})
		if err != nil || r.DamageCount != 0 {
			t.Fatal(err, r)
		}
		if r.Segments != 5 || r.Snapshots != 6 || deep != (r.Features == 21) || deep != (r.Stripes == 41) {
			t.Fatalf("%+v", r)
		}
	}
}

// TestVerifyDamage flips a byte in every object of a store in turn, and takes each away: verify says which it is.
func TestVerifyDamage(t *testing.T) {
	l := localStore(t)
	tab := populate(t, l)
	var list []string
	for info, err := range l.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if info.Size > 0 {
			list = append(list, info.Name)
		}
	}
	check := func(name, what string) {
		t.Helper()
		s, err := Open(t.Context(), l, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Verify(t.Context(), "ads", true, nil)
		if err != nil {
			t.Fatalf("%s %s: %v", name, what, err)
		}
		found := false
		for _, d := range r.Damage {
			if !errors.Is(d, format.ErrCorrupt) {
				t.Errorf("%s %s: %v is not corrupt", name, what, d)
			}
			found = found || strings.Contains(d.Error(), name)
		}
		if !found {
			t.Errorf("%s %s: not found in %v", name, what, r.Damage)
		}
	}
	for _, name := range list {
		path := filepath.Join(l.Root(), filepath.FromSlash(name))
		clean, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, len(clean) / 2, len(clean) - 1} {
			b := bytes.Clone(clean)
			b[at] ^= 0x10
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			check(name, fmt.Sprintf("byte %d of %d", at, len(b)))
		}
		if err := os.WriteFile(path, clean[:len(clean)-1], 0o644); err != nil {
			t.Fatal(err)
		}
		check(name, "cut short")
		// A snapshot that is gone ends the table there; the newest one cannot be missed.
		if name != names.Marker && !strings.Contains(name, names.SnapshotsDir) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			check(name, "missing")
		}
		if err := os.WriteFile(path, clean, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := tab.Store().Verify(t.Context(), "ads", true, nil); err != nil || r.DamageCount != 0 {
		t.Fatal(err, r)
	}
}

func TestGC(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := populate(t, l)
	orphan := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{StandAloneBytes: 1}, "a", "b")
	w, err := l.Create(ctx, "x/y")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := l.PutIfAbsent(ctx, "foreign/readme", nil); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		for _, err := range l.List(ctx, "", "") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	before := count()
	r, err := tab.Store().GC(ctx, gc.Options{})
	if err != nil || len(r.Removed) != 0 || r.Young != 4 || r.Unknown != 1 || r.Unnamed != 4 || count() != before {
		t.Fatalf("%v %+v", err, r)
	}
	later := func() time.Time { return time.Now().Add(25 * time.Hour) }
	s, err := Create(ctx, l, Options{Clock: later})
	if err != nil {
		t.Fatal(err)
	}
	r, err = s.GC(ctx, gc.Options{DryRun: true})
	// the fourth is a temporary file
	if err != nil || len(r.Removed) != 4 || r.Unnamed != 4 || r.UnnamedBytes == 0 || count() != before {
		t.Fatalf("%v %+v", err, r)
	}
	r, err = s.GC(ctx, gc.Options{})
	if err != nil || len(r.Removed) != 4 || count() != before-3+1 { // the fence's snapshot
		t.Fatalf("%v %+v %d %d", err, r, count(), before)
	}
	if _, err := l.Stat(ctx, orphan.Index); !errors.Is(err, object.ErrNotFound) {
		t.Fatal(err)
	}
	v, err := s.Verify(ctx, "", true, nil)
	if err != nil || v.DamageCount != 0 {
		t.Fatal(err, v)
	}
	// The removed segments of old snapshots are still theirs.
	old, err := tab.At(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	segs, err := old.Segments(ctx, nil)
	if err != nil || len(segs) != 3 {
		t.Fatal(segs, err)
	}
	// A segment that gc took cannot be committed.
	if _, err := tab.Commit(ctx, commit.Change{Operation: "late",
		Ops: []commit.Operation{commit.AddSegments{orphan}}}); !errors.Is(err, object.ErrNotFound) {
		t.Fatal(err)
	}
	// A table with a damaged snapshot is left alone.
	if err := os.WriteFile(filepath.Join(l.Root(), names.SnapshotName("ads", 2)), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := s.GC(ctx, gc.Options{}); err != nil || len(r.Skipped) != 1 || !errors.Is(r.Skipped[0].Err,
		format.ErrCorrupt) {
		t.Fatal(r, err)
	}
}

// TestFeatureTotals: the totals are those of all segments, also of more than are read at once.
func TestFeatureTotals(t *testing.T) {
	ctx := t.Context()
	tab := populate(t, object.NewMemory())
	snap, err := tab.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	before, err := snap.FeatureTotals(ctx)
	if err != nil || len(before) != 8 || before[0].Name != "a" || before[0].Segments != 3 || before[0].Rows != 1010 {
		t.Fatalf("%v %+v", err, before)
	}
	var add []catalog.SegmentDescriptor
	const totalsAtOnce = 4 * object.RequestsAtOnce // segments that are summed up at once
	for range totalsAtOnce + 3 {
		add = append(add, writeSegment(t, tab, nil, []uint32{20}, 1, segment.Options{}, "a", "new"))
	}
	if snap, err = tab.Commit(ctx, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddSegments(add),
		commit.AddFeatures(features("a", "new"))}}); err != nil {
		t.Fatal(err)
	}
	after, err := snap.FeatureTotals(ctx)
	if err != nil || len(after) != 9 || after[0].Segments != 3+totalsAtOnce+3 ||
		after[0].Rows != 1010+20*(totalsAtOnce+3) || after[0].Slots <= before[0].Slots {
		t.Fatalf("%v %+v", err, after)
	}
	if !reflect.DeepEqual(after[1], before[1]) {
		t.Errorf("%+v, before %+v", after[1], before[1])
	}
}
