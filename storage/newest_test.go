package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestNewest: the newest snapshot is found by one listing, whatever else lies beside the snapshots.
func TestNewest(t *testing.T) {
	ctx := t.Context()
	const n = 200
	dir := names.TableDir("ads") + names.SnapshotsDir
	for name, strays := range map[string][]string{
		"none":   {},
		"before": {dir + "!", dir + "+", dir + "0", dir + "%00", dir + "00000000/0000000000.1", dir + "99999997/x"},
		"after":  {dir + "zzz", dir + "99999999/9999999999.0", dir + "99999999/9999999998.1x"},
		"nearly": {dir + "99999997/9999999798.200", dir + "99999997/9999999799.0200",
			dir + "99999997/9999999799.+200"},
		"of another": {"tables/ads2/snapshots/00000000/0000000000.9999999999"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := object.NewMemory()
			tab := newTable(t, mem)
			for range n {
				mustCommit(t, tab, commit.Change{})
			}
			for _, s := range strays {
				if object.ValidateName(s) != nil {
					continue
				}
				if err := mem.PutIfAbsent(ctx, s, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			counted := object.NewCounted(mem)
			s, err := newTable(t, counted).Latest(ctx)
			if err != nil || s.Info().Number != n {
				t.Fatal(s, err)
			}
			lists := int64(1)
			if name == "before" || name == "nearly" { // one name is asked for, and is not the store's
				lists++
			}
			if c := counted.Counts(); c.Lists != lists || c.Reads != 2 || c.Stats != 0 {
				t.Errorf("%+v", c)
			}
			if s, err = newTable(t, mem).Commit(ctx, commit.Change{Operation: "next"}); err != nil ||
				s.Info().Number != n+1 {
				t.Error(s, err)
			}
			if r, err := newTable(t, mem).s.Verify(ctx, "ads", true, nil); err != nil || r.DamageCount > 0 {
				t.Error(err, r)
			}
		})
	}
}

// TestNewestFromAfar: where requests take long, a table opens and has its newest snapshot after two round trips, at any
// number of snapshots.
func TestNewestFromAfar(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct{ n, expired int }{{n: 1}, {n: 6}, {n: 300}, {n: 300, expired: 250}} {
		mem := object.NewMemory()
		tab := newTable(t, mem)
		for range c.n {
			mustCommit(t, tab, commit.Change{})
		}
		want := uint64(c.n)
		if c.expired > 0 {
			if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: uint64(c.n - c.expired)}); err != nil {
				t.Fatal(err)
			}
			want++
			if _, err := tab.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, start := t.Context(), time.Now()
			s, err := Open(ctx, object.NewDelayed(mem, time.Second), Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, got, err := s.Newest(ctx, "ads")
			if err != nil || got.Info().Number != want {
				t.Fatalf("%+v: %v (%v), want %d", c, got, err, want)
			}
			if n := int(time.Since(start) / time.Second); n > 2 {
				t.Errorf("%+v: %d round trips", c, n)
			}
		})
	}
}

// TestTableVanishes: a table whose snapshots somebody took away under an open handle is not committed to as if they
// were there: nobody would find the commit.
func TestTableVanishes(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	populate(t, l)
	other, err := object.NewLocal(l.Root())
	if err != nil {
		t.Fatal(err)
	}
	tab := newTable(t, other)
	if _, err := tab.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	d := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "a")
	if err := os.RemoveAll(filepath.Join(l.Root(), "tables")); err != nil {
		t.Fatal(err)
	}
	if s, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
		Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{d}}}); !errors.Is(
		err, ErrConflict) {
		t.Fatal(s, err)
	}
	if _, err := newTable(t, l).Latest(ctx); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

