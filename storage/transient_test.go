package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// openFiles counts the files of a file system that are open.
type openFiles struct {
	vfs.FS
	n atomic.Int64
}

type openFile struct {
	vfs.File
	of     *openFiles
	closed bool
}

func (f *openFile) Close() error {
	if !f.closed {
		f.closed = true
		f.of.n.Add(-1)
	}
	return f.File.Close()
}

func (o *openFiles) count(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	o.n.Add(1)
	return &openFile{File: f, of: o}, nil
}

func (o *openFiles) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.count(o.FS.Create(name, c))
}
func (o *openFiles) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return o.count(o.FS.Open(name, opts...))
}
func (o *openFiles) OpenDir(name string) (vfs.File, error) { return o.count(o.FS.OpenDir(name)) }

// TestDiskErrors fails every single operation on the file system once, while a table is committed to, opened, verified
// and collected, and lets the process go on. What returned an error is run again and succeeds, nothing that a commit
// returned is lost to a crash right after, no file stays open, and what the failed attempts left is garbage that gc
// takes.
func TestDiskErrors(t *testing.T) {
	ctx, step := t.Context(), int64(1)
	if race.Short() {
		step = 5
	}
	for at, last := int64(1), false; !last; at += step {
		errno := []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT}[at%3]
		mem := vfs.NewCrashableMem()
		var n atomic.Int64
		fs := &openFiles{FS: errorfs.Wrap(mem, errorfs.InjectorFunc(func(errorfs.Op) error {
			if n.Add(1) == at {
				return errno
			}
			return nil
		}))}
		what := fmt.Sprintf("%v at operation %d", errno, at)
		l := object.NewLocalFS(fs, "/stores/x")
		tab := newTable(t, object.NewLocalFS(mem, "/stores/x"))
		tab.s.core.Blobs, tab.s.core.Trees.Blobs, tab.s.core.Trees.MemtableBytes = l, l, 200
		crash := func() object.Store {
			return object.NewLocalFS(mem.CrashClone(vfs.CrashCloneCfg{RNG: rand.New(rand.NewPCG(uint64(at), 0))}),
				"/stores/x")
		}
		// again runs a step until it succeeds; it may fail once, for the disk's reason.
		again := func(step func(context.Context) error) {
			err := step(ctx)
			if err != nil {
				if !errors.Is(err, errno) {
					t.Fatalf("%s: %v", what, err)
				}
				if err = step(ctx); err != nil {
					t.Fatalf("%s, again: %v", what, err)
				}
			}
		}
		for i := range 3 {
			again(func(ctx context.Context) error {
				d, err := trySegment(ctx, tab, i)
				if err != nil {
					return err
				}
				c := commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures(features("a", "b")),
					commit.AddSegments{d}, commit.AddSources{{Fingerprint: fmt.Sprint(i), Name: "x"}}}}
				_, err = tab.Commit(ctx, c)
				if errors.Is(err, ErrDuplicateSource) {
					t.Fatalf("%s: the commit before was made, and returned an error", what)
				}
				return err
			})
			s, err := newTable(t, crash()).Latest(ctx)
			if err != nil || s.Info().Number != uint64(i+1) {
				t.Fatalf("%s: after commit %d and a crash: %v %v", what, i+1, s, err)
			}
		}
		again(func(ctx context.Context) error {
			s, err := Open(ctx, l, Options{})
			if err == nil {
				_, _, err = s.Newest(ctx, "ads")
			}
			return err
		})
		again(func(ctx context.Context) error {
			r, err := tab.s.Verify(ctx, "", true, nil)
			if err == nil && r.DamageCount > 0 {
				err = errors.Join(r.Damage...)
			}
			return err
		})
		again(func(ctx context.Context) error {
			_, err := tab.s.GC(ctx, gc.Options{NoWait: true})
			return err
		})
		reached := n.Swap(1 << 40) // past every fault
		r, err := tab.s.GC(ctx, gc.Options{NoWait: true})
		if err != nil || len(r.Removed) > 0 {
			t.Fatalf("%s: gc left %v %v", what, r, err)
		}
		if v, err := tab.s.Verify(ctx, "", true, nil); err != nil || v.DamageCount > 0 || v.Segments != 3 {
			t.Fatalf("%s: %v %+v", what, err, v)
		}
		if open := fs.n.Load(); open != 0 {
			t.Fatalf("%s: %d files are open", what, open)
		}
		if reached < at {
			t.Logf("%d operations", reached)
			last = true
		}
	}
}

// trySegment writes a segment with a pack and a single file, or returns the first error.
func trySegment(ctx context.Context, tab *Table, seed int) (catalog.SegmentDescriptor, error) {
	stripes := []uint32{20, 5}
	w, err := tab.NewSegment(ctx, partition("ds", fmt.Sprint(seed%2)), stripes, segment.Options{StandAloneBytes: 150})
	if err != nil {
		return catalog.SegmentDescriptor{}, err
	}
	defer w.Abort()
	for i, name := range []string{"a", "b"} {
		if err := w.AddFeature(ctx, i, feature(name, int64Type), denseRows(stripes, int64(seed)<<(40*i))); err != nil {
			return catalog.SegmentDescriptor{}, err
		}
	}
	return w.Finish(ctx)
}
