package reader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// realStore has a table "t" of days 1 to 3: rows of the day times 10 plus the row in feature "n", and "late", which is
// narrower on day 2 and missing on day 1.
func realStore(t *testing.T) (*storage.Store, *storage.Snapshot) {
	t.Helper()
	ctx := context.Background()
	store, err := storage.Create(ctx, object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	table, err := store.NewTable(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	feature := func(name string, e vector.Elem) catalog.Feature {
		return catalog.Feature{
			ID: catalog.NewFeatureID(name, 1), Name: name, Generation: 1, Type: vector.Type{Kind: vector.Dense,
				Elem: e},
		}
	}
	var snap *storage.Snapshot
	for day, lateElem := range []vector.Elem{vector.NoElem, vector.Int8, vector.Float64} {
		w, err := table.NewSegment(ctx, catalog.Partition{{Key: "ds", Value: string(rune('1' + day))}}, []uint32{2, 1},
			segment.Options{})
		if err != nil {
			t.Fatal(err)
		}
		change := commit.Change{Operation: "ingest",
			Ops: []commit.Operation{commit.AddFeatures{feature("n", vector.Int64)}}}
		if lateElem != vector.NoElem {
			change.Set(append(commit.Op[commit.AddFeatures](&change), feature("late", lateElem)))
		}
		for i, f := range commit.Op[commit.AddFeatures](&change) {
			err := w.AddFeature(ctx, i, f, func(w *format.Writer) error {
				for _, rows := range [][]int{{0, 1}, {2}} {
					c := vector.NewColumn(f.Type)
					for _, r := range rows {
						if v := (day+1)*10 + r; f.Type.Elem == vector.Float64 {
							c.Doubles = append(c.Doubles, float64(v)+0.5)
						} else {
							c.Ints = append(c.Ints, int64(v))
						}
						c.AddSlot()
					}
					if err := w.WriteStripe(c); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		d, err := w.Finish(ctx)
		if err != nil {
			t.Fatal(err)
		}
		change.Set(commit.AddSegments{d})
		if snap, err = table.Commit(ctx, change); err != nil {
			t.Fatal(err)
		}
	}
	return store, snap
}

func TestStoreToBatches(t *testing.T) {
	ctx := context.Background()
	store, snap := realStore(t)
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n", "l*"}, Partition: "ds >= 2 OR ds = '1'",
		BatchSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	// The plan travels as bytes.
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	plan = new(Plan)
	if err := json.Unmarshal(data, plan); err != nil {
		t.Fatal(err)
	}
	s, err := OpenPlan(ctx, store, plan, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var n []int64
	var late []float64
	nulls := 0
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n = append(n, b.Columns[0].Ints...)
		for r := range b.Rows {
			if b.Columns[1].IsNull(r) {
				nulls++
			} else {
				late = append(late, b.Columns[1].Doubles[r])
			}
		}
		b.Release()
	}
	if len(n) != 9 || n[0] != 10 || n[8] != 32 || nulls != 3 || len(late) != 6 || late[0] != 20 || late[5] != 32.5 {
		t.Fatalf("%v, %v, %d nulls", n, late, nulls)
	}
}

// A partition key is a column: what the predicate sees is what the rows hold, and nothing but the index is read for it.
func TestPartitionKeys(t *testing.T) {
	ctx := context.Background()
	_, snap := realStore(t)
	for _, output := range []Output{OutputColumns, OutputTensors} {
		plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"@partitions"}, Partition: "ds <> 2",
			BatchSize: 4, Output: output})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(ctx, snap, plan, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			b, err := s.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for r := range b.Rows {
				got = append(got, columnValue(b.Columns[0], r).text)
			}
			b.Release()
		}
		if want := "1 1 1 3 3 3"; strings.Join(got, " ") != want || s.Stats().Requests != 0 {
			t.Errorf("%v: %q in %d requests, want %s in none", output, got, s.Stats().Requests, want)
		}
		s.Close()
	}
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"@all"}})
	if err != nil || len(plan.Features) != 3 || !IsPartitionKey(plan.Features[2]) || plan.Features[2].Name != "ds" {
		t.Errorf("%v, %v", plan, err)
	}
}