// TestTableMadeAnew: a handle that was opened before its table was removed, and another made of its name, neither
// commits to that nor reads it: the rows of the new table stay, and nobody takes them for the old one's.
func TestTableMadeAnew(t *testing.T) {
	ctx := t.Context()
	for _, snapshots := range []int{1, 2, 3, 5} { // of the new table; the old one had 3
		for _, whole := range []bool{true, false} {
			mem := object.NewMemory()
			fill := func(n int, from int64) *Table {
				tab := newTable(t, mem)
				for i := range n {
					d := writeSegment(t, tab, nil, []uint32{10}, from+int64(i), segment.Options{}, "a")
					mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("a")),
						commit.AddSegments{d}}})
				}
				return tab
			}
			old := fill(3, 1)
			late := writeSegment(t, old, nil, []uint32{10}, 99, segment.Options{}, "a")
			for info, err := range mem.List(ctx, names.TablesPrefix, "") {
				if err != nil {
					t.Fatal(err)
				}
				if !whole && info.Name == names.TableRoot("ads") {
					continue // somebody has removed the snapshots alone
				}
				if err := mem.Delete(ctx, info.Name); err != nil {
					t.Fatal(err)
				}
			}
			fill(snapshots, 50)
			what := fmt.Sprintf("%d snapshots, root removed %v", snapshots, whole)
			// With the root left, it is the same table with other snapshots: what is built on one that is there no more
			// conflicts.
			s, err := old.Commit(ctx, commit.Change{Operation: "late", Base: 3,
				Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{late}}})
			if whole && !errors.Is(err, ErrConflict) || !whole && snapshots == 3 && !errors.Is(err, ErrConflict) {
				t.Errorf("%s: committed: %v %v", what, s, err)
			}
			if s, err := old.Latest(ctx); whole && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v %v", what, s, err)
			}
			if s, err := old.At(ctx, 1); whole && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v %v", what, s, err)
			}
			if whole {
				// An expiry, too, was meant for the old one.
				if r, err := old.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err == nil {
					t.Errorf("%s: %+v", what, r)
				}
			}
			fresh, err := newTable(t, mem).Latest(ctx)
			if err != nil || fresh.Info().Rows < uint64(10*snapshots) {
				t.Errorf("%s: the new table has %+v %v", what, fresh.Info(), err)
			}
			verifyClean(t, newTable(t, mem).s)
		}
	}
}

// TestMissingSnapshot takes away each snapshot, the first, some and all: what is behind the gap is not taken for
// garbage, and verify says what is missing. Only of the newest nobody can know.
func TestMissingSnapshot(t *testing.T) {
	ctx := t.Context()
	for _, gone := range [][]uint64{{1}, {2}, {3}, {5}, {2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}} {
		for _, how := range []string{"deleted", "truncated"} {
			mem := object.NewMemory()
			tab := populate(t, mem)
			writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "a")
			for _, n := range gone {
				remove := mem.Delete
				if how == "truncated" {
					remove = func(ctx context.Context, name string) error {
						return mem.Truncate(ctx, object.Info{Name: name})
					}
				}
				if err := remove(ctx, names.SnapshotName("ads", n)); err != nil {
					t.Fatal(err)
				}
			}
			first := names.SnapshotName("ads", gone[0])
			switch all := len(gone) == 6; {
			case all && how == "deleted":
				first = names.TableDir("ads") + names.SnapshotsDir
			case all:
				first = names.SnapshotName("ads", 6)
			}
			for _, table := range []string{"", "ads"} {
				r, err := newTable(t, mem).s.Verify(ctx, table, false, nil)
				if table != "" && len(gone) == 6 && how == "deleted" {
					if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), first) {
						t.Errorf("without %v, %s: %v", gone, how, err)
					}
					continue
				}
				if err != nil || r.DamageCount == 0 || !strings.Contains(fmt.Sprint(r.Damage), first) ||
					r.Snapshots != 6-uint64(len(gone)) {
					t.Errorf("without %v, %s: %v %+v", gone, how, err, r)
				}
			}
			r, err := newTable(t, mem).s.GC(ctx, gc.Options{NoWait: true})
			if err != nil || len(r.Removed) > 0 || len(r.Skipped) != 1 || !errors.Is(r.Skipped[0].Err,
				format.ErrCorrupt) || !strings.Contains(r.Skipped[0].Err.Error(), first) {
				t.Errorf("without %v, %s: gc removed %v: %v", gone, how, r, err)
			}
		}
	}
}

// TestGCWithoutTables: with all tables gone, a disk mounted in part or a copy under way, nothing is garbage.
func TestGCWithoutTables(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	populate(t, mem)
	count := func(prefix string, each func(string)) (n int) {
		for info, err := range mem.List(ctx, prefix, "") {
			if err != nil {
				t.Fatal(err)
			}
			each(info.Name)
			n++
		}
		return n
	}
	count(names.TablesPrefix, func(name string) {
		if err := mem.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	})
	before := count("", func(string) {})
	r, err := newTable(t, mem).s.GC(ctx, gc.Options{NoWait: true})
	if after := count("", func(string) {}); err == nil || after != before {
		t.Fatalf("%d objects of %d are left: %v %v", after, before, r, err)
	}
	if r, err := newTable(t, mem).s.GC(ctx, gc.Options{}); err != nil || r.Young == 0 {
		t.Fatal(r, err)
	}
}

