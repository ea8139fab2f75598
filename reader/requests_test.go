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
	return segmentsOf(t, segments, "m", "n")
}

// segmentsOf has a table "t" of so many segments of 8 rows in 2 stripes, with the features.
func segmentsOf(t *testing.T, segments int, features ...string) *object.Memory {
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
	var all commit.AddFeatures
	for _, name := range features {
		all = append(all, catalog.Feature{ID: catalog.NewFeatureID(name, 0), Name: name,
			Type: vector.Type{Kind: vector.Dense, Elem: vector.Int64}})
	}
	change.Set(all)
	for i := range segments {
		w, err := table.NewSegment(ctx, catalog.Partition{{Key: "ds", Value: fmt.Sprint(i % 30)}}, []uint32{4, 4},
			segment.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k, f := range all {
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
	for _, segments := range []int{1, 10, 100, 1000} {
		mem := manySegments(t, segments)
		synctest.Test(t, func(t *testing.T) {
			ctx, n := t.Context(), int64(segments)
			counted := objecttest.NewMeter(mem)
			all := int64(0) // round trips
			measure := func(what string, requests, trips int64, f func(ctx context.Context) error) {
				t.Helper()
				what = fmt.Sprintf("%d segments: %s", segments, what)
				cost := counted.Measure(t, what, func() error { return f(ctx) })
				cost.Check(t, what, requests, trips)
				all += cost.Trips
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
			runs := int64(len(snap.Manifest.Listing.Runs)) // of the listing
			var plan *Plan
			measure("plan", 0, 0, func(ctx context.Context) (err error) {
				plan, err = NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, BatchSize: 16})
				return err
			})
			opts := Options{Usage: UsageOptions{Off: true}}
			var s *Scanner
			measure("scanner", runs, runs, func(ctx context.Context) (err error) {
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
			measure("first batch", 2*min(n, 3*remoteSegmentsAhead), 2, next)
			measure("the others", 2*n, n/128, func(ctx context.Context) (err error) {
				for err == nil {
					err = next(ctx)
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			})
			s.Close()
			if all > 12 {
				t.Errorf("%d segments, from opening the store to the last batch: %d round trips", segments, all)
			}
			measure("plan of a known snapshot, to the first batch", 2+runs+2*min(n, 3*remoteSegmentsAhead), 3+runs,
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

// TestWideRequests counts the round trips of a process that has nothing, to the first batch of 200 of 20,000 features,
// which its plan names.
func TestWideRequests(t *testing.T) {
	var names, some []string
	for i := range 20_000 {
		names = append(names, fmt.Sprintf("feature_%05d", i))
		if i%100 == 0 {
			some = append(some, names[i])
		}
	}
	mem := segmentsOf(t, 1, names...)
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		counted := objecttest.NewMeter(mem)
		var store *storage.Store
		var s *Scanner
		counted.Measure(t, "20,000 features, to the first batch", func() error {
			var snap *storage.Snapshot
			var err error
			if store, err = storage.Open(ctx, counted, storage.Options{}); err != nil {
				return err
			}
			if _, snap, err = store.Newest(ctx, "t"); err != nil {
				return err
			}
			plan, err := NewPlan(ctx, snap, PlanOptions{Features: some, BatchSize: 4})
			if err != nil {
				return err
			}
			if s, err = Open(ctx, snap, plan, Options{Usage: UsageOptions{Off: true}}); err != nil {
				return err
			}
			b, err := s.Next(ctx)
			if err == nil {
				b.Release()
			}
			return err
		}).Check(t, "20,000 features, to the first batch", 300, 5)
		s.Close()
		store.Close()
	})
}