// The splits of a plan with a predicate are its rows, and only those, in order; a split of another plan is refused.
func TestSplitsOfPredicate(t *testing.T) {
	ctx := context.Background()
	_, snap := realStore(t)
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"ds", "n"}, Partition: "ds <> 2", BatchSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 6; n++ {
		l, err := NewLayout(ctx, snap, plan)
		if err != nil {
			t.Fatal(err)
		}
		splits, err := l.Splits(ctx, n)
		if err != nil || len(splits) > n {
			t.Fatal(splits, err)
		}
		var got []int64
		for _, split := range splits {
			s, err := Open(ctx, snap, plan, Options{Split: &split})
			if err != nil {
				t.Fatal(err)
			}
			for {
				b, err := s.Next(ctx)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				for r, v := range b.Columns[1].Ints {
					if ds := columnValue(b.Columns[0], r).text; ds != fmt.Sprint(v/10) {
						t.Errorf("%d in ds=%s", v, ds)
					}
					got = append(got, v)
				}
				b.Release()
			}
			s.Close()
		}
		if want := []int64{10, 11, 12, 30, 31, 32}; !slices.Equal(got, want) {
			t.Errorf("%d splits: %v, want %v", n, got, want)
		}
	}
	other := *plan
	other.Partition = ""
	l, err := NewLayout(ctx, snap, &other)
	if err != nil {
		t.Fatal(err)
	}
	splits, err := l.Splits(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, snap, plan, Options{Split: &splits[0]}); err == nil ||
		!strings.Contains(err.Error(), "it is of plan") {
		t.Error(err)
	}
}

func TestPartitionPredicate(t *testing.T) {
	ctx := context.Background()
	_, snap := realStore(t)
	for text, rows := range map[string]uint64{"": 9, "ds > 1": 6, "ds = '9'": 0} {
		plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}, Partition: text})
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLayout(ctx, snap, plan)
		if err != nil || l.Rows() != rows {
			t.Fatalf("%q: %v, want %d rows", text, err, rows)
		}
		cost, err := l.Cost(ctx, Options{})
		if err != nil || cost.Rows != rows || cost.Segments*3 != rows {
			t.Fatalf("%q: %+v, %v", text, cost, err)
		}
		s, err := l.Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := drain(t, s); got != int(rows) {
			t.Fatalf("%q: %d rows", text, got)
		}
		s.Close()
	}
}

// A table whose last segment went is read by its partition as before: there is nothing in it.
func TestPartitionPredicateOfEmptied(t *testing.T) {
	ctx := t.Context()
	_, snap := realStore(t)
	remove := commit.Change{Operation: "test"}
	segments, err := snap.Segments(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range segments {
		remove.Set(append(commit.Op[commit.RemoveSegments](&remove), d.ID))
	}
	emptied, err := snap.Table().Commit(ctx, remove)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(ctx, emptied, PlanOptions{Features: []string{"n"}, Partition: "ds > 1"})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := NewLayout(ctx, emptied, plan); err != nil || l.Rows() != 0 {
		t.Fatal(err)
	}
	if _, err := NewPlan(ctx, emptied, PlanOptions{Features: []string{"n"}, Partition: "hr = 1"}); err == nil ||
		!strings.Contains(err.Error(), "the keys are ds") {
		t.Error(err)
	}
}

func TestOpenRefusals(t *testing.T) {
	ctx := context.Background()
	store, snap := realStore(t)
	for want, opts := range map[string]PlanOptions{
		"late":       {Features: []string{"lat"}}, // the nearest
		"partition":  {Features: []string{"n"}, Partition: "ds >"},
		"hr":         {Features: []string{"n"}, Partition: "hr = 1"},
		"batch size": {Features: []string{"n"}, BatchSize: -1},
	} {
		if _, err := NewPlan(ctx, snap, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
	if _, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"lat"}}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	plan, err := NewPlan(ctx, snap, PlanOptions{Features: []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	old := *plan
	old.Snapshot = 1
	if _, err := Open(ctx, snap, &old, Options{}); err == nil || !strings.Contains(err.Error(), "snapshot 1") {
		t.Error(err)
	}
	old.Snapshot = 99
	if _, err := OpenPlan(ctx, store, &old, Options{}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	for want, opts := range map[string]Options{
		"of plan": {Split: &Split{Plan: 1}},
		"rows":    {Split: &Split{Plan: plan.Hash(), FirstRow: 5, Rows: 5}},
		"workers": {Workers: -1},
		"budget":  {MemoryBudget: -1},

		"0 (default) to 4096":     {Workers: 1 << 40}, // what they need would be more than there is
		"max batches":             {MaxBatches: 1 << 40},
		"requests 65537: want 0 ": {Requests: 1<<16 + 1},
	} {
		if _, err := Open(ctx, snap, plan, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
}
