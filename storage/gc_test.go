package storage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestGCBranchWithoutCopy: where the copy of a snapshot is missing that a branch reads, what that named is not taken
// for garbage: the table is skipped. When the branch is dropped, it is.
func TestGCBranchWithoutCopy(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	tab := newTable(t, mem)
	segs := replaceAll(t, tab, 3)
	mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 1}}}})
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(err)
	}
	if err := mem.Delete(ctx, names.PinnedName("ads", 1)); err != nil {
		t.Fatal(err)
	}
	r, err := newTable(t, mem).s.GC(ctx, gc.Options{NoWait: true})
	if err != nil || len(r.Skipped) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if !segmentThere(t, tab.s, segs[0]) {
		t.Error("gc took what a branch reads")
	}
	mustCommit(t, tab, commit.Change{Base: 5, Ops: []commit.Operation{commit.DropBranches{"b"}}})
	if r, err := newTable(t, mem).s.GC(ctx, gc.Options{NoWait: true}); err != nil || len(r.Skipped) != 0 ||
		segmentThere(t, tab.s, segs[0]) {
		t.Errorf("%+v %v", r, err)
	}
	verifyClean(t, tab.s)
}

// TestGCOfRemovedTable: somebody removes a table, or one that had no commit yet, while gc looks at it: gc makes none of
// its name.
func TestGCOfRemovedTable(t *testing.T) {
	ctx := t.Context()
	for _, commits := range []int{0, 3} {
		h := &hookedStore{Store: object.NewMemory()}
		tab := newTable(t, h)
		replaceAll(t, tab, commits)
		writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "a") // loose
		h.before = func(name string) {
			if !strings.Contains(name, names.CondemnedPrefix) {
				return
			}
			h.before = nil
			for info, err := range h.List(ctx, names.TablesPrefix, "") {
				if err := errors.Join(err, h.Delete(ctx, info.Name)); err != nil {
					t.Error(err)
				}
			}
		}
		r, err := tab.s.GC(ctx, gc.Options{NoWait: true})
		if err != nil || len(r.Skipped) != 1 {
			t.Errorf("%+v %v", r, err)
		}
		for info, err := range h.List(ctx, names.TablesPrefix, "") {
			t.Error("gc made", info.Name, err)
		}
	}
}

// A statFS calls before ahead of every Stat: a listing of a local store reads the names of a directory first and looks
// at each file later.
type statFS struct {
	vfs.FS
	before func(name string)
}

func (s *statFS) Stat(name string) (vfs.FileInfo, error) {
	if s.before != nil {
		s.before(name)
	}
	return s.FS.Stat(name)
}

// TestGCAndRenewalOnDisk: gc has read the names of leases, and rests before it looks at the files. A lease that is
// renewed meanwhile, however often, holds.
func TestGCAndRenewalOnDisk(t *testing.T) {
	ctx := t.Context()
	for renewals := range 4 {
		fs := &statFS{FS: vfs.NewMem()}
		tab := newTable(t, object.NewLocalFS(fs, "/stores/x"))
		segs, lease := leasedAndExpired(t, tab)
		fs.before = func(name string) {
			if !strings.Contains(name, names.LeasesDir) {
				return
			}
			fs.before = nil
			for range renewals {
				if err := lease.Renew(ctx, time.Hour); err != nil {
					t.Error(err)
				}
			}
		}
		r, err := newTable(t, object.NewLocalFS(fs, "/stores/x")).s.GC(ctx, gc.Options{NoWait: true})
		if err != nil || len(r.Held) != 1 || fs.before != nil {
			t.Errorf("%d renewals: %+v %v", renewals, r, err)
		}
		if err := lease.Renew(ctx, time.Hour); err != nil {
			t.Error(err)
		}
		if _, err := newTable(t, object.NewLocalFS(fs, "/stores/x")).At(ctx, 2); err != nil ||
			!segmentThere(t, tab.s, segs[1]) {
			t.Errorf("%d renewals: what is leased is gone: %v", renewals, err)
		}
	}
}

// TestNewestOnDisk: a reader has read the names of the snapshots, and rests before it looks at the newest. That expires
// meanwhile, and is truncated: there is a newer one, and nothing is damaged.
func TestNewestOnDisk(t *testing.T) {
	ctx := t.Context()
	for what, newest := range map[string]func(tab *Table) (uint64, error){
		"newest": func(tab *Table) (uint64, error) {
			_, s, err := tab.s.Newest(ctx, "ads")
			if err != nil {
				return 0, err
			}
			return s.Info().Number, nil
		},
		"gc": func(tab *Table) (uint64, error) {
			r, err := tab.s.GC(ctx, gc.Options{})
			if err != nil || len(r.Skipped) > 0 {
				return 0, fmt.Errorf("%v %v", err, r.Skipped)
			}
			s, err := tab.Latest(ctx)
			if err != nil {
				return 0, err
			}
			return s.Info().Number, nil
		},
	} {
		fs := &statFS{FS: vfs.NewMem()}
		tab := newTable(t, object.NewLocalFS(fs, "/stores/x"))
		replaceAll(t, tab, 4)
		fs.before = func(name string) {
			if !strings.HasSuffix(name, ".4") {
				return
			}
			fs.before = nil
			replaceAll(t, tab, 2)
			if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
				t.Error(err)
			}
			if r, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired == 0 {
				t.Error(r, err)
			}
		}
		n, err := newest(newTable(t, object.NewLocalFS(fs, "/stores/x")))
		if err != nil || n < 6 || fs.before != nil {
			t.Errorf("%s: %d %v", what, n, err)
		}
	}
}
