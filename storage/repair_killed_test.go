package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/repair"
)

// harmed damages, in a copy of a broken's store, what is made anew, what is dropped and what becomes null, and returns
// the copy.
func (b *broken) harmed(more ...string) *object.Memory {
	t := b.t
	t.Helper()
	mem := copyOf(t, b.mem)
	first := b.now.segments[0]
	spoil := []string{idOf(t, first.id).KeysName(), idOf(t, first.layers["o"].id).IndexName(),
		idOf(t, b.now.segments[1].bitmap).RowsName(), idOf(t, b.now.segments[len(b.now.segments)-1].id).IndexName()}
	for _, name := range append(spoil, more...) {
		ruin(t, mem, name, nil)
	}
	return mem
}

func idOf(t *testing.T, s string) names.ID {
	t.Helper()
	id, err := names.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// looks returns how many requests a repair makes that changes nothing: what comes after, writes.
func (b *broken) looks(mem *object.Memory, opts repair.Options) int64 {
	b.t.Helper()
	f := object.NewFault(mem)
	s := brokenStore(b.t, f)
	before := f.Operations()
	if _, err := s.Repair(b.t.Context(), "ads", opts); err != nil {
		b.t.Fatal(err)
	}
	return f.Operations() - before
}

// TestRepairKilled ends a repair at each of its requests from the first that writes on, before it was done and after:
// the store is as it was, or repaired.
func TestRepairKilled(t *testing.T) {
	b := newBroken(t)
	for _, back := range []bool{false, true} {
		opts := repair.Options{NullFeatures: true}
		var more []string
		if back {
			last := uint64(len(b.snapshots))
			opts.From, opts.Undelete = last-1, true
			more = []string{names.SnapshotName("ads", last)}
		}
		killed, repaired := 0, 0
		harmed := func() *object.Memory {
			mem := b.harmed()
			for _, name := range more {
				ruin(t, mem, name, []byte("no snapshot"))
			}
			return mem
		}
		for at := b.looks(harmed(), opts) - 2; ; at++ {
			done := true
			for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
				mem := harmed()
				f := object.NewFault(mem)
				s := brokenStore(t, f)
				what := fmt.Sprintf("request %d, mode %d, from %d", at, mode, opts.From)
				f.DieAt(at, mode)
				apply := opts
				apply.Apply = true
				r, err := s.Repair(t.Context(), "ads", apply)
				if done = done && err == nil; err != nil {
					killed++
					if !errors.Is(err, object.ErrInjected) {
						t.Fatal(what, err)
					}
				}
				s = brokenStore(t, mem)
				_, snap, nerr := s.Newest(t.Context(), "ads")
				if nerr != nil && !back {
					t.Fatal(what, nerr)
				}
				if nerr == nil && snap.Info().Operation == repair.Operation {
					repaired++
					again, rerr := s.Repair(t.Context(), "ads", repair.Options{})
					if rerr != nil || len(again.Items) > 0 {
						t.Fatal(what, rerr, deref(again.Items))
					}
					if err != nil {
						continue
					}
				} else if err == nil {
					t.Fatal(what, "done, and not there")
				} else if s, r = b.repaired(mem, opts, what); r.Snapshot == 0 {
					t.Fatal(what, deref(r.Items))
				}
				b.check(s, r, what)
				if at%29 == 0 {
					b.checkSound(s, r, what)
				}
			}
			if done {
				break
			}
		}
		t.Logf("%d repairs were killed, %d were there all the same or done", killed, repaired)
		if killed < 40 || repaired == 0 {
			t.Errorf("only %d and %d", killed, repaired)
		}
	}
}

