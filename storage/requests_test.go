package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// TestRequests counts the requests and the round trips of what PROTOCOL.md has a formula for, at two sizes of each number that the formula has.
func TestRequests(t *testing.T) {
	type cost struct{ requests, trips int64 }
	for _, size := range []struct{ commits, expired, orphans int64 }{{3, 1, 1}, {40, 30, 40}} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			mem := object.NewMemory()
			tab := newTable(t, mem)
			for i := range size.commits {
				d := segment(t, tab, nil, []uint32{10}, i, SegmentOptions{}, "x")
				mustCommit(t, tab, Change{Features: features("x"), Add: []SegmentDescriptor{d}, Overwrite: []Partition{nil}, Base: uint64(i)})
			}
			counted := object.NewCounted(object.NewDelayed(mem, time.Second))
			var s *Store
			// measure runs f, and holds what it took to the formula.
			measure := func(what string, want cost, f func(ctx context.Context) error) {
				t.Helper()
				before, start := counted.Counts(), time.Now()
				if err := f(ctx); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				c := counted.Counts().Sub(before)
				got := cost{c.Requests() + c.Writes + c.Deletes, int64(time.Since(start) / time.Second)}
				t.Logf("%d commits: %s: %d requests in %d round trips", size.commits, what, got.requests, got.trips)
				if got.requests > want.requests || got.trips > want.trips {
					t.Errorf("%d commits: %s: %+v, want at most %+v", size.commits, what, got, want)
				}
			}
			var far *Table
			var newest *Snapshot
			measure("open", cost{3, 2}, func(ctx context.Context) (err error) {
				if s, err = Open(ctx, counted, Options{}); err == nil {
					far, newest, err = s.Newest(ctx, "ads")
				}
				return err
			})
			measure("newest again", cost{1, 1}, func(ctx context.Context) error { _, err := far.Latest(ctx); return err })
			measure("a given snapshot", cost{2, 2}, func(ctx context.Context) error { _, err := far.At(ctx, 2); return err })
			late := segment(t, tab, partition("ds", "1"), []uint32{10}, 99, SegmentOptions{}, "x")
			measure("append", cost{4, 3}, func(ctx context.Context) error {
				_, err := far.Commit(ctx, Change{Operation: "append", Features: features("x"), Add: []SegmentDescriptor{late}})
				return err
			})
			var lease *Lease
			measure("lease", cost{3, 3}, func(ctx context.Context) (err error) {
				lease, err = newest.Lease(ctx, "me", time.Hour)
				return err
			})
			measure("renewal", cost{2, 2}, func(ctx context.Context) error { return lease.Renew(ctx, time.Hour) })
			measure("second renewal", cost{3, 3}, func(ctx context.Context) error { return lease.Renew(ctx, time.Hour) })
			if err := lease.Release(ctx); err != nil {
				t.Fatal(err)
			}
			all := size.commits + 1 // snapshots
			// Two listings of tables, for the root and behind it, the data, the clock; of the table the snapshots, the newest, its leases and copies.
			quiet := cost{3 + 16 + 4 + 5 + all, 14 + all/32}
			measure("gc of nothing", quiet, func(ctx context.Context) error { _, err := GC(ctx, s, GCOptions{}); return err })
			measure("expire", cost{12 + size.expired + 32, 14 + size.expired/32}, func(ctx context.Context) error {
				_, err := far.Expire(ctx, ExpireOptions{KeepLast: uint64(all - size.expired)})
				return err
			})
			for i := range size.orphans {
				segment(t, tab, nil, []uint32{10}, 1000+i, SegmentOptions{}, "x")
			}
			g := size.orphans + size.expired // ids that go, of two objects and a marker each
			measure("gc", cost{quiet.requests + 2 + size.expired + g + 6 + 5*g, quiet.trips + 12 + (5*g+size.expired)/32}, func(ctx context.Context) error {
				r, err := GC(ctx, s, GCOptions{NoWait: true})
				if err == nil && int64(r.Expired) != size.expired {
					t.Errorf("%d snapshots gone", r.Expired)
				}
				return err
			})
		})
	}
}
