package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// layeredScenario commits all that lies over segments, lets snapshots expire and collects them, and returns how many
// commits returned without an error.
func layeredScenario(ctx context.Context, t *testing.T, blobs object.Store) (done uint64, err error) {
	s, err := Create(ctx, blobs, Options{})
	if err != nil {
		return 0, err
	}
	s.core.Trees.MemtableBytes, s.core.Bitmaps.InlineBytes = 300, 0 // runs are made, and every set is an object
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		return 0, err
	}
	write := func(w *segment.Writer, err error, names ...string) (catalog.SegmentDescriptor, error) {
		if err != nil {
			return catalog.SegmentDescriptor{}, err
		}
		defer w.Abort()
		for i, n := range names {
			if err := w.AddFeature(ctx, i, feature(n, int64Type), denseRows([]uint32{20, 5}, 3)); err != nil {
				return catalog.SegmentDescriptor{}, err
			}
		}
		return w.Finish(ctx)
	}
	set := func(d catalog.SegmentDescriptor, rows ...uint32) bitmap.Ref {
		r, e := s.core.Bitmaps.Put(ctx, d.ID, d.Rows, roaring.BitmapOf(rows...))
		err = errors.Join(err, e)
		return r
	}
	commitTo := func(c commit.Change) error {
		if err != nil {
			return err
		}
		c.Operation, c.Base = "test", done
		if _, err := tab.Commit(ctx, c); err != nil {
			return err
		}
		done++
		return nil
	}
	w, werr := tab.NewSegment(ctx, nil, []uint32{20, 5}, segment.Options{})
	a, werr := write(w, werr, "x")
	if werr != nil {
		return done, werr
	}
	if err := commitTo(commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{a}}}); err != nil {
		return done, err
	}
	w, werr = tab.NewOverlaySegment(ctx, a, segment.Options{})
	data, werr := write(w, werr, "y")
	if werr != nil {
		return done, werr
	}
	changes := []func() commit.Change{
		func() commit.Change {
			return commit.Change{Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "y")},
				commit.SetOverlaySegments{{Overlay: "o", Segment: a.ID, Data: data, Covered: set(a, 1, 2)}}}}
		},
		func() commit.Change {
			return commit.Change{Ops: []commit.Operation{commit.DefineLists{{Name: "l"}}, commit.SetListRows{{List: "l",
				Segment: a.ID,
				Rows:    set(a, 5)}}, commit.SetBranches{{Name: "b", Snapshot: 1}}}}
		},
		func() commit.Change {
			return commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID, Rows: set(a, 1)}}}}
		},
		func() commit.Change {
			return commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID, Rows: set(a, 1, 7)}},
				commit.MergeOverlays{"o"}}}
		},
		func() commit.Change { return commit.Change{Ops: []commit.Operation{commit.ExpireBelow(4)}} },
	}
	for _, c := range changes {
		if err := commitTo(c()); err != nil {
			return done, err
		}
	}
	snap, err := tab.Latest(ctx)
	if err != nil {
		return done, err
	}
	held, err := snap.Lease(ctx, "me", lease.Max)
	if err != nil {
		return done, err
	}
	if _, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		return done, err
	}
	return done, errors.Join(held.Renew(ctx, lease.Max), held.Release(ctx))
}

// layeredState checks a store after layeredScenario, however far that came.
func layeredState(t *testing.T, blobs object.Store, done uint64, what string) {
	t.Helper()
	ctx := t.Context()
	s, err := Create(ctx, blobs, Options{})
	if err != nil {
		t.Fatal(what, err)
	}
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(what, err)
	}
	for _, after := range []string{"", ", after gc"} {
		r, err := s.Verify(ctx, "", true, nil)
		if err != nil || r.DamageCount > 0 {
			t.Fatalf("%s%s: %v %v", what, after, err, r.Damage)
		}
		snap, err := tab.Latest(ctx)
		if errors.Is(err, ErrNotFound) && done == 0 {
			return
		}
		if err != nil {
			t.Fatal(what, err)
		}
		infos, err := tab.Snapshots(ctx)
		if err != nil {
			t.Fatal(what, err)
		}
		n := snap.Info().Number
		for _, i := range infos {
			if i.Operation == gc.Operation {
				n--
			}
		}
		if n != done && n != done+1 {
			t.Fatalf("%s: snapshot %d after %d commits", what, n, done)
		}
		if want := []uint64{0, 0, 0, 0, 1, 2, 2}[n]; snap.Info().DeletedRows != want {
			t.Fatalf("%s: %d rows deleted in snapshot %d", what, snap.Info().DeletedRows, n)
		}
		if n >= 3 {
			if v, err := tab.OpenBranch(ctx, "b"); err != nil || v.Snapshot.Info().Number != 1 {
				t.Fatal(what, err)
			}
		}
		if _, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil {
			t.Fatal(what, err)
		}
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "after"}); err != nil {
		t.Fatal(what, err)
	}
}

