package report

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
)

// advised returns the advice on a table of 1 GiB after set has made something of it that is worth some, and checks that without there is none.
func advised(t *testing.T, kind string, rule func(*adviser), set func(*adviser)) Advice {
	t.Helper()
	a := adviser{t: &Table{}, c: newCollector(nil), command: "dsi %s s t", now: testNow}
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
	says(t, advised(t, AdvicePurge, (*adviser).purge, func(a *adviser) { a.t.Savings.Deleted = Waiting{Count: 7, Segments: 2, Bytes: 5 << 20} }),
		5<<20, "dsi compact s t", "7 rows are deleted", "2 segments", "5.00 MiB")
	says(t, advised(t, AdvicePurge, (*adviser).purge, func(a *adviser) { a.t.Savings.Dropped = Waiting{Count: 1, Segments: 2, Bytes: 1 << 20} }),
		1<<20, "dsi compact s t", "1 feature is dropped", "1.00 MiB")
	history := func(a *adviser) { a.history() }
	says(t, advised(t, AdviceExpire, history, func(a *adviser) { a.t.Health.Snapshots = SnapshotHealth{Newest: 9, AloneBytes: 3 << 20} }),
		3<<20, "dsi snapshots expire s t --keep-last 1", "before 9", "3.00 MiB")
	says(t, advised(t, AdviceBranch, history, func(a *adviser) {
		a.t.Health.Branches = []BranchHealth{{Branch: "b", Owner: "ann", AloneBytes: 2 << 20}, {Branch: "c", AloneBytes: 100}}
	}), 2<<20, "dsi branch drop s t b", "branch b, of ann", "2.00 MiB")
	says(t, advised(t, AdviceBranch, history, func(a *adviser) {
		a.t.Health.Branches = []BranchHealth{{Branch: "a; reboot", AloneBytes: 2 << 20}}
	}), 2<<20, "dsi branch drop s t 'a; reboot'")
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
	says(t, advised(t, AdviceMerge, func(a *adviser) { a.merge(a.plan()) }, func(a *adviser) { a.t.Summary.Segments = 6 }),
		1<<20, "dsi compact s t", "3 segments, 4.00 MiB, would become about 1", "they are small")
	// Half of the rows have a factor of 7 or more; two segments of 3 MiB each have 2.
	low := 2.0 / 7
	says(t, advised(t, AdviceCluster, (*adviser).recluster, func(a *adviser) {
		for _, f := range []uint64{8, 2, 8, 2, 7} {
			d := storage.SegmentDescriptor{Rows: 100, Bytes: 3 << 20}
			a.c.segments = append(a.c.segments, segmentFacts{d: d, elements: 1000 * f, storedElements: 1000})
		}
	}), uint64(2*(3<<20)*(1-low)), "dsi compact s t --full", "2 segments have", "6.00 MiB", "2.00", "7.00 or more")
}

// TestDropCommand: what a dump calls its columns is a word to the shell, and none that a terminal cannot show becomes another's.
func TestDropCommand(t *testing.T) {
	a := adviser{command: "dsi %s s t"}
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b"}, "dsi features drop s t a b"},
		{[]string{"a", "b", "c", "d"}, "dsi features drop s t a b c ..."},
		{[]string{"$(reboot)", "x;y", "it's", "*"}, `dsi features drop s t '$(reboot)' 'x;y' 'it'\''s' ...`},
		{[]string{"-rf", "a b"}, "dsi features drop s t -- -rf 'a b'"},
		{[]string{"line\nbreak", "a\x1b[31m", "\u202eb", "c"}, "dsi features drop s t c ..."},
		{[]string{"line\nbreak"}, ""},
	} {
		if got := a.drop(c.names, len(c.names)); got != c.want {
			t.Errorf("%q: %s, want %s", c.names, got, c.want)
		}
	}
}

// plan is one of compaction's, for a table of some segments.
func (a *adviser) plan() *compaction.Plan {
	if a.t.Summary.Segments == 0 {
		return &compaction.Plan{}
	}
	return &compaction.Plan{Jobs: []compaction.Job{{Segments: []string{"a", "b", "c"}, Reasons: []string{"they are small"}, Bytes: 4 << 20, BytesOut: 3 << 20, Into: 1}}}
}

// TestDuplicatesRule: a feature in a group is held to its part of the inverse, one alone to the writer's estimate, which has taken it off.
func TestDuplicatesRule(t *testing.T) {
	got := advised(t, AdviceDuplicate, (*adviser).duplicates, func(a *adviser) {
		a.c.groups[9] = &group{name: "a", members: []storage.FeatureID{1, 2}, bytes: 400 << 10}
		for i, f := range []feature{
			{rows: 100, found: 150 << 10, group: 9},   // loses 50 KiB of its part
			{rows: 100, found: 300 << 10, group: 9},   // gains
			{rows: 100, found: 0, inverse: 100 << 10}, // loses its inverse, at most
			{rows: 100, found: 1, inverse: 1 << 30},   // gains
			{rows: 10, found: 0, inverse: 1 << 30},    // as many slots as rows
		} {
			f.Name, f.ID, f.slots = string(rune('a'+i)), storage.FeatureID(i+1), 10
			a.c.order = append(a.c.order, &f)
			a.t.Features = append(a.t.Features, Feature{Name: f.Name})
		}
	})
	if got.SavedBytes != 150<<10 || got.FeatureCount != 2 || strings.Join(got.Features, "") != "ca" {
		t.Errorf("%+v", got)
	}
}
