package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/writer"
)

// Known failures of overlays, and of what lies over rows that a compaction moves.

// noLabel is read where there is none.
const noLabel = -1

// days ingests rows from first on, four an ingest, and so in several segments.
func (l *ingestedTable) days(first, n int) {
	l.t.Helper()
	for from := first; from < first+n; from += 4 {
		lines := ""
		for i := from; i < min(from+4, first+n); i++ {
			lines += fmt.Sprintf("{\"row\": %d, \"a\": %d}\n", i, i%5)
		}
		l.add("int", lines)
	}
}

// file writes labels of rows as lines of JSON, in an order that is not the table's.
func (l *ingestedTable) file(labels map[int64]int64) string {
	l.t.Helper()
	lines := ""
	for _, row := range slices.Backward(slices.Sorted(maps.Keys(labels))) {
		lines += fmt.Sprintf("{\"row\": %d, \"label\": %d}\n", row, labels[row])
	}
	path := filepath.Join(l.t.TempDir(), "labels.jsonl")
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// addOverlay adds an overlay from a file.
func (l *ingestedTable) addOverlay(name string, labels map[int64]int64, change func(*overlay.Options)) error {
	l.t.Helper()
	opts := overlay.Options{From: []string{l.file(labels)}, Key: []string{"row"}, TempDir: l.t.TempDir(),
		Memory: 64 << 20, Workers: 1}
	if change != nil {
		change(&opts)
	}
	_, err := overlay.Add(l.t.Context(), l.store, "t", name, opts)
	return err
}

// compact merges all segments into one.
func (l *ingestedTable) compact() {
	l.t.Helper()
	before := l.latest().Info().Segments
	opts := compaction.Options{Full: true, DeletedShare: 0.01, Write: writer.Options{Memory: 64 << 20, StripeRows: 3,
		Workers: 1}}
	plan, err := compaction.NewPlan(l.t.Context(), l.table, opts)
	if err == nil {
		_, err = compaction.Run(l.t.Context(), l.table, plan, opts)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if after := l.latest().Info().Segments; before > 1 && after != 1 {
		l.t.Fatalf("%d segments became %d", before, after)
	}
}

// read returns the labels by row that a plan gives, and the rows in order.
func (l *ingestedTable) read(opts reader.PlanOptions) (labels map[int64]int64, order []int64, err error) {
	l.t.Helper()
	ctx, snap := l.t.Context(), l.latest()
	opts.Features = []string{"row", "label"}
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		return nil, nil, err
	}
	s, err := reader.Open(ctx, snap, plan, reader.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	labels = map[int64]int64{}
	for {
		b, err := s.Next(ctx)
		if err == io.EOF {
			return labels, order, nil
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range b.Rows {
			row, label := intAt(b, 0, i), intAt(b, 1, i)
			if _, twice := labels[row]; twice {
				l.t.Errorf("row %d is read twice", row)
			}
			labels[row] = label
			order = append(order, row)
		}
		b.Release()
	}
}

// intAt returns an integer of a batch, noLabel for null.
func intAt(b *reader.Batch, column, row int) int64 {
	c := b.Columns[column]
	if c.IsNull(row) {
		return noLabel
	}
	lo, _ := c.RowRange(row)
	return c.Ints[lo]
}

// Labels were looked up by the positions that rows had before a compaction, or before deletes: they were those of other
// rows, or rows that had been deleted came back under them. In whatever order a delete, a compaction and an overlay
// come, the same is read.
func TestDeleteCompactionOverlay(t *testing.T) {
	const rows = 20
	labels := map[int64]int64{} // of two thirds of the rows, deleted ones too
	for i := range int64(rows) {
		if i%3 != 1 {
			labels[i] = 100 + i
		}
	}
	want := map[int64]int64{}
	for i := range int64(rows) {
		if i%5 == 2 {
			continue // deleted
		}
		if want[i] = noLabel; i%3 != 1 {
			want[i] = 100 + i
		}
	}
	steps := map[string]func(l *ingestedTable){
		"delete": func(l *ingestedTable) {
			if n := l.delete(selection.Query{Where: "a = 2"}); n != rows/5 {
				l.t.Errorf("%d rows deleted", n)
			}
		},
		"compact": func(l *ingestedTable) { l.compact() },
		"overlay": func(l *ingestedTable) {
			if err := l.addOverlay("o", labels, nil); err != nil {
				l.t.Fatal(err)
			}
		},
		"merge": func(l *ingestedTable) {
			if _, err := l.table.Commit(l.t.Context(), commit.Change{Operation: "overlay",
				Base: l.latest().Info().Number, Ops: []commit.Operation{commit.MergeOverlays{"o"}}}); err != nil {
				l.t.Fatal(err)
			}
		},
	}
	for _, order := range []string{
		"delete compact overlay", "delete overlay compact", "compact delete overlay", "compact overlay delete",
		"overlay delete compact", "overlay compact delete",
		"overlay delete compact merge compact", "delete overlay merge compact compact", "overlay merge delete compact",
	} {
		t.Run(order, func(t *testing.T) {
			l := ingestTable(t)
			l.days(0, rows)
			merged := false
			for _, step := range strings.Fields(order) {
				steps[step](l)
				merged = merged || step == "merge"
			}
			opts := reader.PlanOptions{Overlays: []string{"o"}}
			if merged {
				opts.Overlays = nil
			}
			if got, _, err := l.read(opts); err != nil || !maps.Equal(got, want) {
				t.Errorf("%v %v, want %v", got, err, want)
			}
			// A filter of the label finds the same, by whatever statistics.
			opts.Filter = "label >= 110"
			got, _, err := l.read(opts)
			if err != nil {
				t.Fatal(err)
			}
			for row, label := range want {
				if _, ok := got[row]; ok != (label >= 110) {
					t.Errorf("%s: row %d with label %d is read: %v", opts.Filter, row, label, ok)
				}
			}
			if report, err := l.store.Verify(t.Context(), "", true, nil); err != nil ||
				report.DamageCount > 0 {
				t.Errorf("%+v %v", report, err)
			}
		})
	}
}

// What was made against snapshot n and committed after a compaction n + 1 covered segments that were gone, by
// positions that were no more.
func TestOverlayOfBeforeTheCompaction(t *testing.T) {
	l := ingestTable(t)
	l.days(0, 16)
	labels := map[int64]int64{}
	for i := range int64(16) {
		labels[i] = 1000 - i
	}
	compacted := false
	if err := l.addOverlay("o", labels, func(o *overlay.Options) {
		o.Progress = func(p overlay.Progress) {
			if p.Phase == overlay.PhaseCommit && !compacted {
				compacted = true
				l.delete(selection.Query{Where: "a = 0"})
				l.compact()
				l.days(16, 4)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if !compacted {
		t.Fatal("nothing happened meanwhile")
	}
	got, _, err := l.read(reader.PlanOptions{Overlays: []string{"o"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(20) {
		want, there := int64(noLabel), i%5 != 0 || i >= 16
		if i < 16 {
			want = 1000 - i
		}
		if label, ok := got[i]; ok != there || ok && label != want {
			t.Errorf("row %d: label %d, there %v, want %d, %v", i, label, ok, want, there)
		}
	}
}

// A back-fill was visible while it was under way, or after it had failed: jobs trained on a feature that was null in
// most rows. Here it is there whole or not at all; and in what is ingested later it is what was declared.
func TestBackFillIsSeenWhole(t *testing.T) {
	l := ingestTable(t)
	l.days(0, 16)
	before := l.latest().Info().Number
	labels, want := map[int64]int64{}, map[int64]int64{}
	for i := range int64(16) {
		labels[i], want[i] = i*i, i*i
	}
	seen := map[overlay.Phase]bool{}
	unseen := func(p overlay.Progress) {
		seen[p.Phase] = true
		for _, overlays := range [][]string{nil, {"o"}} {
			if got, _, err := l.read(reader.PlanOptions{Overlays: overlays}); !errors.Is(err, storage.ErrNotFound) {
				t.Fatalf("%s, overlays %v: %v %v", p.Phase, overlays, got, err)
			}
		}
		if n := l.latest().Info().Number; n != before {
			t.Fatalf("%s: snapshot %d after %d", p.Phase, n, before)
		}
	}
	// One that fails, and one that is ended, at each of its phases leaves nothing.
	for _, phase := range []overlay.Phase{overlay.PhaseRead, overlay.PhaseMatch, overlay.PhaseCommit} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := overlay.Add(ctx, l.store, "t", "o", overlay.Options{From: []string{l.file(labels)},
			Key: []string{"row"}, TempDir: t.TempDir(), Memory: 64 << 20,
			Progress: func(p overlay.Progress) {
				if unseen(p); p.Phase == phase {
					cancel()
				}
			}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", phase, err)
		}
		unseen(overlay.Progress{Phase: "after " + phase})
	}
	if err := l.addOverlay("o", labels, func(o *overlay.Options) {
		o.Progress, o.MissingLayers = unseen,
			catalog.Refuse
	}); err != nil {
		t.Fatal(err)
	}
	if !seen[overlay.PhaseRead] || !seen[overlay.PhaseMatch] || !seen[overlay.PhaseCommit] {
		t.Errorf("looked at in %v only", seen)
	}
	if got, _, err := l.read(reader.PlanOptions{Overlays: []string{"o"}}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	// Merged by mistake it would be seen by all: one that is to be refused where it is missing is not merged.
	if _, err := l.table.Commit(t.Context(), commit.Change{Operation: "overlay", Base: l.latest().Info().Number,
		Ops: []commit.Operation{commit.MergeOverlays{"o"}}}); err == nil {
		t.Error("merged")
	}
	// What comes later has not been filled, and says so.
	l.days(16, 4)
	if got, _, err := l.read(reader.PlanOptions{Overlays: []string{"o"}}); err == nil {
		t.Errorf("%v, of rows that were not filled", got)
	}
	if err := l.addOverlay("o", labels, func(o *overlay.Options) {
		o.Replace, o.MissingLayers, o.MissingRows = true,
			catalog.Null, catalog.Null
	}); err != nil {
		t.Fatal(err)
	}
	for i := range int64(4) {
		want[16+i] = noLabel
	}
	if got, _, err := l.read(reader.PlanOptions{Overlays: []string{"o"}}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	got, _, err := l.read(reader.PlanOptions{Overlays: []string{"o"}, Filter: "label >= 0"})
	if err != nil || len(got) != 16 {
		t.Errorf("of rows that were filled: %v %v", got, err)
	}
}

// Rows were other rows after a merge: lists of row ids, and positions, went on counting as before it.
func TestRowsAfterAMerge(t *testing.T) {
	l := ingestTable(t)
	l.days(0, 22)
	if err := l.addOverlay("o", map[int64]int64{3: 3, 20: 20, 11: 11}, nil); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := selection.Create(ctx, l.table, "some", &selection.Query{Where: "row IN (1, 3, 8, 9, 11, 15, 20)"},
		false, selection.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"made", "compacted", "rows deleted", "compacted again", "more ingested",
		"and compacted"} {
		want := map[int64]int64{1: noLabel, 3: 3, 8: noLabel, 9: noLabel, 11: 11, 15: noLabel, 20: 20}
		switch step {
		case "rows deleted":
			l.delete(selection.Query{Where: "row IN (0, 8, 10, 21)"})
		case "more ingested":
			l.days(22, 5)
		case "compacted", "compacted again", "and compacted":
			l.compact()
		}
		if step != "made" && step != "compacted" {
			delete(want, 8)
		}
		got, _, err := l.read(reader.PlanOptions{Overlays: []string{"o"}, SampleList: "some"})
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", step, got, err, want)
		}
		// Positions are those of a scan, whatever is selected.
		for _, opts := range []reader.PlanOptions{{Overlays: []string{"o"}, SampleList: "some"},
			{Overlays: []string{"o"}, Filter: "label > 3 OR a = 1"}} {
			_, order, err := l.read(opts)
			if err != nil {
				t.Fatal(err)
			}
			opts.Features = []string{"row"}
			snap := l.latest()
			plan, err := reader.NewPlan(ctx, snap, opts)
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
			for place := range order {
				b, err := taker.Take(ctx, []uint64{uint64(place)})
				if err != nil {
					t.Fatal(err)
				}
				if row := intAt(b, 0, 0); row != order[place] {
					t.Errorf("%s: place %d is row %d, want %d", step, place, row, order[place])
				}
				b.Release()
			}
			taker.Close()
		}
	}
}

// Of a key that came twice in the file one of the values was taken, another in each run. It is refused, with both
// positions.
func TestKeysThatComeTwice(t *testing.T) {
	l := ingestTable(t)
	l.days(0, 8)
	path := filepath.Join(t.TempDir(), "twice.jsonl")
	lines := "{\"row\": 5, \"label\": 1}\n{\"row\": 2, \"label\": 2}\n{\"row\": 5, \"label\": 3}\n"
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	before := l.latest().Info().Number
	err := l.addOverlay("o", map[int64]int64{1: 1}, func(o *overlay.Options) { o.From = []string{path} })
	if err == nil || !strings.Contains(err.Error(), "5") || strings.Count(err.Error(), "twice.jsonl") != 2 {
		t.Errorf("%v", err)
	}
	if n := l.latest().Info().Number; n != before {
		t.Errorf("snapshot %d after %d", n, before)
	}
}
