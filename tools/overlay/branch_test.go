package overlay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

// setBranch makes a branch of the newest snapshot, with the sample list of some rows that one job reads.
func setBranch(t *testing.T, s *storage.Store, name string) {
	t.Helper()
	snap := latest(t, s)
	segments, err := snap.Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.Bitmaps().Put(t.Context(), segments[0].ID, segments[0].Rows, roaring.BitmapOf(3, 5))
	if err != nil {
		t.Fatal(err)
	}
	c := commit.Change{Operation: "branch", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DefineLists{{Name: "few"}},
			commit.SetListRows{{List: "few", Segment: segments[0].ID, Rows: set}}, commit.SetBranches{{Name: name,
				Snapshot: snap.Info().Number, List: catalog.Pin{Name: "few"}}}}}
	if _, err := snap.Table().Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// readView returns the texts of features in all rows of what a name stands for, but its sample list, in the order of
// the table.
func readView(t *testing.T, s *storage.Store, ref string, features ...string) [][]string {
	t.Helper()
	v, err := s.Open(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	v.List, v.ListIn = "", nil
	plan, err := reader.NewViewPlan(t.Context(), v, reader.PlanOptions{Features: features})
	if err != nil {
		t.Fatal(err)
	}
	scan, err := reader.OpenView(t.Context(), v, plan, reader.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer scan.Close()
	var out [][]string
	for {
		b, err := scan.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Rows {
			var r []string
			for _, c := range b.Columns {
				r = append(r, textOf(c, i))
			}
			out = append(out, r)
		}
		b.Release()
	}
}

var branchFields = []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
	nullable("click", arrow.PrimitiveTypes.Int64)}

// branchRows have clicks of 0 and 1 in turn.
func branchRows(n int) []row {
	var out []row
	for i := range n {
		out = append(out, row{"id": intValue(int64(i)), "click": intValue(int64(i % 2))})
	}
	return out
}

// An overlay of a branch is the branch's: nobody else can name it, as compaction takes it from the table; and it takes
// the place of none that others read.
func TestOverlaysOfOthers(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, branchFields, branchRows(90), nil)
	setBranch(t, s, "b")
	c := commit.Change{Operation: "branch", Base: latest(t, s).Info().Number,
		Ops: []commit.Operation{commit.SetBranches{{Name: "c", Snapshot: latest(t, s).Info().Number}}}}
	if _, err := latest(t, s).Table().Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	add := func(ref, name string, replace bool, over ...string) error {
		opts := Options{Exprs: []string{name + " = click = 1"}, Replace: replace, Over: over}
		_, err := Add(t.Context(), s, ref, name, opts)
		return err
	}
	if err := errors.Join(add("ads", "shared", false), add("ads@b", "own", false)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"of the table":   add("ads@b", "shared", true),
		"of branch b":    add("ads@c", "own", true),
		"read ads@b":     add("ads", "x", false, "own"),
		"is of branch b": add("ads", "own", true),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	all, err := latest(t, s).Overlays(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, o := range all {
		if want := map[string]string{"shared": "", "own": "b"}[o.Name]; o.Branch != want {
			t.Errorf("%+v", o)
		}
	}
	for ref, ok := range map[string]bool{"ads": false, "ads@b": true} {
		v, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		opts := reader.PlanOptions{Features: []string{"own"}}
		if !ok {
			opts.Overlays = []string{"own"}
		}
		_, err = reader.NewViewPlan(t.Context(), v, opts)
		if (err == nil) != ok || !ok && !strings.Contains(err.Error(), "overlay own is of branch b: read ads@b") {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if err := add("ads@b", "own", true); err != nil {
		t.Error(err)
	}
}

// An overlay over a branch reads what the branch does: its overlays, and every row, whatever its sample list.
func TestBranchOfOverlays(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, branchFields, branchRows(900), nil)
	setBranch(t, s, "b")
	x := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("x", arrow.BinaryTypes.String)},
		[]row{{"id": intValue(7), "x": textValue("seven")}, {"id": intValue(8), "x": textValue("eight")}})
	adds := []Options{
		{Exprs: []string{"click = click = 0"}},
		{From: []string{x}},
		{Exprs: []string{"y = click = 1 AND x IS NOT NULL"}},
		{Exprs: []string{"z = x = 'seven'"}},
	}
	for i, opts := range adds {
		report, err := Add(t.Context(), s, "ads@b", fmt.Sprint("o", i), opts)
		if err != nil {
			t.Fatal(i, err)
		}
		if report.Rows != 900 || i != 1 && report.Covered != 900 {
			t.Fatalf("%d: %+v", i, report)
		}
	}
	rows := readView(t, s, "ads@b", "id", "click", "x", "y", "z")
	if len(rows) != 900 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		var id int64
		if _, err := fmt.Sscanf(r[0], "[%d]", &id); err != nil {
			t.Fatal(err)
		}
		want := []string{r[0], fmt.Sprint([]int64{1 - id%2}), "null", "[0]", "null"}
		switch id {
		case 7:
			want[2], want[4] = `"seven"`, "[1]"
		case 8:
			want[2], want[3], want[4] = `"eight"`, "[1]", "[0]"
		}
		if !slices.Equal(r, want) {
			t.Fatalf("%q, want %q", r, want)
		}
	}
	// What the branch could not be read under is refused.
	numbers := writeArrow(t, []arrow.Field{nullable("id", arrow.PrimitiveTypes.Int64),
		nullable("x", arrow.PrimitiveTypes.Int64)},
		[]row{{"id": intValue(7), "x": intValue(7)}})
	if _, err := Add(t.Context(), s, "ads@b", "bad", Options{From: []string{numbers}}); err == nil ||
		!strings.Contains(err.Error(), "no type holds both") {
		t.Fatalf("a feature that an overlay of the branch has with another type: %v", err)
	}
	if _, err := Add(t.Context(), s, "ads@b", "bad", Options{Exprs: []string{"x = click = 1"}}); err == nil {
		t.Fatal("an expression of a feature that an overlay of the branch has as a string")
	}
	verifyClean(t, s)
}

