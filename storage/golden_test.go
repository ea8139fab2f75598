package storage

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

var updateGolden = flag.Bool("update", false,
	"write the golden store if it does not exist yet (storage/testdata/golden)")

// goldenStore is what builds before the first release write. From that release on it is kept for ever, and a new
// version gets a store of its own.
const goldenStore = "testdata/golden/v1"

func localAt(t *testing.T, dir string) *object.Local {
	t.Helper()
	l, err := object.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// makeGolden writes the golden store.
func makeGolden(t *testing.T, dir string) {
	ctx := t.Context()
	l := localAt(t, dir)
	now := time.Now().UTC().Truncate(time.Second).Add(time.Hour) // past everything that gc looks at
	s, err := Create(ctx, l, Options{Now: func() time.Time { now = now.Add(time.Second); return now }})
	if err != nil {
		t.Fatal(err)
	}
	// so that there are runs, sets in objects, and key tables
	s.core.Trees.MemtableBytes, s.core.Bitmaps.InlineBytes, s.core.Segments.MinKeyRows = 500, 40, 1
	tab, err := s.NewTable(ctx, "ads/é")
	if err != nil {
		t.Fatal(err)
	}
	schema := features("x", "y", "k")
	schema[2].Role = catalog.RoleSessionKey
	a := segmentWith(t, tab, partition("ds", "1"), []uint32{50, 20}, 1, segment.Options{}, schema...)
	mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures(schema),
		commit.AddSegments{a}, commit.AddSources{{Fingerprint: "f1", Name: "a.parquet"}}, commit.SetProperties{
			"profile": "size"}}})
	b := writeSegment(t, tab, partition("ds", "2"), []uint32{40}, 2, segment.Options{}, "x")
	mustCommit(t, tab, commit.Change{Operation: "ingest", Ops: []commit.Operation{commit.AddFeatures(features("x")),
		commit.AddSegments{b}, commit.AddSources{{Fingerprint: "f2", Name: "b.parquet"}}}})
	mustCommit(t, tab, commit.Change{Operation: "delete", Ops: []commit.Operation{commit.DeleteRows{{Segment: a.ID,
		Rows: rowSet(t, s,
			a, 0, 7, 69)}, {Segment: b.ID, Rows: everySecond(t, s, b, 1)}}}})
	some := layer(t, tab, "label", a, 5, "y", "z")
	some.All, some.Covered = false, rowSet(t, s, a, 1, 2, 3)
	label := overlay("label", "y", "z")
	label.MissingRows, label.MissingLayers = catalog.Null, catalog.Refuse
	mustCommit(t, tab, commit.Change{Operation: "overlay", Base: 3, Ops: []commit.Operation{commit.DefineOverlays{label,
		overlay("fill", "x")}, commit.SetOverlaySegments{some, layer(t, tab, "fill", b, 6, "x")}}})
	mustCommit(t, tab, commit.Change{Operation: "samples", Base: 4,
		Ops: []commit.Operation{commit.DefineLists{{Name: "clicks", Definition: "click = 1"}},
			commit.SetListRows{{List: "clicks", Segment: a.ID, Rows: rowSet(t, s, a, 5, 6)}, {List: "clicks",
				Segment: b.ID, Rows: everySecond(t, s, b, 0)}}}})
	mustCommit(t, tab, commit.Change{Operation: "branch", Base: 5, Ops: []commit.Operation{commit.SetBranches{
		{Name: "exp", Snapshot: 5, Overlays: []catalog.Pin{{Name: "label", Snapshot: 4}},
			List: catalog.Pin{Name: "clicks", Snapshot: 5}, Owner: "ann"}, {Name: "old", Snapshot: 1}}}})
	dropped, deprecated := catalog.FeatureDropped, catalog.FeatureDeprecated
	mustCommit(t, tab, commit.Change{Operation: "features", Base: 6,
		Ops: []commit.Operation{commit.MergeOverlays{"fill"}, commit.ChangeFeatures{
			{Feature: "k", Rename: "key"}, {Feature: "y", Status: &dropped}, {Feature: "x", Status: &deprecated}}}})
	// A lease that lasts: no method gives one for so long.
	forever := lease.Name{Snapshot: 2, ID: "00000000000000aa", Lasts: 100 * 365 * 24 * time.Hour}
	if err := l.PutIfAbsent(ctx, forever.ObjectName("ads/é"), lease.Append(nil, "trainer")); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Expire(ctx, gc.ExpireOptions{KeepLast: 3}); err != nil {
		t.Fatal(err)
	}
	if r, err := s.GC(ctx, gc.Options{NoWait: true}); err != nil || r.Expired != 4 || len(r.Held) != 3 {
		t.Fatal(r, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "_tmp")); err != nil {
		t.Fatal(err)
	}
}

