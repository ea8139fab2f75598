package report

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/writer"
)

// advised returns the advice on a table of 1 GiB after set has made something of it that is worth some, and checks that
// without there is none.
func advised(t *testing.T, kind string, rule func(*adviser), set func(*adviser)) Advice {
	t.Helper()
	a := adviser{t: &Table{}, c: newCollector(nil), table: "s t", now: testNow, listed: listedFeatures}
	a.t.Summary.StoredBytes = 1 << 30
	if rule(&a); len(a.out) != 0 {
		t.Fatalf("%s of nothing: %+v", kind, a.out)
	}
	set(&a)
	if rule(&a); len(a.out) != 1 || a.out[0].Kind != kind {
		t.Fatalf("%+v, want one piece of %s", a.out, kind)
	}
	return a.out[0]
}

// says checks a piece of advice.
func says(t *testing.T, a Advice, saved uint64, command string, parts ...string) {
	t.Helper()
	if a.SavedBytes != saved || a.Command != command {
		t.Errorf("%s saves %d by %q, want %d by %q", a.Kind, a.SavedBytes, a.Command, saved, command)
	}
	for _, p := range parts {
		if !strings.Contains(a.Text, p) {
			t.Errorf("%s: %q lacks %q", a.Kind, a.Text, p)
		}
	}
}

// TestRules: each rule says what it is about, with its figures and the command that does it.
func TestRules(t *testing.T) {
	// Of a segment of 100 rows of 1 MiB each some are deleted: in one a fifth, in the other 2 %.
	deleted := func(rows ...uint64) func(*adviser) {
		return func(a *adviser) {
			for _, n := range rows {
				a.c.segments = append(a.c.segments,
					segmentFacts{d: catalog.SegmentDescriptor{Rows: 100, Bytes: 100 << 20}, deleted: n})
			}
		}
	}
	says(t, advised(t, AdvicePurge, (*adviser).purge, deleted(20, 2)), 20<<20, "dsi compact s t", "20 rows are deleted",
		"1 segment,", "up to 20.0 MiB")
	says(t, advised(t, AdvicePurge, (*adviser).purge, deleted(2, 2)), 4<<20, "dsi compact s t --deleted-share 0.01",
		"4 rows are deleted", "2 segments", "up to 4.00 MiB")
	says(t, advised(t, AdvicePurge, (*adviser).purge, func(a *adviser) {
		a.t.Savings.Dropped.Count = 1
		a.c.segments = []segmentFacts{{d: catalog.SegmentDescriptor{Rows: 100, Bytes: 10 << 20}, droppedBytes: 1 << 20},
			{d: catalog.SegmentDescriptor{Rows: 100, Bytes: 1 << 30}, droppedBytes: 1 << 10}}
	}), 1<<20, "dsi compact s t", "1 feature is dropped", "1 segment,", "1.00 MiB")
	history := func(a *adviser) { a.history() }
	says(t, advised(t, AdviceExpire, history,
		func(a *adviser) { a.t.Health.Snapshots = SnapshotHealth{Newest: 9, AloneBytes: 3 << 20} }),
		3<<20, "dsi snapshots expire s t --keep-last 1", "before 9", "3.00 MiB")
	says(t, advised(t, AdviceBranch, history, func(a *adviser) {
		a.t.Health.Branches = []BranchHealth{{Branch: "b", Owner: "ann", AloneBytes: 2 << 20},
			{Branch: "c", AloneBytes: 100}}
	}), 2<<20, "dsi branch drop s t b", "branch b, of ann", "2.00 MiB")
	says(t, advised(t, AdviceBranch, history, func(a *adviser) {
		a.t.Health.Branches = []BranchHealth{{Branch: "a; reboot", AloneBytes: 2 << 20}}
	}), 2<<20, "dsi branch drop s t 'a; reboot'")
	says(t, advised(t, AdviceBranch, history, func(a *adviser) {
		a.t.Health.Branches = []BranchHealth{{Branch: "b", AloneBytes: 2 << 20}}
		a.t.Health.Overlays = []OverlayHealth{{Overlay: "o", State: "branch b"}, {Overlay: "p", State: "branch bb"}}
	}), 2<<20, "", "branch b, of nobody", "dropping it drops 1 overlay that was made on it, too: o")
	says(t, advised(t, AdviceBranch, history, func(a *adviser) {
		a.t.Health.Leases = []LeaseHealth{{Owner: "job", Snapshot: 4, Until: "then", AloneBytes: 2 << 20}}
	}), 2<<20, "", "lease of job", "snapshot 4 until then")
	overlays := (*adviser).overlays
	says(t, advised(t, AdviceOverlay, overlays, func(a *adviser) {
		a.t.Health.Overlays = []OverlayHealth{{Overlay: "o", Bytes: 50}, {Overlay: "p", Covered: 3, Layers: 1}}
	}), 50, "dsi overlay drop s t o", "covers no row")
	says(t, advised(t, AdviceOverlay, overlays, func(a *adviser) {
		a.t.Health.Overlays = []OverlayHealth{{Overlay: "o", State: "merged", Covered: 3, Layers: 2, Bytes: 50}}
	}), 0, "dsi compact s t --repack", "2 segments")
	merged := func(w rewriting) (func(*adviser), func(*adviser)) {
		var given rewriting
		return func(a *adviser) { a.rewrite(given) }, func(*adviser) { given = w }
	}
	small := rewriting{segments: 3, into: 1, bytes: 4 << 20, reasons: []string{"they are small"}, frames: 1 << 20}
	rule, set := merged(small)
	says(t, advised(t, AdviceMerge, rule, set), 1<<20, "dsi compact s t",
		"3 segments, 4.00 MiB, would become about 1: they are small", "about 1.00 MiB less")
	few := small
	few.full = true
	few.sharing = []sharing{{sessions: 100, pieces: 300, elements: 6000, before: 3000,
		after: [3]float64{1200, 1000, 900}, saved: 2 << 20, least: 1 << 20, most: 3 << 20}}
	rule, set = merged(few)
	got := advised(t, AdviceCluster, rule, set)
	says(t, got, 3<<20, "dsi compact s t --full", "100 sessions lie in 300 pieces", "from 2.00 to about 6.00")
	if got.AtLeast != 3<<19 || got.AtMost != 5033164 {
		t.Errorf("between %d and %d", got.AtLeast, got.AtMost)
	}
}