// TestLayersCrash cuts the power before every single operation on the file system.
func TestLayersCrash(t *testing.T) {
	root := "/stores/x"
	count, step := 0, int64(1)
	if race.Short() {
		step = 5
	}
	for at := int64(0); ; at += step {
		mem := vfs.NewCrashableMem()
		var n atomic.Int64
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if n.Add(1) > at {
				return errPower
			}
			return nil
		}))
		done, err := layeredScenario(t.Context(), t, object.NewLocalFS(fs, root))
		for _, percent := range []int{0, 100} {
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: rand.New(rand.NewPCG(uint64(at), uint64(percent)))})
			layeredState(t, object.NewLocalFS(clone, root), done, fmt.Sprintf("operation %d, %d %%", at, percent))
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errPower) {
			t.Fatalf("operation %d: %v", at, err)
		}
		count++
	}
	t.Logf("%d operations", count)
	if count < 100/int(step) {
		t.Fatalf("only %d operations: is the file system used?", count)
	}
}

// TestLayersFaults fails each request to the object store in turn, before or after it is done.
func TestLayersFaults(t *testing.T) {
	step := int64(1)
	if race.Short() {
		step = 5
	}
	for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
		for at := int64(1); ; at += step {
			mem := object.NewMemory()
			f := object.NewFault(mem)
			f.FailAt(at, mode)
			done, err := layeredScenario(t.Context(), t, f)
			if err != nil && !errors.Is(err, object.ErrInjected) {
				t.Fatalf("operation %d: %v", at, err)
			}
			layeredState(t, mem, done, fmt.Sprintf("operation %d", at))
			if f.Operations() < at {
				break
			}
		}
	}
}

// TestLateDeletes: a put that failed for all that the writer can see is carried out later; the set that it made of two
// stays for it.
func TestLateDeletes(t *testing.T) {
	ctx := t.Context()
	late := &latePut{Store: object.NewMemory()}
	tab := newTable(t, late)
	tab.s.core.Trees.MemtableBytes, tab.s.core.Bitmaps.InlineBytes = 1, 0
	a := writeSegment(t, tab, nil, []uint32{10}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{a}}})
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID, Rows: rowSet(t,
		tab.s, a, 1)}}}})
	late.armed = true
	if _, err := tab.Commit(ctx, commit.Change{Operation: "x", Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID,
		Rows: rowSet(t, tab.s, a, 2)}}}}); !errors.Is(err, object.ErrInjected) {
		t.Fatal(err)
	}
	if err := late.land(); err != nil {
		t.Fatal(err)
	}
	s, err := tab.Latest(ctx)
	if err != nil || s.Info().DeletedRows != 2 {
		t.Fatal(s, err)
	}
	verifyClean(t, tab.s)
}

// TestLayersConcurrent: deletes of the same segment by many at once unite, and of layers set at once one wins.
func TestLayersConcurrent(t *testing.T) {
	ctx := t.Context()
	l := localStore(t)
	tab := newTable(t, l)
	a := writeSegment(t, tab, nil, []uint32{1000}, 1, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{a}}})
	mustCommit(t, tab, commit.Change{Base: 1, Ops: []commit.Operation{commit.DefineOverlays{overlay("o", "y")}}})
	var wg sync.WaitGroup
	const writers, each = 4, 6
	var won, lost atomic.Int64
	for w := range writers {
		h := newTable(t, l)
		h.s.core.Bitmaps.InlineBytes = w % 2 * bitmap.MaxInline
		wg.Go(func() {
			for k := range each {
				c := commit.Change{Operation: "delete", Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID,
					Rows: rowSet(t, h.s,
						a, uint32(w*100+k), uint32(k))}}}}
				if _, err := h.Commit(ctx, c); err != nil {
					t.Error(err)
				}
			}
			y := layer(t, h, "o", a, int64(w), "y")
			switch _, err := h.Commit(ctx, commit.Change{Operation: "layer", Base: 2,
				Ops: []commit.Operation{commit.SetOverlaySegments{y}}}); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, ErrConflict):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := newTable(t, l).Latest(ctx)
	if err != nil || won.Load() != 1 || lost.Load() != writers-1 {
		t.Fatal(won.Load(), lost.Load(), err)
	}
	got, err := s.DeletionVectors(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint32]bool{}
	for w := range uint32(writers) {
		for k := range uint32(each) {
			want[w*100+k], want[k] = true, true
		}
	}
	rows := readRows(t, s, got[0])
	for _, row := range rows {
		if !want[row] {
			t.Errorf("row %d was deleted by nobody", row)
		}
	}
	if len(rows) != len(want) || s.Info().DeletedRows != uint64(len(want)) {
		t.Errorf("%d rows are deleted, want %d", len(rows), len(want))
	}
	verifyClean(t, tab.s)
}

