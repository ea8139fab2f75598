package storage

import (
	"errors"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// TestGCInterrupted breaks a gc that takes a segment away at each of its operations: what is left can be committed when it
// is whole, and not otherwise.
func TestGCInterrupted(t *testing.T) {
	ctx := t.Context()
	whole, refused := 0, 0
	for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
		for at := int64(1); ; at++ {
			mem := object.NewMemory()
			tab := populate(t, mem)
			// Objects whose names sort before and after the index's.
			late := segment(t, tab, nil, []uint32{100}, 1, SegmentOptions{StandAloneBytes: 500, PackBytes: 600}, "a", "b", "c")
			f := object.NewFault(mem)
			f.DieAt(at, mode)
			s, err := Open(ctx, f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = GC(ctx, s, GCOptions{NoWait: true}); err != nil && !errors.Is(err, object.ErrInjected) {
				t.Fatalf("operation %d: %v", at, err)
			}
			_, err = tab.Commit(ctx, Change{Operation: "late", Features: features("a", "b", "c"), Add: []SegmentDescriptor{late}})
			if err == nil {
				whole++
			} else {
				refused++
			}
			r, err := Verify(ctx, tab.s, "", true, nil)
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

// TestGCTakesFromSlowWriter: a writer that rests for longer than the grace period loses what it wrote before. Its segment
// then cannot be committed, though its index is new.
func TestGCTakesFromSlowWriter(t *testing.T) {
	ctx := t.Context()
	now := time.Now()
	mem := object.NewMemory()
	mem.Now = func() time.Time { return now }
	tab := populate(t, mem)
	w, err := tab.NewSegment(ctx, nil, []uint32{100}, SegmentOptions{StandAloneBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.AddFeature(ctx, 0, feature("a", int64Type), denseRows([]uint32{100}, 1)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	s, err := Open(ctx, mem, Options{Now: mem.Now})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := GC(ctx, s, GCOptions{}); err != nil || len(r.Removed) != 1 {
		t.Fatalf("%v %+v", err, r)
	}
	if err := w.AddFeature(ctx, 1, feature("b", int64Type), denseRows([]uint32{100}, 1)); err != nil {
		t.Fatal(err)
	}
	d, err := w.Finish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := tab.Commit(ctx, Change{Operation: "late", Features: features("a", "b"), Add: []SegmentDescriptor{d}}); err == nil {
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
	orphan := segment(t, tab, nil, []uint32{10}, 1, SegmentOptions{}, "a")
	i, err := parseID(orphan.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes.txt", "pack-1", "pack-0000000", "file-+00001", "index.sst.bak"} {
		if err := mem.PutIfAbsent(ctx, i.dir()+name, []byte("mine")); err != nil {
			t.Fatal(err)
		}
	}
	r, err := GC(ctx, tab.s, GCOptions{NoWait: true})
	if err != nil || len(r.Removed) != 2 || r.Unknown != 5 {
		t.Fatalf("%v %+v", err, r)
	}
	if _, err := mem.Stat(ctx, i.dir()+"notes.txt"); err != nil {
		t.Fatal(err)
	}
}