// TestRepairRaces has another do something whole at each request of a repair: nothing that is acknowledged is lost, and
// the repair is done, or nothing of it.
func TestRepairRaces(t *testing.T) {
	b := newBroken(t)
	last := uint64(len(b.snapshots))
	first := b.now.segments[0] // it is copied
	others := map[string]func(s *Store, tab *Table) error{
		"append": func(s *Store, tab *Table) error {
			_, err := tab.Commit(t.Context(), commit.Change{Operation: "append"})
			return err
		},
		"delete": func(s *Store, tab *Table) error { // of a segment that is copied: one of both has to give way
			set, err := s.core.Bitmaps.Put(t.Context(), first.id, b.descs[first.id].Rows, roaring.BitmapOf(30))
			if err == nil {
				_, err = tab.Commit(t.Context(), commit.Change{Operation: "delete", Base: last,
					Ops: []commit.Operation{commit.DeleteRows{{Segment: first.id, Rows: set}}}})
			}
			return err
		},
		"expire": func(s *Store, tab *Table) error {
			_, err := tab.Expire(t.Context(), gc.ExpireOptions{KeepLast: 1})
			if err == nil {
				_, err = s.GC(t.Context(), gc.Options{Grace: time.Hour})
			}
			return err
		},
		"repair": func(s *Store, _ *Table) error {
			_, err := s.Repair(t.Context(), "ads", repair.Options{Apply: true})
			return err
		},
	}
	looks, step := int(b.looks(b.harmed(), repair.Options{})), 1
	if race.Short() {
		step = 5
	}
	for name, other := range others {
		both, either := 0, 0
		for at := 1; ; at += step {
			if at > 3 && at < looks/2 {
				at = looks / 2
			}
			mem := b.harmed()
			h := &hookedStore{Store: mem}
			otherStore := brokenStore(t, mem)
			tab, err := otherStore.NewTable(t.Context(), "ads")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tab.Latest(t.Context()); err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("%s at request %d", name, at)
			s := brokenStore(t, h)
			var count atomic.Int64
			ran := false
			var oerr error
			hook := func(string) {
				if count.Add(1) == int64(at) {
					ran = true
					oerr = other(otherStore, tab)
				}
			}
			h.before, h.reads, h.lists = hook, hook, hook
			r, err := s.Repair(t.Context(), "ads", repair.Options{Apply: true})
			h.before, h.reads, h.lists = nil, nil, nil
			for _, e := range []error{err, oerr} {
				if e != nil && !errors.Is(e, ErrConflict) {
					t.Fatal(what, err, oerr)
				}
			}
			if err != nil && oerr != nil {
				t.Fatal(what, "both gave way:", err, oerr)
			}
			if !ran {
				break
			}
			if err == nil && oerr == nil {
				both++
			} else {
				either++
			}
			fresh := brokenStore(t, mem)
			_, snap, nerr := fresh.Newest(t.Context(), "ads")
			if nerr != nil {
				t.Fatal(what, nerr)
			}
			if name == "delete" && oerr == nil { // acknowledged: it is there, whatever the segment is called now
				all, err := snap.Segments(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				sets, err := snap.DeletionVectors(t.Context(), all...)
				if err != nil || !slices.Contains(readRows(t, snap, sets[0]), 30) {
					t.Fatal(what, "the delete is lost", err)
				}
				continue
			}
			if err != nil {
				if r, err = fresh.Repair(t.Context(), "ads", repair.Options{Apply: true}); err != nil {
					t.Fatal(what, err)
				}
			}
			if r.Applied && name != "repair" {
				b.checkAs(fresh, r, last, what)
			}
			verifyClean(t, fresh)
		}
		t.Logf("%s: both were done %d times, one of both %d times", name, both, either)
	}
}

// checkAs is check where snapshots since n have changed no row.
func (b *broken) checkAs(s *Store, r *repair.Report, n uint64, what string) {
	b.t.Helper()
	as := *r
	as.Base = n
	b.check(s, &as, what)
}

// TestRepairBackRaces has a writer that has the damaged newest snapshot in memory, or another repair, commit at each
// request of a repair that goes back behind it: one of both takes the next number, and no acknowledged commit is lost.
func TestRepairBackRaces(t *testing.T) {
	b := newBroken(t)
	ctx := t.Context()
	last := uint64(len(b.snapshots))
	opts := repair.Options{Apply: true, From: last - 1, Undelete: true}
	for _, who := range []string{"writer", "repair"} {
		first, second := 0, 0
		for at := 1; ; at += 1 + min(at/5, 4) {
			mem, tab := b.headless()
			h := &hookedStore{Store: mem}
			var count atomic.Int64
			ran := false
			var other uint64 // snapshot that the other made
			var oerr error
			hook := func(string) {
				if count.Add(1) != int64(at) {
					return
				}
				ran = true
				if who == "writer" {
					var s *Snapshot
					if s, oerr = tab.Commit(ctx, commit.Change{Operation: "append"}); oerr == nil {
						other = s.Info().Number
					}
					return
				}
				var r *repair.Report
				if r, oerr = brokenStore(t, mem).Repair(ctx, "ads", opts); oerr == nil {
					other = r.Snapshot
				}
			}
			s := brokenStore(t, h)
			h.before, h.reads, h.lists = hook, hook, hook
			r, err := s.Repair(ctx, "ads", opts)
			h.before, h.reads, h.lists = nil, nil, nil
			what := fmt.Sprintf("%s at request %d: %v, %v", who, at, err, oerr)
			if !ran {
				break
			}
			if oerr != nil {
				t.Fatal(what)
			}
			fresh := brokenStore(t, mem)
			made, nerr := fresh.At(ctx, "ads", other)
			if nerr != nil {
				t.Fatal(what, nerr)
			}
			switch {
			case err == nil: // the repair was first
				first++
				if r.Snapshot != last+1 || other != last+2 || made.Info().Operation != "append" {
					t.Fatal(what, r.Snapshot, other, made.Info())
				}
			case other != last+1:
				t.Fatal(what, other)
			default: // refused: the newest can be read again, or it is another
				second++
			}
			if _, err := fresh.Repair(ctx, "ads", repair.Options{Apply: true}); err != nil {
				t.Fatal(what, err)
			}
			verifyClean(t, fresh)
		}
		t.Logf("%s: the repair was first %d times, and gave way %d times", who, first, second)
		if second == 0 {
			t.Error(who, "the repair never gave way")
		}
	}
}

// headless returns a copy of a broken's store whose newest snapshot is damaged, and a table that has read it before. Of
// the snapshot the header is whole.
func (b *broken) headless() (*object.Memory, *Table) {
	b.t.Helper()
	mem := copyOf(b.t, b.mem)
	tab, err := brokenStore(b.t, mem).NewTable(b.t.Context(), "ads")
	if err == nil {
		_, err = tab.Latest(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	name := names.SnapshotName("ads", uint64(len(b.snapshots)))
	data := objectsOf(b.t, mem)[name]
	data[len(data)-1] ^= 1
	ruin(b.t, mem, name, data)
	return mem, tab
}

// TestRepairBehindWriters: the newest snapshot is damaged while writers have it in memory. One that commits first makes
// the table whole again; one that comes after a repair builds on that, and is refused where it was made against what is
// lost.
func TestRepairBehindWriters(t *testing.T) {
	b := newBroken(t)
	last := uint64(len(b.snapshots))
	ctx := t.Context()
	back := repair.Options{Apply: true, From: last - 1, Undelete: true}
	// The writer first.
	mem, tab := b.headless()
	if _, err := tab.Commit(ctx, commit.Change{Operation: "append"}); err != nil {
		t.Fatal(err)
	}
	s := brokenStore(t, mem)
	if _, err := s.Repair(ctx, "ads", back); err == nil {
		t.Fatal("it went back behind a snapshot that can be read")
	}
	r, err := s.Repair(ctx, "ads", repair.Options{Apply: true})
	if err != nil || len(r.Items) != 1 || r.Items[0].Action != repair.Expire {
		t.Fatal(err, deref(r.Items))
	}
	b.checkAs(s, r, last, "a writer first")
	verifyClean(t, s)
	// The repair first.
	mem, tab = b.headless()
	s = brokenStore(t, mem)
	if r, err = s.Repair(ctx, "ads", back); err != nil || r.Snapshot != last+1 {
		t.Fatal(err, r)
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "append"}); err != nil {
		t.Fatal(err)
	}
	lost := b.now.segments[len(b.now.segments)-1]
	for base, want := range map[uint64]error{last - 1: nil, last: ErrConflict} {
		_, err := tab.Commit(ctx, commit.Change{Operation: "change", Base: base,
			Ops: []commit.Operation{commit.SetProperties{"base": fmt.Sprint(base)}}})
		if !errors.Is(err, want) || want != nil && !errors.Is(err, commit.ErrLost) {
			t.Errorf("a change made against snapshot %d: %v", base, err)
		}
	}
	if got, err := tab.Latest(ctx); err != nil || got.Info().Number != last+3 {
		t.Fatal(got.Info(), err)
	} else if d, err := got.SegmentsByID(ctx, lost.id); err != nil || d[0] != nil {
		t.Fatal("a lost segment is there", err)
	}
	b.checkSound(s, r, "the repair first")
}

// TestRepairIsSure: what cannot be looked at, but may be whole, is not taken out, nor is what is damaged only once.
func TestRepairIsSure(t *testing.T) {
	b := newBroken(t)
	ctx := t.Context()
	mem := copyOf(t, b.mem)
	pack := idOf(t, b.now.segments[0].id).ObjectName(names.PackObject, 0)
	h := &failingReads{Store: mem, name: pack, err: errors.New("input/output error")}
	s := brokenStore(t, h)
	r, err := s.Repair(ctx, "ads", repair.Options{Apply: true})
	if err == nil || !strings.Contains(err.Error(), "input/output") {
		t.Fatal(r, err)
	}
	h.err, h.left = nil, 1
	r, err = s.Repair(ctx, "ads", repair.Options{Apply: true})
	if err != nil || r.Applied || r.Left() != 1 || r.Repairs() != 0 || r.Items[0].ID != b.now.segments[0].id {
		t.Fatalf("%v %+v", err, deref(r.Items))
	}
	if !maps.EqualFunc(objectsOf(t, b.mem), objectsOf(t, mem), bytes.Equal) {
		t.Fatal("the store was changed")
	}
}

// failingReads fails the reads of an object, or, without an error, changes what some of them return.
type failingReads struct {
	object.Store
	name string
	err  error
	left int
}

func (f *failingReads) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	err := f.Store.ReadAt(ctx, name, p, off)
	if name != f.name || len(p) == 0 {
		return err
	}
	if f.err != nil {
		return f.err
	}
	if f.left > 0 {
		f.left--
		p[len(p)/2] ^= 1
	}
	return err
}

// TestRepairCrash cuts the power during a repair on a local disk: after it the table is as it was, or repaired.
func TestRepairCrash(t *testing.T) {
	b := newBroken(t)
	clean := objectsOf(t, b.harmed())
	root, crashes := "/stores/x", 0
	step := int64(7)
	if race.Short() {
		step = 50
	}
	for at := int64(0); ; at += step {
		mem := vfs.NewCrashableMem()
		var n, limit atomic.Int64
		limit.Store(1 << 62)
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if n.Add(1) > limit.Load() {
				return errPower
			}
			return nil
		}))
		l := object.NewLocalFS(fs, root)
		for name, data := range clean {
			// Pebble's file system overwrites what it was given to write.
			if err := l.PutIfAbsent(t.Context(), name, bytes.Clone(data)); err != nil {
				t.Fatal(err)
			}
		}
		s := brokenStore(t, l)
		limit.Store(n.Load() + at)
		r, err := s.Repair(t.Context(), "ads", repair.Options{Apply: true})
		if err != nil && !errors.Is(err, errPower) {
			t.Fatal(at, err)
		}
		for _, percent := range []int{0, 100} {
			what := fmt.Sprintf("operation %d, %d %%", at, percent)
			clone := object.NewLocalFS(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: rand.New(rand.NewPCG(uint64(at), uint64(percent)))}), root)
			again := brokenStore(t, clone)
			_, snap, nerr := again.Newest(t.Context(), "ads")
			if nerr != nil {
				t.Fatal(what, nerr)
			}
			if did := snap.Info().Operation == repair.Operation; !did && err == nil {
				t.Fatal(what, "it was done, and is gone")
			} else if !did {
				if r, nerr = again.Repair(t.Context(), "ads", repair.Options{Apply: true}); nerr != nil || !r.Applied {
					t.Fatal(what, nerr)
				}
			} else if err != nil {
				verifyClean(t, again)
				continue
			}
			b.check(again, r, what)
			verifyClean(t, again)
		}
		if crashes++; err == nil {
			break
		}
	}
	t.Logf("%d crashes", crashes)
}
