package storage

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestGCBranchWithoutCopy: where the copy of a snapshot is missing that a branch reads, what that named is not taken for garbage: the table is skipped. When the
// branch is dropped, it is.
func TestGCBranchWithoutCopy(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	segs := replaceAll(t, tab, 3)
	mustCommit(t, tab, Change{Base: 3, Branches: []Branch{{Name: "b", Snapshot: 1}}})
	if _, err := tab.Expire(ctx, ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := GC(ctx, tab.s, GCOptions{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if err := mem.Delete(ctx, pinnedName("ads", 1)); err != nil {
		t.Fatal(err)
	}
	r, err := GC(ctx, newTable(t, mem).s, GCOptions{NoWait: true})
	if err != nil || len(r.Skipped) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if !segmentThere(t, tab.s, segs[0]) {
		t.Error("gc took what a branch reads")
	}
	mustCommit(t, tab, Change{Base: 5, DropBranches: []string{"b"}})
	if r, err := GC(ctx, newTable(t, mem).s, GCOptions{NoWait: true}); err != nil || len(r.Skipped) != 0 || segmentThere(t, tab.s, segs[0]) {
		t.Errorf("%+v %v", r, err)
	}
	verifyClean(t, tab.s)
}

// TestGCOfRemovedTable: somebody removes a table, or one that had no commit yet, while gc looks at it: gc makes none of its name.
func TestGCOfRemovedTable(t *testing.T) {
	ctx := t.Context()
	for _, commits := range []int{0, 3} {
		h := &hookedStore{Store: object.NewMemory()}
		tab := newTable(t, h)
		replaceAll(t, tab, commits)
		segment(t, tab, nil, []uint32{10}, 1, SegmentOptions{}, "a") // loose
		h.before = func(name string) {
			if !strings.Contains(name, condemnedPrefix) {
				return
			}
			h.before = nil
			for info, err := range h.List(ctx, tablesPrefix, "") {
				if err := errors.Join(err, h.Delete(ctx, info.Name)); err != nil {
					t.Error(err)
				}
			}
		}
		r, err := GC(ctx, tab.s, GCOptions{NoWait: true})
		if err != nil || len(r.Skipped) != 1 {
			t.Errorf("%+v %v", r, err)
		}
		for info, err := range h.List(ctx, tablesPrefix, "") {
			t.Error("gc made", info.Name, err)
		}
	}
}
