package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/objecttest"
	"github.com/dsistore/dsistore/storage/segment"
)

// manySegments has a table "t" of so many segments of 8 rows in 2 stripes, with features "n" and "m".
func manySegments(t *testing.T, segments int) *object.Memory {
	t.Helper()
	ctx := t.Context()
	mem := object.NewMemory()
	store, err := storage.Create(ctx, mem, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := store.NewTable(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	change := commit.Change{Operation: "ingest"}
	for _, name := range []string{"m", "n"} {
		change.Set(append(commit.Op[commit.AddFeatures](&change),
			catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name,
				Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}}))
	}
	for i := range segments {
		w, err := table.NewSegment(ctx, catalog.Partition{{Key: "ds", Value: fmt.Sprint(i % 30)}}, []uint32{4, 4},
			segment.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k, f := range commit.Op[commit.AddFeatures](&change) {
			if err := w.AddFeature(ctx, k, f, func(w *format.Writer) error {
				for stripe := range 2 {
					c := vector.NewColumn(f.Type)
					for row := range 4 {
						c.Ints = append(c.Ints, int64(i*8+stripe*4+row))
						c.AddSlot()
					}
					if err := w.WriteStripe(c); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		change.Set(append(commit.Op[commit.AddSegments](&change), d))
	}
	if _, err := table.Commit(ctx, change); err != nil {
		t.Fatal(err)
	}
	return mem
}

// TestRequests counts the requests and the round trips from opening a store to the first batch and to the last, by the
// formulas of PROTOCOL.md.
func TestRequests(t *testing.T) {
	for _, segments := range []int{1, 10, 100} {
		mem := manySegments(t, segments)
		synctest.Test(t, func(t *testing.T) {
			ctx, n := t.Context(), int64(segments)
			counted := objecttest.NewMeter(mem)
			measure := func(what string, requests, trips int64, f func(ctx context.Context) error) {
				t.Helper()
				what = fmt.Sprintf("%d segments: %s", segments, what)
				counted.Measure(t, what, func() error { return f(ctx) }).Check(t, what, requests, trips)
			}
			var store *storage.Store
			var snap *storage.Snapshot
			measure("open", 3, 2, func(ctx context.Context) (err error) {
				if store, err = storage.Open(ctx, counted, storage.Options{}); err == nil {
					_, snap, err = store.Newest(ctx, "t")
				}
				return err
			})
			defer func() { store.Close() }()
			var plan *Plan
			measure("plan", 0, 0, func(ctx context.Context) (err error) {
				plan, err = NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, BatchSize: 16})
				return err
			})
			opts := Options{Usage: UsageOptions{Off: true}}
			var s *Scanner
			measure("scanner", 0, 0, func(ctx context.Context) (err error) {
				s, err = Open(ctx, snap, plan, opts)
				return err
			})
			next := func(ctx context.Context) error {
				b, err := s.Next(ctx)
				if err == nil {
					b.Release()
				}
				return err
			}
			measure("first batch", 2*min(n, 10), 2, next)
			measure("the others", 2*n, 2+n/4, func(ctx context.Context) (err error) {
				for err == nil {
					err = next(ctx)
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			})
			s.Close()
			measure("plan of a known snapshot, to the first batch", 3+2*min(n, 10), 4,
				func(ctx context.Context) (err error) {
					if store, err = storage.Open(ctx, counted, storage.Options{}); err != nil {
						return err
					}
					if s, err = OpenPlan(ctx, store, plan, opts); err != nil {
						return err
					}
					return next(ctx)
				})
			s.Close()
		})
	}
}