// TestDropCommand: what a dump calls its columns is a word to the shell, and none that a terminal cannot show becomes
// another's.
func TestDropCommand(t *testing.T) {
	a := adviser{table: "s t", since: testNow}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b"}, "dsi features drop s t a b"},
		{strings.Split("a b c d e f g h i j k l m", " "),
			"dsistat advise s t --unread 45 --since 2026-11-22 --names unread | dsi features drop s t --from -"},
		{[]string{"$(reboot)", "x;y", "it's", "*"}, `dsi features drop s t '$(reboot)' 'x;y' 'it'\''s' '\*'`},
		{[]string{"-rf", "a b"}, "dsi features drop s t -- -rf 'a b'"},
		{[]string{"line\nbreak", "a\x1b[31m", "\u202eb", "c"}, "dsi features drop s t c"},
		{[]string{"line\nbreak"}, ""},
	} {
		if got := a.drop(c.names, len(c.names), 45); got != c.want {
			t.Errorf("%q: %s, want %s", c.names, got, c.want)
		}
	}
}

// TestDuplicatesRule: a feature in a group is held to its part of the inverse, one alone to the writer's estimate,
// which has taken it off.
func TestDuplicatesRule(t *testing.T) {
	got := advised(t, AdviceDuplicate, (*adviser).duplicates, func(a *adviser) {
		a.c.groups[9] = &group{name: "a", members: []catalog.FeatureID{1, 2}, bytes: 400 << 10}
		for i, f := range []feature{
			{rows: 100, found: 150 << 10, group: 9},   // loses 50 KiB of its part
			{rows: 100, found: 300 << 10, group: 9},   // gains
			{rows: 100, found: 0, inverse: 100 << 10}, // loses its inverse, at most
			{rows: 100, found: 1, inverse: 1 << 30},   // gains
			{rows: 10, found: 0, inverse: 1 << 30},    // as many slots as rows
		} {
			f.Name, f.ID, f.slots = string(rune('a'+i)), catalog.FeatureID(i+1), 10
			a.c.order = append(a.c.order, &f)
			a.t.Features = append(a.t.Features, Feature{Name: f.Name})
		}
	})
	says(t, got, 0, "", "nothing to do", "up to 150 KiB more, in 2 features")
	if got.FeatureCount != 2 || strings.Join(got.Features, "") != "ca" {
		t.Errorf("%+v", got)
	}
	if lines := adviceLines([]Advice{got}); !strings.HasSuffix(lines[0], "in 2 features, the largest first: c, a") {
		t.Errorf("%q", lines)
	}
	a := adviser{out: []Advice{got, {Kind: AdviceRecords}, {Kind: AdviceExpire, SavedBytes: 1}}}
	if all := a.order(); all[0].Kind != AdviceExpire || all[2].Kind != AdviceDuplicate {
		t.Errorf("not last, although there is nothing to do: %+v", all)
	}
}

// TestAdviceOfBranchOverlay: an overlay of a branch is not said to cover nothing once the table was compacted: the
// branch reads it still.
func TestAdviceOfBranchOverlay(t *testing.T) {
	ctx := t.Context()
	s := openStore(t)
	table := jsonRows(t, s, smallRows(), ingest.Options{PartitionBy: "day", Options: writer.Options{StripeRows: 4}})
	change := commit.Change{Operation: "branch", Base: 1,
		Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 1, Created: testNow}}}}
	if _, err := table.Commit(ctx, change); err != nil {
		t.Fatal(err)
	}
	if _, err := overlay.Add(ctx, s, "t@b", "o", overlay.Options{Exprs: []string{"high = score > 5"}}); err != nil {
		t.Fatal(err)
	}
	build := func() *Table {
		r, err := Build(ctx, s, nil, Options{Now: clock, Usage: unread})
		if err != nil {
			t.Fatal(err)
		}
		return &r.Tables[0]
	}
	before := build().Health.Overlays
	opts := compaction.Options{Repack: true}
	plan, err := compaction.NewPlan(ctx, table, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compaction.Run(ctx, table, plan, opts); err != nil {
		t.Fatal(err)
	}
	r := build()
	if got := r.Health.Overlays; !reflect.DeepEqual(got, before) || got[0].Coverage != 1 {
		t.Errorf("%+v, and before the compaction %+v", got, before)
	}
	for _, a := range r.Advice {
		if a.Kind == AdviceOverlay {
			t.Errorf("%s: %s", a.Command, a.Text)
		}
	}
}