const layersEnv = "STORAGE_TEST_LAYERS_INTO"

// TestLayersProcesses has three processes delete rows and replace what is small while the others do: no delete is lost,
// and each row is deleted where compactions took it.
func TestLayersProcesses(t *testing.T) {
	ctx := t.Context()
	const each, rows = 12, 60
	if root := os.Getenv(layersEnv); root != "" {
		who, err := strconv.Atoi(os.Getenv(layersEnv + "_WHO"))
		if err != nil {
			t.Fatal(err)
		}
		l, err := object.NewLocal(root)
		if err != nil {
			t.Fatal(err)
		}
		tab := newTable(t, l)
		tab.s.core.Trees.MemtableBytes, tab.s.core.Bitmaps.InlineBytes = 500, 20
		for k := 0; k < each; {
			s, err := tab.Latest(ctx)
			if err != nil {
				t.Fatal(err)
			}
			segs, err := s.Segments(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			// Every process deletes rows of its own; a row keeps its number in the one segment that there is.
			c := commit.Change{Operation: "delete", Base: s.Info().Number,
				Ops: []commit.Operation{commit.DeleteRows{{Segment: segs[0].ID, Rows: rowSet(t, tab.s, segs[0],
					uint32(who*each+k))}}}}
			if k%3 == 2 {
				d := writeSegment(t, tab, nil, []uint32{rows}, 1, segment.Options{}, "x")
				deleted, err := s.DeletionVectors(ctx, segs[0])
				if err != nil {
					t.Fatal(err)
				}
				all, err := tab.s.core.Bitmaps.Read(ctx, deleted[0])
				if err != nil {
					t.Fatal(err)
				}
				all.Add(uint32(who*each + k))
				set, err := tab.s.core.Bitmaps.Put(ctx, d.ID, d.Rows, all)
				if err != nil {
					t.Fatal(err)
				}
				c = commit.Change{Operation: "compact", Base: s.Info().Number,
					Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{d},
						commit.RemoveSegments{segs[0].ID}, commit.DeleteRows{{Segment: d.ID, Rows: set}}}}
			}
			switch _, err := tab.Commit(ctx, c); {
			case err == nil:
				k++
			case !errors.Is(err, ErrConflict):
				t.Fatal(err)
			}
		}
		return
	}
	l := localStore(t)
	tab := newTable(t, l)
	mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{writeSegment(t, tab, nil, []uint32{rows}, 1, segment.Options{}, "x")}}})
	var wg sync.WaitGroup
	for who := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLayersProcesses$", "-test.count=1")
		cmd.Env = append(os.Environ(), layersEnv+"="+l.Root(), layersEnv+"_WHO="+fmt.Sprint(who))
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	s, err := tab.Latest(ctx)
	if err != nil || s.Info().DeletedRows != 3*each || s.Info().Number != 3*each+1 {
		t.Fatalf("%+v %v", s.Info(), err)
	}
	verifyClean(t, tab.s)
}

// TestVerifyLayersDamage flips a byte in every object of the golden store in turn: verify says which it is.
func TestVerifyLayersDamage(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goldenStore)); err != nil {
		t.Fatal(err)
	}
	l := localAt(t, dir)
	check := func(name, what string) {
		t.Helper()
		s, err := Open(t.Context(), l, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Verify(t.Context(), "", true, nil)
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
	count := 0
	for info, err := range l.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		name := info.Name
		count++
		path := filepath.Join(dir, filepath.FromSlash(name))
		clean, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(clean) == 0 {
			continue // an expired snapshot, truncated
		}
		for _, at := range []int{0, len(clean) / 2, len(clean) - 1} {
			b := append([]byte(nil), clean...)
			b[at] ^= 0x10
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			check(name, fmt.Sprintf("byte %d of %d", at, len(b)))
		}
		if err := os.WriteFile(path, clean, 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, names.RowsFile) || strings.HasSuffix(name, names.IndexFile) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			check(name, "missing")
			if err := os.WriteFile(path, clean, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count < 15 {
		t.Errorf("%d objects", count)
	}
}