// TestCommitWhileSnapshotsGo: a commit that was built on a snapshot which has expired since, and was truncated, does
// not take the number after it, though all that were made since are truncated too.
func TestCommitWhileSnapshotsGo(t *testing.T) {
	ctx := t.Context()
	meanwhile := &hookedStore{Store: object.NewMemory()}
	tab := newTable(t, meanwhile)
	for range 5 {
		mustCommit(t, tab, commit.Change{})
	}
	meanwhile.before = func(name string) {
		if name != names.SnapshotName("ads", 6) {
			return
		}
		meanwhile.before = nil
		other := newTable(t, meanwhile)
		for range 5 {
			mustCommit(t, other, commit.Change{})
		}
		if _, err := other.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
			t.Error(err)
		}
		if _, err := other.s.GC(ctx, gc.Options{NoWait: true}); err != nil {
			t.Error(err)
		}
	}
	s, err := tab.Commit(ctx, commit.Change{Operation: "late"})
	if err == nil && s.Info().Number != 12 {
		t.Fatal(s.Info())
	}
	newest, lerr := newTable(t, meanwhile).Latest(ctx)
	if lerr != nil || err == nil && newest.Info().Number != 12 {
		t.Fatal(newest, err, lerr)
	}
	t.Log(err)
	verifyClean(t, tab.s)
}

// TestTablesBesideStrays: what is no table's costs one listing, however many files it has.
func TestTablesBesideStrays(t *testing.T) {
	ctx := t.Context()
	mem := object.NewMemory()
	populate(t, mem)
	for i := range 500 {
		if err := mem.PutIfAbsent(ctx, fmt.Sprintf("tables/.x/%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	c := object.NewCounted(mem)
	s, err := Open(ctx, c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Tables(ctx)
	if err != nil || len(got) != 1 || c.Counts().Lists > 4 {
		t.Error(got, err, c.Counts())
	}
}

// unversioned is a store that tells no versions, as a local one.
type unversioned struct{ *object.Memory }

func (u unversioned) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for info, err := range u.Memory.List(ctx, prefix, startAfter) {
			if info.Version = ""; !yield(info, err) {
				return
			}
		}
	}
}

// TestTableMadeAnewWithinATick: a table is removed and made anew so fast, and so alike, that its newest snapshot has
// the name, size and time of the one that a handle has read. The handle's commit is refused.
func TestTableMadeAnewWithinATick(t *testing.T) {
	ctx := t.Context()
	mem := unversioned{object.NewMemory()}
	mem.Now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	fill := func(seed int64) (*Table, catalog.SegmentDescriptor) {
		tab := newTable(t, mem)
		d := writeSegment(t, tab, nil, []uint32{4}, seed, segment.Options{}, "x")
		mustCommit(t, tab, commit.Change{Operation: "append", Ops: []commit.Operation{commit.AddFeatures(features("x")),
			commit.AddSegments{d}}})
		return tab, d
	}
	fill(1)
	old := newTable(t, mem)
	if _, err := old.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	was, err := old.log.Newest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for info, err := range mem.List(ctx, "tables/ads/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := mem.Delete(ctx, info.Name); err != nil {
			t.Fatal(err)
		}
	}
	anew, d := fill(1)
	if n, err := anew.log.Newest(ctx); err != nil || n.Info != was.Info {
		t.Fatalf("the snapshots can be told apart: %+v and %+v, %v", n.Info, was.Info, err)
	}
	if _, err := old.Commit(ctx, commit.Change{Operation: "append",
		Ops: []commit.Operation{commit.SetProperties{"a": "b"}}}); !errors.Is(err, ErrConflict) {
		t.Errorf("a commit by the handle of the table that was removed: %v", err)
	}
	s, err := newTable(t, mem).Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := s.Segments(ctx, nil); err != nil || len(all) != 1 || all[0].ID != d.ID {
		t.Errorf("segments %v, %v; want %s", all, err, d.ID)
	}
}
