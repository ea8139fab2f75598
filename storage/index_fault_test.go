package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/dsistore/dsistore/storage/object"
)

// TestIndexDiskFull fails every operation that changes the index database in turn, and all after it: SyncIndex returns an
// error or nothing was needed, the process lives, the objects stay as they were, and a rebuild on a sound disk mends all.
func TestIndexDiskFull(t *testing.T) {
	ctx := t.Context()
	for n := int64(0); ; n++ {
		mem := vfs.NewMem()
		var left atomic.Int64
		left.Store(1 << 40)
		var failed atomic.Bool
		full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsRead || !strings.Contains(op.Path, indexDir) || left.Add(-1) >= 0 {
				return nil
			}
			failed.Store(true)
			return syscall.ENOSPC
		}))
		l := object.NewLocalFS(full, "/store")
		tab := newTable(t, l)
		for i := range 2 {
			d := segment(t, tab, nil, []uint32{10}, int64(i), SegmentOptions{}, "a")
			if _, err := tab.Commit(ctx, Change{Operation: "ingest", Features: features("a"), Add: []SegmentDescriptor{d}}); err != nil {
				t.Fatal(err)
			}
		}
		left.Store(n)
		err := SyncIndex(ctx, tab.s)
		if err == nil && !failed.Load() {
			t.Logf("%d operations", n)
			return
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) && !strings.Contains(err.Error(), "no space") {
			t.Fatalf("operation %d: %v", n, err)
		}
		left.Store(1 << 40)
		v, err := Verify(ctx, tab.s, "", true, nil)
		if err != nil || v.DamageCount != 0 {
			t.Fatalf("operation %d: %v %+v", n, err, v)
		}
		if err := RebuildIndex(ctx, tab.s); err != nil {
			t.Fatalf("operation %d: rebuild: %v", n, err)
		}
		x, err := OpenIndex(ctx, tab.s)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := tab.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.FeatureTotals(ctx, snap)
		if err := errors.Join(err, x.Close()); err != nil || len(got) != 1 || got[0].Rows != 20 {
			t.Fatal(fmt.Sprint(got), err)
		}
	}
}
