package storage

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
	"github.com/dsistore/dsistore/storage/segment"
)

// TestRequests counts the requests and the round trips of what PROTOCOL.md has a formula for, at two sizes of each
// number that the formula has.
func TestRequests(t *testing.T) {
	for _, size := range []struct{ commits, expired, orphans int64 }{{3, 1, 1}, {40, 30, 40}} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			mem := object.NewMemory()
			tab := newTable(t, mem)
			for i := range size.commits {
				d := writeSegment(t, tab, nil, []uint32{10}, i, segment.Options{}, "x")
				mustCommit(t, tab, commit.Change{Base: uint64(i),
					Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{d},
						commit.OverwritePartitions{nil}}})
			}
			counted := objecttest.NewMeter(mem)
			var s *Store
			// measure runs f, and holds what it costs to the formula.
			measure := func(what string, requests, trips int64, f func(ctx context.Context) error) {
				t.Helper()
				what = fmt.Sprintf("%d commits: %s", size.commits, what)
				counted.Measure(t, what, func() error { return f(ctx) }).Check(t, what, requests, trips)
			}
			var far *Table
			var newest *Snapshot
			measure("open", 3, 2, func(ctx context.Context) (err error) {
				if s, err = Open(ctx, counted, Options{}); err == nil {
					far, newest, err = s.Newest(ctx, "ads")
				}
				return err
			})
			measure("newest again", 1, 1, func(ctx context.Context) error { _, err := far.Latest(ctx); return err })
			measure("a given snapshot", 2, 2, func(ctx context.Context) error { _, err := far.At(ctx, 2); return err })
			late := writeSegment(t, tab, partition("ds", "1"), []uint32{10}, 99, segment.Options{}, "x")
			measure("append", 4, 2, func(ctx context.Context) error {
				_, err := far.Commit(ctx, commit.Change{Operation: "append",
					Ops: []commit.Operation{commit.AddFeatures(features("x")), commit.AddSegments{late}}})
				return err
			})
			var lease *lease.Lease
			measure("lease", 3, 3, func(ctx context.Context) (err error) {
				lease, err = newest.Lease(ctx, "me", time.Hour)
				return err
			})
			measure("renewal", 2, 2, func(ctx context.Context) error { return lease.Renew(ctx, time.Hour) })
			measure("second renewal", 3, 3, func(ctx context.Context) error { return lease.Renew(ctx, time.Hour) })
			if err := lease.Release(ctx); err != nil {
				t.Fatal(err)
			}
			all := size.commits + 1 // snapshots
			// Two listings of tables, for the root and behind it, the data, the clock; of the table the snapshots, the
			// newest, its leases and copies.
			quiet, quietTrips := 3+16+4+5+all, 14+all/32
			measure("gc of nothing", quiet, quietTrips, func(ctx context.Context) error {
				_, err := s.GC(ctx,
					gc.Options{})
				return err
			})
			measure("expire", 12+size.expired+32, 14+size.expired/32, func(ctx context.Context) error {
				_, err := far.Expire(ctx, gc.ExpireOptions{KeepLast: uint64(all - size.expired)})
				return err
			})
			for i := range size.orphans {
				writeSegment(t, tab, nil, []uint32{10}, 1000+i, segment.Options{}, "x")
			}
			g := size.orphans + size.expired // ids that go, of two objects and a marker each
			measure("gc", quiet+2+size.expired+g+6+5*g, quietTrips+12+(5*g+size.expired)/32,
				func(ctx context.Context) error {
					r, err := s.GC(ctx, gc.Options{NoWait: true})
					if err == nil && int64(r.Expired) != size.expired {
						t.Errorf("%d snapshots gone", r.Expired)
					}
					return err
				})
		})
	}
}
