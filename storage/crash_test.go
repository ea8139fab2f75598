package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

var errPower = errors.New("power is out")

// scenario makes three commits, and returns how many returned without an error.
func scenario(ctx context.Context, blobs object.Store) (done int, err error) {
	s, err := Create(ctx, blobs, Options{})
	if err != nil {
		return 0, err
	}
	s.core.Trees.MemtableBytes = 200 // every commit makes runs
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		return 0, err
	}
	for n := range 3 {
		c := commit.Change{Operation: "ingest", Base: uint64(n),
			Ops: []commit.Operation{commit.AddFeatures(features("a", "b"))}}
		w, err := tab.NewSegment(ctx, partition("ds", fmt.Sprint(n%2)), []uint32{20, 5},
			segment.Options{StandAloneBytes: 150})
		if err != nil {
			return done, err
		}
		for i, f := range commit.Op[commit.AddFeatures](&c) {
			if err := w.AddFeature(ctx, i, f, denseRows([]uint32{20, 5}, int64(n+i)<<40)); err != nil {
				w.Abort()
				return done, err
			}
		}
		d, err := w.Finish(ctx)
		if err != nil {
			w.Abort()
			return done, err
		}
		c.Set(commit.AddSegments{d})
		if n == 2 {
			c.Set(commit.OverwritePartitions{d.Partition})
		}
		if _, err := tab.Commit(ctx, c); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// TestCrash cuts the power before every single operation on the file system, with all, some or none of what was not
// synced lost: the store opens, verifies deep, and holds what was committed, or one commit more.
func TestCrash(t *testing.T) {
	ctx := t.Context()
	root := "/stores/x"
	count := 0
	for at := int64(0); ; at++ {
		mem := vfs.NewCrashableMem()
		var n atomic.Int64
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if n.Add(1) > at {
				return errPower
			}
			return nil
		}))
		done, err := scenario(ctx, object.NewLocalFS(fs, root))
		for _, percent := range []int{0, 50, 100} {
			clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent,
				RNG: rand.New(rand.NewPCG(uint64(at), uint64(percent)))})
			checkAfterCrash(t, object.NewLocalFS(clone, root), done, fmt.Sprintf("operation %d, %d %%", at, percent))
		}
		if t.Failed() {
			return
		}
		if err == nil {
			break
		}
		count++
	}
	t.Logf("%d operations", count)
	if count < 50 {
		t.Fatalf("only %d operations: is the file system used?", count)
	}
}

func checkAfterCrash(t *testing.T, blobs object.Store, done int, what string) {
	t.Helper()
	ctx := t.Context()
	s, err := Create(ctx, blobs, Options{})
	if err != nil {
		t.Fatal(what, err)
	}
	r, err := s.Verify(ctx, "", true, nil)
	if err != nil || r.DamageCount > 0 {
		t.Fatalf("%s: %v %v", what, err, r.Damage)
	}
	tab, err := s.NewTable(ctx, "ads")
	if err != nil {
		t.Fatal(what, err)
	}
	snap, err := tab.Latest(ctx)
	if errors.Is(err, ErrNotFound) && done == 0 {
		return
	}
	if err != nil {
		t.Fatal(what, err)
	}
	got := int(snap.Info().Number)
	if got != done && got != done+1 {
		t.Fatalf("%s: snapshot %d after %d commits", what, got, done)
	}
	wantRows := []uint64{0, 25, 50, 50}[got]
	if snap.Info().Rows != wantRows {
		t.Fatalf("%s: %d rows, want %d", what, snap.Info().Rows, wantRows)
	}
	// What is left over is garbage that gc removes, and the store works on.
	if _, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil {
		t.Fatal(what, err)
	}
	if _, err := tab.Commit(ctx, commit.Change{Operation: "after"}); err != nil {
		t.Fatal(what, err)
	}
	if r, err := s.Verify(ctx, "", true, nil); err != nil || r.DamageCount > 0 {
		t.Fatalf("%s, after gc: %v %v", what, err, r.Damage)
	}
}

