package storage

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestGCInterrupted breaks a gc that takes a segment away at each of its operations: what is left can be committed when
// it is whole, and not otherwise.
func TestGCInterrupted(t *testing.T) {
	ctx := t.Context()
	whole, refused := 0, 0
	for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
		for at := int64(1); ; at++ {
			mem := object.NewMemory()
			tab := populate(t, mem)
			// Objects whose names sort before and after the index's.
			late := writeSegment(t, tab, nil, []uint32{100}, 1, segment.Options{StandAloneBytes: 500, PackBytes: 600},
				"a", "b", "c")
			f := object.NewFault(mem)
			f.DieAt(at, mode)
			s, err := Open(ctx, f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.GC(ctx, gc.Options{NoWait: true}); err != nil && !errors.Is(err, object.ErrInjected) {
				t.Fatalf("operation %d: %v", at, err)
			}
			_, err = tab.Commit(ctx, commit.Change{Operation: "late",
				Ops: []commit.Operation{commit.AddFeatures(features("a", "b", "c")), commit.AddSegments{late}}})
			if err == nil {
				whole++
			} else {
				refused++
			}
			r, err := tab.s.Verify(ctx, "", true, nil)
			if err != nil || r.DamageCount > 0 {
				t.Fatalf("operation %d: %v %v", at, err, r.Damage)
			}
			if f.Operations() < at {
				break
			}
		}
	}
	if whole == 0 || refused == 0 {
		t.Fatalf("%d committed, %d refused", whole, refused)
	}
}

// TestGCTakesFromSlowWriter: a writer that rests for longer than the grace period loses what it wrote before. Its
// segment then cannot be committed, though its index is new.
func TestGCTakesFromSlowWriter(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	mem := object.NewMemory()
	mem.Now = func() time.Time { return now }
	tab := populate(t, mem)
	w, err := tab.NewSegment(ctx, nil, []uint32{100}, segment.Options{StandAloneBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.AddFeature(ctx, 0, feature("a", int64Type), denseRows([]uint32{100}, 1)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	s, err := Create(ctx, mem, Options{Now: mem.Now})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.GC(ctx, gc.Options{}); err != nil || len(r.Removed) != 1 {
		t.Fatalf("%v %+v", err, r)
	}
	if err := w.AddFeature(ctx, 1, feature("b", int64Type), denseRows([]uint32{100}, 1)); err != nil {
		t.Fatal(err)
	}
	d, err := w.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := tab.Commit(ctx, commit.Change{Operation: "late",
		Ops: []commit.Operation{commit.AddFeatures(features("a", "b")), commit.AddSegments{d}}}); err == nil {
		t.Fatalf("snapshot %d has a segment without an object", snap.Info().Number)
	} else {
		t.Log(err)
	}
}

// TestGCLeavesForeignFiles: what lies in a segment's directory and is not a segment's stays, garbage or not.
func TestGCLeavesForeignFiles(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := populate(t, mem)
	orphan := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "a")
	i, err := names.ParseID(orphan.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes.txt", "pack-1", "pack-0000000", "file-+00001", "index.sst.bak"} {
		if err := mem.PutIfAbsent(ctx, i.Dir()+name, []byte("mine")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := tab.s.GC(ctx, gc.Options{NoWait: true})
	if err != nil || len(r.Removed) != 2 || r.Unknown != 5 {
		t.Fatalf("%v %+v", err, r)
	}
	if _, err := mem.Stat(ctx, i.Dir()+"notes.txt"); err != nil {
		t.Fatal(err)
	}
}

// TestGCClock: objects are as old as the clock says that dates them, whatever this machine's says.
func TestGCClock(t *testing.T) {
	ctx := t.Context()
	for _, skew := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		now := time.Now().Add(skew)
		mem := object.NewMemory()
		mem.Now = func() time.Time { return now }
		tab := populate(t, mem)
		w, err := tab.NewSegment(ctx, nil, []uint32{100}, segment.Options{StandAloneBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.AddFeature(ctx, 0, feature("a", int64Type), denseRows([]uint32{100}, 1)); err != nil {
			t.Fatal(err)
		}
		s, err := Create(ctx, mem, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, dry := range []bool{true, false} {
			if r, err := s.GC(ctx, gc.Options{DryRun: dry}); err != nil || len(r.Removed) != 0 || r.Young != 1 ||
				r.Unknown != 0 {
				t.Fatalf("store's clock %v off: %v %+v", skew, err, r)
			}
		}
		w.Abort()
	}
}

// TestGCDryRun: a dry run names what gc then removes, in its order, and removes nothing itself.
func TestGCDryRun(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := populate(t, l)
	for range 3 {
		writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{StandAloneBytes: 1}, "a", "b")
	}
	w, err := l.Create(ctx, "x/y")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	dry, err := tab.s.GC(ctx, gc.Options{NoWait: true, DryRun: true})
	if err != nil || len(dry.Removed) != 10 {
		t.Fatalf("%v %+v", err, dry)
	}
	wet, err := tab.s.GC(ctx, gc.Options{NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	dry.DryRun = false
	if !reflect.DeepEqual(wet, dry) {
		t.Fatalf("dry run: %+v\nthen: %+v", dry, wet)
	}
	if again, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(again.Removed) != 0 ||
		again.Referenced != wet.Referenced {
		t.Fatalf("%v %+v", err, again)
	}
}

// TestCommitTimes: the times of snapshots never go back, whatever clocks do, and AsOf finds the last one that is not
// younger.
func TestCommitTimes(t *testing.T) {
	ctx := t.Context()
	second := func(n int64) time.Time { return time.Unix(n, 0).UTC() }
	far := time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)
	clocks := []time.Time{second(100), second(100), second(50), second(101), second(-5), {}, second(200), far,
		second(300), far.AddDate(3000, 0, 0)}
	last := time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC)
	want := []time.Time{second(100), second(100), second(100), second(101), second(101), second(101), second(200),
		last, last, last}
	mem := object.NewMemory()
	for i, now := range clocks {
		s, err := Create(ctx, mem, Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		tab, err := s.NewTable(ctx, "ads")
		if err != nil {
			t.Fatal(err)
		}
		snap, err := tab.Commit(ctx, commit.Change{Operation: "ingest"})
		if err != nil || !snap.Info().Time.Equal(want[i]) {
			t.Fatalf("commit %d at %v: %v, want %v: %v", i+1, now, snap.Info().Time, want[i], err)
		}
	}
	tab := newTable(t, mem)
	for at, number := range map[time.Time]uint64{
		second(100): 3, second(100).Add(time.Nanosecond): 3, second(101): 6, second(101).Add(-1): 3,
		second(199): 6, second(200): 7,
		last.Add(-1): 7, last: 10, far: 10, far.AddDate(5000, 0, 0): 10,
	} {
		if snap, err := tab.AsOf(ctx, at); err != nil || snap.Info().Number != number {
			t.Errorf("as of %v: %v %v, want %d", at, snap, err, number)
		}
	}
	for _, at := range []time.Time{second(100).Add(-1), second(0), {}} {
		if _, err := tab.AsOf(ctx, at); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(),
			"1970-01-01T00:01:40Z") {
			t.Errorf("as of %v: %v", at, err)
		}
	}
	if r, err := tab.s.Verify(ctx, "", true, nil); err != nil || r.DamageCount > 0 {
		t.Error(err, r.Damage)
	}
}
