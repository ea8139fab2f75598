package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// A cancelling store cancels a context when it has carried out its n-th request, which succeeds.
type cancelling struct {
	object.Store
	left   atomic.Int64
	cancel context.CancelFunc
}

func (c *cancelling) step() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

func (c *cancelling) ReadAt(ctx context.Context, name string, p []byte, off int64) error {
	defer c.step()
	return c.Store.ReadAt(ctx, name, p, off)
}

func (c *cancelling) Stat(ctx context.Context, name string) (object.Info, error) {
	defer c.step()
	return c.Store.Stat(ctx, name)
}

func (c *cancelling) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	defer c.step()
	return c.Store.PutIfAbsent(ctx, name, data)
}

func (c *cancelling) Delete(ctx context.Context, name string) error {
	defer c.step()
	return c.Store.Delete(ctx, name)
}

func (c *cancelling) Truncate(ctx context.Context, of object.Info) error {
	defer c.step()
	return c.Store.Truncate(ctx, of)
}

func (c *cancelling) List(ctx context.Context, prefix, startAfter string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for info, err := range c.Store.List(ctx, prefix, startAfter) {
			if !yield(info, err) {
				break
			}
		}
		c.step()
	}
}

// TestCancelledMidway cancels each operation after each of its requests: it ends with an error or with what it returns
// else, and never with a part of that.
func TestCancelledMidway(t *testing.T) {
	mem := object.NewMemory()
	fill := func(mem *object.Memory) *Table {
		tab := newTable(t, mem)
		tab.s.core.Trees.MemtableBytes, tab.s.core.Bitmaps.InlineBytes = 200, 0 // several runs, and every set an object
		segs := replaceAll(t, tab, 3)
		mustCommit(t, tab, commit.Change{Base: 3, Ops: []commit.Operation{commit.SetBranches{{Name: "b",
			Snapshot: 2}}}})
		for i := range 8 {
			d := writeSegment(t, tab, partition("k", fmt.Sprint(i)), []uint32{10}, int64(i), segment.Options{}, "x")
			mustCommit(t, tab, commit.Change{Ops: []commit.Operation{commit.AddFeatures(features("x", fmt.Sprint("y",
				i))), commit.AddSegments{d}}})
		}
		mustCommit(t, tab, commit.Change{Base: 12, Ops: []commit.Operation{commit.DeleteRows{{Segment: segs[2].ID,
			Rows: rowSet(t, tab.s, segs[2], 1)}}}})
		for i := range uint64(2) {
			s, err := tab.At(t.Context(), 5+i)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Lease(t.Context(), "x", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		return tab
	}
	fill(mem)
	for name, do := range map[string]func(ctx context.Context, s *Store, tab *Table) (string, error){
		"segments": func(ctx context.Context, _ *Store, tab *Table) (string, error) {
			s, err := tab.Latest(ctx)
			if err != nil {
				return "", err
			}
			all, err := s.Segments(ctx, nil)
			return fmt.Sprint(all), err
		},
		"snapshots": func(ctx context.Context, _ *Store, tab *Table) (string, error) {
			all, err := tab.Snapshots(ctx)
			return fmt.Sprint(all), err
		},
		"leases": func(ctx context.Context, _ *Store, tab *Table) (string, error) {
			all, err := tab.Leases(ctx)
			return fmt.Sprint(len(all)), err
		},
		"expire": func(ctx context.Context, _ *Store, tab *Table) (string, error) {
			r, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 3, DryRun: true})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(r.Oldest, len(r.Held)), nil
		},
		"verify": func(ctx context.Context, s *Store, _ *Table) (string, error) {
			r, err := s.Verify(ctx, "", false, nil)
			if err != nil {
				return "", err
			}
			return fmt.Sprint(r.DamageCount, r.Segments, r.RowBitmaps, r.Snapshots), nil
		},
		"gc": func(ctx context.Context, s *Store, _ *Table) (string, error) {
			r, err := s.GC(ctx, gc.Options{NoWait: true, DryRun: true})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(r.Snapshots, r.Referenced, len(r.Removed), len(r.Held), r.Skipped), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var want string
			for at := int64(0); ; at++ { // 0: never
				c := &cancelling{Store: mem}
				c.left.Store(at)
				var ctx context.Context
				ctx, c.cancel = context.WithCancel(t.Context())
				s, err := Open(ctx, c, Options{})
				if err != nil {
					t.Fatal(err)
				}
				tab, err := s.NewTable(t.Context(), "ads")
				if err != nil {
					t.Fatal(err)
				}
				c.left.Store(at)
				got, err := do(ctx, s, tab)
				c.cancel()
				switch {
				case at == 0 && err == nil:
					want = got
				case at == 0 || err != nil && !errors.Is(err, context.Canceled):
					t.Fatalf("cancelled after request %d: %v", at, err)
				case err == nil && got != want:
					t.Errorf("cancelled after request %d: %s, want %s", at, got, want)
				}
				if at > 0 && c.left.Load() > 0 {
					return
				}
			}
		})
	}
}
