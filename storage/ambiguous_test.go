package storage

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// latePut answers the next put of a snapshot with an error, and makes it when land is called: a request that a network
// holds back.
type latePut struct {
	object.Store
	armed bool
	land  func() error
}

func (l *latePut) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if !l.armed || !strings.Contains(name, names.SnapshotsDir) {
		return l.Store.PutIfAbsent(ctx, name, data)
	}
	l.armed = false
	l.land = func() error { return l.Store.PutIfAbsent(context.WithoutCancel(ctx), name, data) }
	return object.ErrInjected
}

// TestLatePut: a put that failed for all that the writer can see may still be carried out; the snapshot is whole then.
func TestLatePut(t *testing.T) {
	ctx := t.Context()
	late := &latePut{Store: object.NewMemory()}
	tab := newTable(t, late)
	tab.s.core.Trees.MemtableBytes = 1 // every commit makes runs
	for i := range 3 {
		d := writeSegment(t, tab, nil, []uint32{10}, int64(i), segment.Options{}, "a")
		late.armed = i == 2
		_, err := tab.Commit(ctx, commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures(features("a")), commit.AddSegments{d}}})
		if (err != nil) != (i == 2) || err != nil && !errors.Is(err, object.ErrInjected) {
			t.Fatal(err)
		}
	}
	if err := late.land(); err != nil {
		t.Fatal(err)
	}
	s, err := tab.Latest(ctx)
	if err != nil || s.Info().Number != 3 {
		t.Fatal(s, err)
	}
	r, err := tab.s.Verify(ctx, "", true, nil)
	if err != nil || r.DamageCount > 0 || r.Segments != 3 {
		t.Fatal(err, r)
	}
}

// TestCommitIsDurable: the disk fails to sync the directory of a snapshot that is in its place already. Commit returns
// nil only once a sync has succeeded, so that a crash cannot take back what it returned.
func TestCommitIsDurable(t *testing.T) {
	ctx := t.Context()
	for _, failures := range []int64{1, 2, 3} {
		mem := vfs.NewCrashableMem()
		var left atomic.Int64
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, names.SnapshotsDir) && left.Add(-1) >= 0 {
				return syscall.EIO
			}
			return nil
		}))
		tab := newTable(t, object.NewLocalFS(fs, "/store"))
		if _, err := tab.Commit(ctx, commit.Change{Operation: "first"}); err != nil {
			t.Fatal(err)
		}
		left.Store(failures)
		s, err := tab.Commit(ctx, commit.Change{Operation: "second",
			Ops: []commit.Operation{commit.AddFeatures(features("a"))}})
		if err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		t.Logf("%d failures: %v", failures, err)
		clone := mem.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(1, 2))})
		after, lerr := newTable(t, object.NewLocalFS(clone, "/store")).Latest(ctx)
		if lerr != nil {
			t.Fatal(lerr)
		}
		if err == nil && after.Info().Number != s.Info().Number {
			t.Fatalf("%d failures: commit returned snapshot %d, after the crash the newest is %d", failures,
				s.Info().Number, after.Info().Number)
		}
		if (err == nil) != (failures == 1) {
			t.Fatalf("%d failures: %v", failures, err)
		}
	}
}
