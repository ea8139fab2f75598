package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/writer"
)

// Failures that are known of other systems, replayed. Each test says what went wrong there.

// ingestedTable is a table into which lines of JSON are ingested.
type ingestedTable struct {
	t     *testing.T
	store *storage.Store
	table *storage.Table
}

func ingestTable(t *testing.T) *ingestedTable {
	store, err := storage.Create(t.Context(), object.NewMemory(), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	table, err := store.NewTable(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return &ingestedTable{t, store, table}
}

// add ingests rows whose column a has a type of Hive's.
func (l *ingestedTable) add(typ, lines string) {
	l.t.Helper()
	dir := l.t.TempDir()
	dump, mapping := filepath.Join(dir, "rows.jsonl"), filepath.Join(dir, "mapping.json")
	if err := errors.Join(os.WriteFile(dump, []byte(lines), 0o666),
		os.WriteFile(mapping, []byte(fmt.Sprintf(`{"columns": {"a": {"type": %q}}}`, typ)), 0o666)); err != nil {
		l.t.Fatal(err)
	}
	if _, err := ingest.Run(l.t.Context(), l.store, "t", []string{dump}, ingest.Options{MappingFile: mapping,
		Options: writer.Options{SegmentRows: 4, StripeRows: 2, Memory: 512 << 20}}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *ingestedTable) latest() *storage.Snapshot {
	l.t.Helper()
	snap, err := l.table.Latest(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return snap
}

// rows returns the values of column row of the rows that a filter selects, in order.
func (l *ingestedTable) rows(snap *storage.Snapshot, filter string) []int64 {
	l.t.Helper()
	ctx := l.t.Context()
	plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"row"}, Filter: filter})
	if err != nil {
		l.t.Fatal(err)
	}
	s, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	defer s.Close()
	rows, err := drainRows(ctx, s)
	if err != nil {
		l.t.Fatal(err)
	}
	return rows
}

func drainRows(ctx context.Context, s *reader.Scanner) ([]int64, error) {
	out := []int64{}
	for {
		b, err := s.Next(ctx)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, b.Columns[0].Ints...)
		b.Release()
	}
}