// TestFaults fails each request to the object store in turn, before or after it is done: what Commit reports is true.
func TestFaults(t *testing.T) {
	ctx := t.Context()
	for _, mode := range []object.FaultMode{object.FailBefore, object.FailAfter} {
		for at := int64(1); ; at++ {
			mem := object.NewMemory()
			f := object.NewFault(mem)
			f.FailAt(at, mode)
			done, err := scenario(ctx, f)
			if err != nil && !errors.Is(err, object.ErrInjected) {
				t.Fatalf("operation %d: %v", at, err)
			}
			s, err2 := Create(ctx, mem, Options{})
			if err2 != nil {
				t.Fatal(err2)
			}
			r, err2 := s.Verify(ctx, "", true, nil)
			if err2 != nil || r.DamageCount > 0 {
				t.Fatalf("operation %d: %v %v", at, err2, r.Damage)
			}
			if int(r.Snapshots) != done {
				t.Fatalf("operation %d: %d snapshots, %d commits returned: %v", at, r.Snapshots, done, err)
			}
			if f.Operations() < at {
				break
			}
		}
	}
}

const processEnv = "STORAGE_TEST_COMMIT_TO"

// TestProcesses has two real processes commit to one store at once: every commit succeeds and none is lost.
func TestProcesses(t *testing.T) {
	const each = 15
	if root := os.Getenv(processEnv); root != "" {
		l, err := object.NewLocal(root)
		if err != nil {
			t.Fatal(err)
		}
		tab := newTable(t, l)
		for k := range each {
			d := writeSegment(t, tab, partition("k", fmt.Sprint(k)), []uint32{10}, int64(k), segment.Options{}, "a")
			if _, err := tab.Commit(t.Context(), commit.Change{Operation: "ingest",
				Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{d},
					commit.AddSources{{Fingerprint: fmt.Sprint(os.Getpid(), "-", k), Name: "x"}}}}); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	l := localStore(t)
	var wg sync.WaitGroup
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestProcesses$", "-test.count=1")
		cmd.Env = append(os.Environ(), processEnv+"="+l.Root())
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	s, err := newTable(t, l).Latest(t.Context())
	if err != nil || s.Info().Number != 2*each || s.Info().Rows != 2*each*10 {
		t.Fatalf("%+v %v", s, err)
	}
	r, err := s.Table().Store().Verify(t.Context(), "", true, nil)
	if err != nil || r.DamageCount > 0 || r.Segments != 2*each {
		t.Fatalf("%v %+v", err, r)
	}
}

// A killedFS is the file system of a process that is killed when it has linked a file whose name ends in at.
type killedFS struct {
	vfs.FS
	at   string
	dead bool
}

func (k *killedFS) Link(from, to string) error {
	err := k.FS.Link(from, to)
	k.dead = k.dead || strings.HasSuffix(to, k.at)
	return err
}

func (k *killedFS) OpenDir(name string) (vfs.File, error) {
	if k.dead {
		return nil, errPower
	}
	return k.FS.OpenDir(name)
}

// TestCrashBetweenDirectories: a writer is killed when others see its snapshot, the last of a directory, and before it
// is durable. Another commits after it, and the power fails: there is no gap.
func TestCrashBetweenDirectories(t *testing.T) {
	ctx := t.Context()
	root := "/stores/x"
	mem := vfs.NewCrashableMem()
	tab := newTable(t, object.NewLocalFS(mem, root))
	const last = 99
	for range last - 1 {
		mustCommit(t, tab, commit.Change{})
	}
	killed := &killedFS{FS: mem, at: ".99"}
	if _, err := newTable(t, object.NewLocalFS(killed, root)).Commit(ctx,
		commit.Change{Operation: "killed"}); !errors.Is(err, errPower) {
		t.Fatal(err)
	}
	if s := mustCommit(t, newTable(t, object.NewLocalFS(mem, root)), commit.Change{}); s.Info().Number != last+1 {
		t.Fatal(s.Info())
	}
	clone := mem.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))})
	after := newTable(t, object.NewLocalFS(clone, root))
	r, err := after.s.Verify(ctx, "ads", true, nil)
	if err != nil || r.DamageCount > 0 {
		t.Error(err, r.Damage)
	}
}

// TestPurgeIsDurable: what a purge has removed does not come back when the power fails.
func TestPurgeIsDurable(t *testing.T) {
	ctx := t.Context()
	root := "/stores/x"
	mem := vfs.NewCrashableMem()
	tab := newTable(t, object.NewLocalFS(mem, root))
	segs := replaceAll(t, tab, 3)
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	if r, err := tab.Purge(ctx); err != nil || len(r.Removed) == 0 {
		t.Fatal(r, err)
	}
	clone := object.NewLocalFS(mem.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 1))}), root)
	for _, d := range segs[:2] {
		i, _ := names.ParseID(d.ID)
		for info, err := range clone.List(ctx, i.Dir(), "") {
			t.Error("is there after a crash:", info.Name, err)
		}
	}
	verifyClean(t, newTable(t, clone).s)
}
