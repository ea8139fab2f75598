package overlay

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

// labelsOf writes a file with a label for each key below n: the key modulo 7.
func labelsOf(t *testing.T, n int) string {
	t.Helper()
	var rows []row
	for i := range n {
		rows = append(rows, row{"id": intValue(int64(i)), "label": intValue(int64(i % 7))})
	}
	return writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("label", arrow.PrimitiveTypes.Int64)}, rows)
}

func wantLabel(n int) func(map[string]string) (map[string]string, bool) {
	return func(x map[string]string) (map[string]string, bool) {
		var i int
		_, _ = fmt.Sscanf(x["id"], "[%d]", &i)
		return map[string]string{"label": fmt.Sprint([]int{i % 7})}, i < n
	}
}

// partitioned returns n rows of a partition, with keys from first on.
func partitioned(ds string, first, n int) []row {
	var rows []row
	for i := range n {
		rows = append(rows, row{"id": intValue(int64(first + i)), "ds": textValue(ds), "click": intValue(int64(i % 2))})
	}
	return rows
}

var partitionedFields = []arrow.Field{
	nullable("id", arrow.PrimitiveTypes.Int64), nullable("ds", arrow.BinaryTypes.String),
	nullable("click", arrow.PrimitiveTypes.Int8),
}

// What others commit while layers are made and before their commit: the layers of what they added are made, too, the
// others once only.
func TestConflicts(t *testing.T) {
	add := func(s *storage.Store, ds string, first, n int) {
		ingestRows(t, s, partitionedFields, partitioned(ds, first, n), nil)
	}
	// As a compaction does: the segments of a partition give way to others with the same rows.
	rewrite := func(s *storage.Store, ds string, first, n int) {
		ingestRows(t, s, partitionedFields, partitioned(ds, first, n),
			func(o *ingest.Options) { o.Overwrite = true; o.SegmentRows = 5000 })
	}
	for i, c := range []struct {
		what     string
		phase    Phase
		change   func(s *storage.Store)
		attempts int
	}{
		{"nothing", PhaseCommit, func(*storage.Store) {}, 1},
		{"ingest while layers are made", PhaseWrite, func(s *storage.Store) { add(s, "b", 1000, 500) }, 2},
		{"compaction while layers are made", PhaseWrite, func(s *storage.Store) { rewrite(s, "a", 0, 1000) }, 2},
		{"compaction before the commit", PhaseCommit, func(s *storage.Store) { rewrite(s, "a", 0, 1000) }, 2},
		{"compaction and ingest before the commit", PhaseCommit,
			func(s *storage.Store) { rewrite(s, "a", 0, 1000); add(s, "c", 1000, 500) }, 2},
		{"deletes before the commit", PhaseCommit, func(s *storage.Store) {
			snap := latest(t, s)
			segments, err := snap.Segments(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.Bitmaps().Put(t.Context(), segments[0].ID, segments[0].Rows, bitmapRange(10, 50))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := snap.Table().Commit(t.Context(), commit.Change{Operation: "delete", Base: snap.Info().Number,
				Ops: []commit.Operation{commit.DeleteRows{{Segment: segments[0].ID, Rows: rows}}}}); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		for k, j := range joins[:3] {
			if race.Enabled && (i+k)%3 > 0 {
				continue
			}
			t.Run(c.what+", "+j.name, func(t *testing.T) {
				s := newStore(t, object.NewMemory())
				add(s, "a", 0, 1000)
				done, calls := false, 0
				opts := Options{From: []string{labelsOf(t, 1400)}, TempDir: t.TempDir()}
				opts.Progress = func(p Progress) {
					if p.Phase == PhaseMatch && p.Done == 0 {
						calls++
					}
					if !done && (p.Phase == c.phase || c.phase == PhaseWrite && p.Phase == PhaseMatch && p.Done > 0) {
						done = true
						c.change(s)
					}
				}
				j.change(&opts)
				report, err := Add(t.Context(), s, "ads", "o", opts)
				if err != nil {
					t.Fatal(err)
				}
				if report.Attempts != c.attempts || calls != c.attempts {
					t.Errorf("%d attempts, %d scans of the table: want %d", report.Attempts, calls, c.attempts)
				}
				snap := latest(t, s)
				covered := checkLayers(t, snap, "o", []string{"id"}, false, wantLabel(1400))
				segments, err := snap.Segments(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := report.Layers, len(segments); got != want {
					t.Errorf("%d layers over %d segments", got, want)
				}
				if uint64(covered) != report.Covered && c.attempts > 1 {
					t.Errorf("%d rows are covered, the report says %d", covered, report.Covered)
				}
				// Layers over what is gone are not left to gc.
				garbage, err := s.GC(t.Context(), gc.Options{NoWait: true, DryRun: true})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range garbage.Removed {
					t.Errorf("%s is nobody's", o.Name)
				}
				verifyClean(t, s)
			})
		}
	}
}

// A gc that leaves no time takes layers before they are committed: that is an error, and the table as it was.
func TestGCWithoutGrace(t *testing.T) {
	for _, opts := range []Options{{Exprs: []string{"y = click = 1"}},
		{From: []string{labelsOf(t, 1000)}, MissingRows: catalog.Null}} {
		s := keyed(t, 1000)
		opts.Progress = func(p Progress) {
			if p.Phase == PhaseCommit {
				objectsAfterGC(t, s)
			}
		}
		if _, err := Add(t.Context(), s, "ads", "o", opts); err == nil {
			t.Fatal("no error")
		}
		if i := latest(t, s).Info(); i.Number != 2 || i.Operation != "gc" {
			t.Fatalf("snapshot %d by %s", i.Number, i.Operation)
		}
		verifyClean(t, s)
	}
}

// One that replaces whatever has the name replaces one that took it meanwhile, too.
func TestReplaceMeanwhile(t *testing.T) {
	s := keyed(t, 100)
	other := sync.OnceFunc(func() {
		if _, err := Add(t.Context(), s, "ads", "o", Options{Exprs: []string{"y = click = 0"}}); err != nil {
			t.Error(err)
		}
	})
	opts := Options{Exprs: []string{"x = click = 1"}, Replace: true, Progress: func(p Progress) {
		if p.Phase == PhaseCommit {
			other()
		}
	}}
	if _, err := Add(t.Context(), s, "ads", "o", opts); err != nil {
		t.Fatal(err)
	}
	o, err := latest(t, s).Overlay(t.Context(), "o")
	if err != nil || len(o.Features) != 1 || o.Features[0].Name != "x" {
		t.Fatal(o, err)
	}
	verifyClean(t, s)
}

// The first to commit has the name; nothing is left of the other.
func TestNameTakenMeanwhile(t *testing.T) {
	s := keyed(t, 1000)
	done := false
	opts := Options{Exprs: []string{"y = click = 1"}}
	opts.Progress = func(p Progress) {
		if p.Phase == PhaseCommit && !done {
			done = true
			if _, err := Add(t.Context(), s, "ads", "o", Options{Exprs: []string{"y = click = 0"}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := Add(t.Context(), s, "ads", "o", opts)
	if !errors.Is(err, storage.ErrExists) {
		t.Fatal(err)
	}
	snap := latest(t, s)
	if n := snap.Info().Number; n != 2 {
		t.Fatalf("snapshot %d", n)
	}
	before := objects(t, s)
	if after := objectsAfterGC(t, s); !slices.Equal(before, after) {
		t.Fatalf("objects that gc takes were left: %v, then %v", before, after)
	}
}

// An overlay of a branch lies over the branch's segments, whatever became of the table, and is read by the branch.
func TestBranch(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, partitionedFields, partitioned("a", 0, 1000), nil)
	snap := latest(t, s)
	if _, err := snap.Table().Commit(t.Context(), commit.Change{Operation: "branch", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: snap.Info().Number}}}}); err != nil {
		t.Fatal(err)
	}
	ingestRows(t, s, partitionedFields, partitioned("a", 5000, 700), func(o *ingest.Options) { o.Overwrite = true })
	for i, opts := range []Options{{From: []string{labelsOf(t, 600)}}, {Exprs: []string{"y = click = 1"}}} {
		report, err := Add(t.Context(), s, "ads@b", fmt.Sprint("o", i), opts)
		if err != nil {
			t.Fatal(err)
		}
		if want := []uint64{600, 1000}[i]; report.Covered != want || report.Rows != 1000 || report.Branch != "b" ||
			report.Table != "ads" {
			t.Fatalf("report %+v: want %d of 1000 rows covered", report, want)
		}
	}
	v, err := s.Open(t.Context(), "ads@b")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range v.Overlays {
		names = append(names, o.Name)
	}
	if !slices.Equal(names, []string{"o0", "o1"}) {
		t.Fatalf("the branch reads overlays %v", names)
	}
	layers := readOverlay(t, latest(t, s), "o0")
	segments, err := v.Snapshot.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := readRows(t, v.Snapshot, "id")
	for _, d := range segments {
		for k := range int(d.Rows) {
			values, has := wantLabel(600)(rows[0])
			l, ok := layers[d.ID]
			if has && (!ok || !l.covered[k] || l.rows[k]["label"] != values["label"]) || !has && ok && l.covered[k] {
				t.Fatalf("segment %s, row %d: %v", d.ID, k, rows[0])
			}
			rows = rows[1:]
		}
	}
	if _, err := Add(t.Context(), s, "ads@c", "o",
		Options{Exprs: []string{"y = click = 1"}}); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	verifyClean(t, s)
}