// goldenText says all that the golden store holds.
func goldenText(t *testing.T, s *Store) string {
	ctx := t.Context()
	var b strings.Builder
	tables, err := s.Tables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tables {
		tab, err := s.Table(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		leases, err := tab.Leases(ctx)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "table %q\n", name)
		for _, l := range leases {
			fmt.Fprintf(&b, "lease on %d by %q\n", l.Snapshot, l.Owner)
		}
		newest, err := tab.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for n := uint64(1); n <= newest.Info().Number; n++ {
			snap, err := tab.At(ctx, n)
			if err != nil {
				fmt.Fprintf(&b, "snapshot %d: %v\n", n, err)
				continue
			}
			goldenSnapshot(t, &b, snap)
		}
	}
	return b.String()
}

func goldenSnapshot(t *testing.T, b *strings.Builder, s *Snapshot) {
	ctx := t.Context()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(b, "snapshot: %+v\n", s.Info())
	features, err := s.AllFeatures(ctx)
	fail(err)
	for _, f := range features {
		fmt.Fprintf(b, "  feature %+v\n", f)
	}
	segs, err := s.Segments(ctx, nil)
	fail(err)
	overlays, err := s.Overlays(ctx)
	fail(err)
	slices.SortFunc(overlays, func(a, b catalog.Overlay) int { return cmp.Compare(a.Number, b.Number) })
	lists, err := s.SampleLists(ctx)
	fail(err)
	branches, err := s.Branches(ctx)
	fail(err)
	deleted, err := s.DeletionVectors(ctx, segs...)
	fail(err)
	layers, err := s.OverlaySegments(ctx, overlays, segs...)
	fail(err)
	set := func(what string, r bitmap.Ref) {
		rows := readRows(t, s, r)
		fmt.Fprintf(b, "    %s since %d, %d rows, first %v, object of %d bytes\n", what, r.Since, len(rows),
			rows[:min(3, len(rows))], objectSize(r))
	}
	for _, o := range overlays {
		fmt.Fprintf(b, "  overlay %+v\n", o)
	}
	for i, d := range segs {
		fmt.Fprintf(b, "  segment %+v\n", d)
		set("deleted", deleted[i])
		for j, o := range overlays {
			if l := layers[i][j]; l != nil {
				fmt.Fprintf(b, "    layer of %s since %d: all %v, %+v\n", o.Name, l.Since, l.All, l.Data)
				set("covered", l.Covered)
			}
		}
		for _, l := range lists {
			rows, err := s.ListedRows(ctx, l.Name, d)
			fail(err)
			set("in list "+l.Name, rows[0])
		}
	}
	for _, l := range lists {
		fmt.Fprintf(b, "  list %+v\n", l)
	}
	for _, x := range branches {
		fmt.Fprintf(b, "  branch %+v\n", x)
	}
}

// TestGolden: what was written stays readable, and says the same.
func TestGolden(t *testing.T) {
	text := filepath.Join(filepath.Dir(goldenStore), "v1.txt")
	if _, err := os.Stat(text); *updateGolden && os.IsNotExist(err) {
		makeGolden(t, goldenStore)
		s, err := Create(t.Context(), localAt(t, goldenStore), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(text, []byte(goldenText(t, s)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A copy, for verify and a store that is opened leave no file where they were given none, but a mistake might.
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goldenStore)); err != nil {
		t.Fatal(err)
	}
	s, err := Create(t.Context(), localAt(t, dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := goldenText(t, s); got != string(want) {
		t.Errorf("it reads as\n%s\nwant\n%s", got, want)
	}
	r := verifyClean(t, s)
	if r.RowBitmaps < 5 || r.Snapshots < 4 {
		t.Errorf("%+v", r)
	}
	// It can be written on.
	tab, err := s.Table(t.Context(), "ads/é")
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, tab, commit.Change{Operation: "on"})
	verifyClean(t, s)
}

// objectSize returns the size of the object that holds a set, 0 if none does.
func objectSize(r bitmap.Ref) uint64 {
	_, size, _ := r.Object()
	return size
}
