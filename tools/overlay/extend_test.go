package overlay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

// TestExtend extends overlays of random files, of features of every type, by other files, over rows that were ingested
// and deleted meanwhile, and holds what they have to joins of Go maps: what is covered stays.
func TestExtend(t *testing.T) {
	for seed := range uint64(fewer(12)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { testExtend(t, rand.New(rand.NewPCG(seed, 4))) })
	}
}

func testExtend(t *testing.T, r *rand.Rand) {
	s := newStore(t, object.NewMemory())
	var fields []arrow.Field
	var kinds []columnKind
	for i := range 1 + r.IntN(3) {
		k := columnKinds[r.IntN(len(columnKinds))]
		kinds = append(kinds, k)
		fields = append(fields, nullable(fmt.Sprint("c", i), k.typ))
	}
	const keys = 900
	ingestSome := func() {
		var rows []row
		for range 100 + r.IntN(400) {
			rows = append(rows, row{"id": intValue(int64(r.IntN(keys))), "ds": textValue(fmt.Sprint("d", r.IntN(2))),
				"click": intValue(int64(r.IntN(2)))})
		}
		ingestRows(t, s, partitionedFields, rows, nil)
	}
	// files draws rows of some keys.
	files := func() (map[string]row, string) {
		out, given := map[string]row{}, []row{}
		share := r.Float64()
		for id := range keys {
			if r.Float64() > share {
				continue
			}
			x := row{"id": intValue(int64(id))}
			for i, k := range kinds {
				x[fmt.Sprint("c", i)] = withNulls(r, 0.1, k.make)
			}
			out[x["id"].text] = x
			given = append(given, x)
		}
		r.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
		return out, writeArrow(t, append([]arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64)}, fields...), given)
	}
	ingestSome()
	first, path := files()
	missing := []catalog.MissingPolicy{catalog.FallThrough, catalog.Null, catalog.Refuse}[r.IntN(3)]
	was, err := Add(t.Context(), s, "ads", "o", Options{From: []string{path}, MissingLayers: missing,
		Role: catalog.RoleLabel})
	if err != nil {
		t.Fatal(err)
	}
	old := latest(t, s)
	before := readOverlay(t, old, "o")
	if r.IntN(2) == 0 {
		deleteRows(t, s, r)
	}
	ingestSome()
	second, path := files()
	opts := Options{From: []string{path}, TempDir: t.TempDir()}
	joins[r.IntN(len(joins))].change(&opts)
	report, err := Extend(t.Context(), s, "ads", "o", opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Features {
		if f.Nulls != nil {
			t.Errorf("%d nulls of %s: those of the layers before are not known", *f.Nulls, f.Name)
		}
	}
	snap := latest(t, s)
	// A row was covered when it lies in a segment of before, and its key is among the first.
	now := readOverlay(t, snap, "o")
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := snap.DeletionVectors(t.Context(), segments...)
	if err != nil {
		t.Fatal(err)
	}
	var had []string // ids of the segments that the overlay was made over
	oldSegments, err := old.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range oldSegments {
		had = append(had, d.ID)
	}
	ids := readRows(t, snap, "id")
	covered, all, coveredBefore := 0, 0, 0
	for i, d := range segments {
		gone, err := s.Bitmaps().Read(t.Context(), deleted[i])
		if err != nil {
			t.Fatal(err)
		}
		l, layer := now[d.ID]
		for k := range int(d.Rows) {
			if gone.Contains(uint32(k)) {
				continue
			}
			id := ids[0]["id"]
			ids = ids[1:]
			all++
			want, ok := row(nil), false
			if slices.Contains(had, d.ID) {
				want, ok = first[id]
			}
			if ok {
				coveredBefore++
			} else {
				want, ok = second[id]
			}
			if ok != (layer && l.covered[k]) {
				t.Fatalf("segment %s, row %d of key %s: covered %v, want %v", d.ID, k, id, !ok, ok)
			}
			if !ok {
				continue
			}
			covered++
			for f, text := range l.rows[k] {
				if text != want[f].text {
					t.Fatalf("segment %s, row %d of key %s: %s is %s, want %s", d.ID, k, id, f, text, want[f].text)
				}
			}
		}
	}
	if int(report.Rows) != all || int(report.Covered) != covered || int(report.Before.Rows) != all ||
		report.Segments != report.Before.Segments {
		t.Fatalf("report %+v, before %+v: want %d rows, %d covered", report, report.Before, all, covered)
	}
	if n := int(report.Before.Covered); n != coveredBefore {
		t.Fatalf("%d rows covered before, want %d", n, coveredBefore)
	}
	o, err := snap.Overlay(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	if o.MissingLayers != missing || o.Added != was.Snapshot || o.Features[0].Role != catalog.RoleLabel {
		t.Errorf("extended, it is %+v", o)
	}
	// Who reads the table as it was reads the overlay as it was.
	for id, l := range readOverlay(t, old, "o") {
		if fmt.Sprint(l.rows, l.covered) != fmt.Sprint(before[id].rows, before[id].covered) {
			t.Errorf("layer over segment %s of the old snapshot changed", id)
		}
	}
	again, err := Extend(t.Context(), s, "ads", "o", opts)
	if err != nil || again.Covered != report.Covered || again.BytesOut != 0 || again.Snapshot < report.Snapshot {
		t.Errorf("extended by the same again: %+v, %v", again, err)
	}
	verifyClean(t, s)
}

// An expression covers whatever is not covered; values that there are stay, and policies too.
func TestExtendByExpression(t *testing.T) {
	s := keyed(t, 700)
	add := func(name string, exprs ...string) {
		t.Helper()
		if _, err := Add(t.Context(), s, "ads", name, Options{Exprs: exprs,
			MissingLayers: catalog.Refuse}); err != nil {
			t.Fatal(err)
		}
	}
	add("o", "y = id * 2", "z = click = 1")
	var more []row
	for i := range 400 {
		more = append(more, row{"id": intValue(int64(700 + i)), "click": intValue(int64(i % 2))})
	}
	ingestRows(t, s, []arrow.Field{partitionedFields[0], partitionedFields[2]}, more, nil)
	report, err := Extend(t.Context(), s, "ads", "o", Options{Exprs: []string{"z = click = 0", "y = id * 3"}})
	if err != nil {
		t.Fatal(err)
	}
	if b := report.Before; b.Covered != 700 || b.Rows != 1100 || report.Covered != 1100 || report.Layers <= b.Layers ||
		report.Attempts != 1 {
		t.Fatalf("%+v, before %+v", report, b)
	}
	checkOverlay(t, latest(t, s), "o", []string{"id", "click"}, func(x map[string]string) (map[string]string, bool) {
		var id, click int
		_, _ = fmt.Sscanf(x["id"], "[%d]", &id)
		_, _ = fmt.Sscanf(x["click"], "[%d]", &click)
		if id < 700 {
			return map[string]string{"y": fmt.Sprint([]int{2 * id}), "z": fmt.Sprint([]int{click})}, true
		}
		return map[string]string{"y": fmt.Sprint([]int{3 * id}), "z": fmt.Sprint([]int{1 - click})}, true
	})
	verifyClean(t, s)
}

func TestExtendRefused(t *testing.T) {
	s := keyed(t, 700)
	ctx := t.Context()
	change := func(c commit.Change) {
		t.Helper()
		snap := latest(t, s)
		c.Operation, c.Base = "test", snap.Info().Number
		if _, err := snap.Table().Commit(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for name, exprs := range map[string][]string{"o": {"y = id / 2"}, "merged": {"m = id + 1"},
		"two": {"a = click = 1", "b = id"}} {
		if _, err := Add(ctx, s, "ads", name, Options{Exprs: exprs}); err != nil {
			t.Fatal(err)
		}
	}
	change(commit.Change{Ops: []commit.Operation{commit.MergeOverlays{"merged"}}})
	setBranch(t, s, "b")
	if _, err := Add(ctx, s, "ads@b", "onbranch", Options{Exprs: []string{"z = id"}}); err != nil {
		t.Fatal(err)
	}
	number := latest(t, s).Info().Number
	file := labelsOf(t, 10)
	text := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("y", arrow.BinaryTypes.String)},
		[]row{{"id": intValue(1), "y": textValue("x")}})
	for _, c := range []struct {
		table, overlay string
		opts           Options
		want           string
	}{
		{"ads", "p", Options{Exprs: []string{"y = id"}}, `overlay "p"`},
		{"ads", "merged", Options{Exprs: []string{"m = id"}}, "is part of the table since snapshot"},
		{"ads", "onbranch", Options{Exprs: []string{"z = id"}}, "of branch b"},
		{"ads@b", "onbranch", Options{Exprs: []string{"z = id"}}, "the rows of a branch stay the same"},
		{"ads", "o", Options{Exprs: []string{"z = id"}}, "overlay o has no feature z"},
		{"ads", "two", Options{Exprs: []string{"b = id"}}, "no expression of feature a"},
		{"ads", "o", Options{Exprs: []string{"y = id + 1"}},
			"feature y is float64 in overlay o, and the expression gives int64"},
		{"ads", "two", Options{Exprs: []string{"a = id / 2", "b = id"}},
			"feature a is int8 in overlay two and float64"},
		{"ads", "o", Options{From: []string{file}}, `no file has a feature "y"`},
		{"ads", "o", Options{From: []string{text}},
			"feature y is float64 in overlay o and string in " + text +
				": no type holds both exactly; to hold both, make the overlay anew"},
		{"ads", "o", Options{From: []string{file}, Features: []string{"label"}}, "has its features"},
		{"ads", "o", Options{Exprs: []string{"y = id / 2"}, Replace: true}, "keeps what it has"},
		{"ads", "o", Options{}, "neither is given"},
	} {
		if _, err := Extend(ctx, s, c.table, c.overlay, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s by %v: %v, want %s", c.overlay, c.table, c.opts.Exprs, err, c.want)
		}
	}
	if got := latest(t, s).Info().Number; got != number {
		t.Errorf("snapshot %d, want %d", got, number)
	}
	if _, err := Extend(ctx, s, "ads", "p", Options{Exprs: []string{"y = id"}}); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
}

// What others commit while an overlay is extended: its layers are made over what there is then.
func TestExtendConflicts(t *testing.T) {
	rewrite := func(s *storage.Store, n int) {
		ingestRows(t, s, partitionedFields, partitioned("a", 0, n),
			func(o *ingest.Options) { o.Overwrite = true; o.SegmentRows = 5000 })
	}
	extendBy := func(s *storage.Store, value string) {
		if _, err := Extend(t.Context(), s, "ads", "o", Options{Exprs: []string{"y = " + value}}); err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		change func(s *storage.Store)
		want   string // of the rows that were not covered; of an error, after "!"
	}{
		"nothing":            {func(*storage.Store) {}, "id * 3"},
		"another extends it": {func(s *storage.Store) { extendBy(s, "id * 5") }, "id * 5"},
		"an ingest": {func(s *storage.Store) {
			ingestRows(t, s, partitionedFields, partitioned("b", 2000, 100), nil)
		}, "id * 3"},
		"an overwrite":   {func(s *storage.Store) { rewrite(s, 500) }, "id * 3"},
		"it is dropped":  {func(s *storage.Store) { dropNow(t, s, "o") }, "!not found"},
		"it is replaced": {func(s *storage.Store) { replaceNow(t, s) }, "!was replaced meanwhile"},
		"it is merged":   {func(s *storage.Store) { mergeNow(t, s, "o") }, "!part of the table"},
		"it is dropped and merged": {func(s *storage.Store) { replaceNow(t, s); mergeNow(t, s, "o") },
			"!part of the table"},
	} {
		for _, phase := range []Phase{PhaseWrite, PhaseCommit} {
			t.Run(fmt.Sprintf("%s, in %s", what, phase), func(t *testing.T) {
				s := newStore(t, object.NewMemory())
				ingestRows(t, s, partitionedFields, partitioned("a", 0, 500), nil)
				if _, err := Add(t.Context(), s, "ads", "o", Options{From: []string{valuesOf(t, 300)}}); err != nil {
					t.Fatal(err)
				}
				ingestRows(t, s, partitionedFields, partitioned("b", 500, 300), nil)
				done := false
				opts := Options{Exprs: []string{"y = id * 3"}, Progress: func(p Progress) {
					if !done && p.Phase == phase && (p.Done > 0 || phase == PhaseCommit) {
						done = true
						c.change(s)
					}
				}}
				report, err := Extend(t.Context(), s, "ads", "o", opts)
				if want, ok := strings.CutPrefix(c.want, "!"); ok {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Fatalf("%v, want %s", err, want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				times := int(c.want[len(c.want)-1] - '0')
				kept := c.want == "id * 3" && what == "an overwrite"
				n := checkOverlay(t, latest(t, s), "o", []string{"id"},
					func(x map[string]string) (map[string]string, bool) {
						var id int
						_, _ = fmt.Sscanf(x["id"], "[%d]", &id)
						if id < 300 && !kept {
							return map[string]string{"y": fmt.Sprint([]int{-id})}, true
						}
						// What is ingested after the last look is as what is ingested after the commit.
						return map[string]string{"y": fmt.Sprint([]int{id * times})}, id < 2000 || phase != PhaseCommit
					})
				if uint64(n) != report.Covered || report.Covered != report.Rows {
					t.Errorf("%d rows covered: %+v", n, report)
				}
				names := objectsAfterGC(t, s)
				verifyClean(t, s)
				if len(names) == 0 {
					t.Error("no objects")
				}
			})
		}
	}
}

// valuesOf writes a file with a y for each key below n: the key with a minus.
func valuesOf(t *testing.T, n int) string {
	t.Helper()
	var rows []row
	for i := range n {
		rows = append(rows, row{"id": intValue(int64(i)), "y": intValue(int64(-i))})
	}
	return writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("y", arrow.PrimitiveTypes.Int64)}, rows)
}

func commitNow(t *testing.T, s *storage.Store, c commit.Change) {
	t.Helper()
	snap := latest(t, s)
	c.Operation, c.Base = "test", snap.Info().Number
	if _, err := snap.Table().Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func dropNow(t *testing.T, s *storage.Store, name string) {
	t.Helper()
	commitNow(t, s, commit.Change{Ops: []commit.Operation{commit.DropOverlays{name}}})
}

func mergeNow(t *testing.T, s *storage.Store, name string) {
	t.Helper()
	commitNow(t, s, commit.Change{Ops: []commit.Operation{commit.MergeOverlays{name}}})
}

func replaceNow(t *testing.T, s *storage.Store) {
	t.Helper()
	if _, err := Add(t.Context(), s, "ads", "o", Options{From: []string{valuesOf(t, 10)}, Replace: true}); err != nil {
		t.Fatal(err)
	}
}