// A branch has the schema that it had: what became of the table's names since makes no difference.
func TestBranchSchema(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, branchFields, branchRows(10), nil)
	setBranch(t, s, "b")
	if _, err := Add(t.Context(), s, "ads@b", "x1", Options{Exprs: []string{"x = click = 1"}}); err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) {
		t.Helper()
		c := commit.Change{Operation: "features",
			Ops: []commit.Operation{commit.ChangeFeatures{{Feature: from, Rename: to}}}}
		if _, err := latest(t, s).Table().Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	change("click", "clicked")
	more := []arrow.Field{branchFields[0], nullable("x", arrow.BinaryTypes.String),
		nullable("late", arrow.BinaryTypes.String)}
	ingestRows(t, s, more, []row{{"id": intValue(99), "x": textValue("the table's"), "late": textValue("")}}, nil)
	change("x", "x of the table")
	adds := []string{"click = click = 0", "x = click = 1", "late = x = 1"}
	for i, e := range adds {
		if _, err := Add(t.Context(), s, "ads@b", fmt.Sprint("o", i), Options{Exprs: []string{e}}); err != nil {
			t.Fatalf("%s: %v", e, err)
		}
	}
	for _, r := range readView(t, s, "ads@b", "id", "click", "x", "late") {
		if r[1] == "[1]" != (r[2] == "[1]") || r[2] != r[3] {
			t.Fatalf("%q", r)
		}
	}
	verifyClean(t, s)
}

// Of overlays that become part of the table the later one lies on top, in whichever order they were added: the first
// may be in the segments by then.
func TestMergedInOrder(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, branchFields, branchRows(10), nil)
	for _, e := range []string{"click = id < 0", "click = id >= 0"} {
		if _, err := Add(t.Context(), s, "ads", fmt.Sprintf("%x", e), Options{Exprs: []string{e}}); err != nil {
			t.Fatal(err)
		}
	}
	overlays, err := latest(t, s).Overlays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"[1]", "[0]"} {
		c := commit.Change{Operation: "overlay", Base: latest(t, s).Info().Number,
			Ops: []commit.Operation{commit.MergeOverlays{overlays[1-i].Name}}}
		if _, err := latest(t, s).Table().Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		for _, r := range readView(t, s, "ads", "click") {
			if r[0] != want {
				t.Fatalf("%s once %s is merged, want %s", r[0], overlays[1-i].Name, want)
			}
		}
	}
	verifyClean(t, s)
}

// TestCoverOfBranch: an overlay of a branch covers the rows of the branch, also when the segments under it are no
// longer the table's.
func TestCoverOfBranch(t *testing.T) {
	s := newStore(t, object.NewMemory())
	ingestRows(t, s, branchFields, branchRows(900), nil)
	setBranch(t, s, "b")
	if _, err := Add(t.Context(), s, "ads@b", "o", Options{Exprs: []string{"y = click = 1"}}); err != nil {
		t.Fatal(err)
	}
	cover := func() Coverage {
		snap := latest(t, s)
		o, err := snap.Overlay(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Cover(t.Context(), snap, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		layers := 0
		err = EachLayer(t.Context(), snap, o, func(catalog.OverlaySegment) error { layers++; return nil })
		if err != nil || layers != c.Layers {
			t.Fatal(err, layers, c)
		}
		return c
	}
	before, read := cover(), readView(t, s, "ads@b", "y")
	ingestRows(t, s, branchFields, branchRows(100), func(o *ingest.Options) { o.Overwrite = true })
	if got := cover(); got != before || got.Covered != 900 || got.Bytes == 0 {
		t.Fatalf("%+v, and before the overwrite %+v", got, before)
	}
	if !slices.EqualFunc(readView(t, s, "ads@b", "y"), read, slices.Equal[[]string]) {
		t.Fatal("the branch reads something else")
	}
}