func (l *ingestedTable) delete(q selection.Query) uint64 {
	l.t.Helper()
	r, err := selection.Delete(l.t.Context(), l.table, &q, selection.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	return r.Deleted
}

// Bounds that were written as one type were compared as another after the column's type had changed, and files with
// matching rows were pruned.
func TestTypeChangeThenPruning(t *testing.T) {
	l := ingestTable(t)
	l.add("tinyint", `{"row": 0, "a": -5}
{"row": 1, "a": 100}
{"row": 2, "a": null}
`)
	l.add("int", `{"row": 3, "a": -5}
{"row": 4, "a": 70000}
`)
	l.add("double", `{"row": 5, "a": -5.5}
{"row": 6, "a": 1e300}
{"row": 7, "a": 100}
`)
	for filter, want := range map[string][]int64{
		"a = 100": {1, 7}, "a < -5": {5}, "a <= -5": {0, 3, 5}, "a > 100": {4, 6}, "a > 99.5": {1, 4, 6, 7},
		"a IS NULL":             {2},
		"a BETWEEN -5.5 AND -5": {0, 3, 5}, "NOT a < 1000": {4, 6}, "a = 70000.0": {4}, "a IN (-5, 100)": {0, 1, 3, 7},
	} {
		if got := l.rows(l.latest(), filter); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	if n := l.delete(selection.Query{Where: "a = -5"}); n != 2 {
		t.Errorf("%d rows deleted", n)
	}
	if got := l.rows(l.latest(), ""); !slices.Equal(got, []int64{1, 2, 4, 5, 6, 7}) {
		t.Errorf("%v", got)
	}
}

// Deletes by equality took rows whose key was null along, or a null among the keys took all of them; and NOT brought
// rows with null under a predicate that knows nothing of them.
func TestDeletesAndNullKeys(t *testing.T) {
	l := ingestTable(t)
	l.add("int", `{"row": 0, "a": 1, "k": "x"}
{"row": 1, "a": null, "k": null}
{"row": 2, "a": 2, "k": ""}
{"row": 3, "k": "null"}
{"row": 4, "a": 3, "k": "y"}
`)
	dir := t.TempDir()
	null := filepath.Join(dir, "null.jsonl")
	if err := os.WriteFile(null, []byte("{\"k\": \"x\"}\n{\"k\": null}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := selection.Delete(t.Context(), l.table,
		&selection.Query{Keys: &selection.KeySource{Feature: "k", Paths: []string{null}}},
		selection.Options{}); err == nil {
		t.Error("a key that is null was taken")
	}
	if n := l.delete(selection.Query{Keys: &selection.KeySource{Feature: "a", Given: []string{"0"}}}); n != 0 {
		t.Errorf("%d rows with key 0, which is what null is stored as", n)
	}
	if n := l.delete(selection.Query{Keys: &selection.KeySource{Feature: "k", Given: []string{"", "null",
		"x"}}}); n != 3 {
		t.Errorf("%d rows deleted", n)
	}
	if n := l.delete(selection.Query{Where: "NOT a = 17 AND a != 3"}); n != 0 {
		t.Errorf("%d rows whose a is null, or 3", n)
	}
	if got := l.rows(l.latest(), ""); !slices.Equal(got, []int64{1, 4}) {
		t.Errorf("%v", got)
	}
}

// Rows at positions were other rows after deletes had been applied to some files, or after a reader had pruned others.
func TestPositionsAfterDeletes(t *testing.T) {
	l := ingestTable(t)
	lines := ""
	for i := range 20 {
		lines += fmt.Sprintf("{\"row\": %d, \"a\": %d}\n", i, i%5)
	}
	l.add("int", lines)
	l.delete(selection.Query{Where: "a = 0"})
	l.add("int", `{"row": 20, "a": 0}
`)
	ctx, snap := t.Context(), l.latest()
	for _, filter := range []string{"", "a < 3"} {
		want := l.rows(snap, filter)
		plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"row"}, Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := reader.NewLayout(ctx, snap, plan)
		if err != nil {
			t.Fatal(err)
		}
		taker, err := layout.Taker(reader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer taker.Close()
		for place := range want {
			b, err := taker.Take(ctx, []uint64{uint64(place)})
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Columns[0].Ints[0]; got != want[place] {
				t.Errorf("%q: place %d is row %d, want %d", filter, place, got, want[place])
			}
			b.Release()
		}
		if _, err := taker.Take(ctx, []uint64{uint64(len(want))}); err == nil {
			t.Errorf("%q: a place past the end", filter)
		}
	}
}

// Files of an old version were removed under a job that read it, which then failed, or went on with fewer rows. A lease
// keeps them; who has none is told, and is given no other rows.
func TestGCUnderARunningReader(t *testing.T) {
	for _, leased := range []bool{true, false} {
		l := ingestTable(t)
		var want []int64
		for day := range 5 {
			lines := ""
			for i := range 4 {
				want = append(want, int64(4*day+i))
				lines += fmt.Sprintf("{\"row\": %d, \"a\": %d}\n", 4*day+i, i)
			}
			l.add("int", lines)
		}
		ctx, snap := t.Context(), l.latest()
		if leased {
			lease, err := snap.Lease(ctx, "a test", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Release(ctx)
		}
		plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: []string{"row"}, BatchSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := reader.Open(ctx, snap, plan, reader.Options{MemoryBudget: 1, MaxBatches: 1, Workers: 1, Requests: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Clone(b.Columns[0].Ints)
		b.Release()
		// All of its segments go out of the table, and its snapshot out of the history.
		segments, err := snap.Segments(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := commit.Change{Operation: "test", Base: snap.Info().Number}
		for _, d := range segments {
			c.Set(append(commit.Op[commit.RemoveSegments](&c), d.ID))
		}
		if _, err := l.table.Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
		if _, err := l.table.Expire(ctx, gc.ExpireOptions{KeepLast: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := l.store.GC(ctx, gc.Options{NoWait: true}); err != nil {
			t.Fatal(err)
		}
		rest, err := drainRows(ctx, s)
		got = append(got, rest...)
		if leased && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("with a lease: %v, %v, want %v", got, err, want)
		}
		// What was read ahead is right, too; where it ends there is an error, and no end.
		if !leased && (err == nil || !slices.Equal(got, want[:len(got)])) {
			t.Errorf("without a lease: %v, %v", got, err)
		}
	}
}

// Integers beyond 2^53 were compared as floats, and rows next to the one meant were deleted.
func TestKeysBeyondFloats(t *testing.T) {
	l := ingestTable(t)
	l.add("bigint", fmt.Sprintf("{\"row\": 0, \"a\": %d}\n{\"row\": 1, \"a\": %d}\n{\"row\": 2, \"a\": %d}\n",
		int64(1<<53), int64(1<<53+1), int64(math.MaxInt64)))
	if n := l.delete(selection.Query{Where: "a = 9007199254740993"}); n != 1 {
		t.Errorf("%d rows deleted", n)
	}
	if n := l.delete(selection.Query{Keys: &selection.KeySource{Feature: "a", Given: []string{"9223372036854775807",
		"9007199254740991"}}}); n != 1 {
		t.Errorf("%d rows deleted", n)
	}
	if got := l.rows(l.latest(), ""); !slices.Equal(got, []int64{0}) {
		t.Errorf("%v", got)
	}
}
