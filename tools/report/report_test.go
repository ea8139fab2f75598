package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/overlay"
	"github.com/dsistore/dsistore/tools/prices"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/usage"
	"github.com/dsistore/dsistore/writer"
)

var update = flag.Bool("update", false, "write the golden files")

// smallRows are 12 rows of two days.
func smallRows() string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, `{"user": %d, "items": [%d, %d, 7], "name": "n%d", `+
			`"score": %d.5, "click": %d, "day": "2026-11-%02d"}`+"\n",
			i/4, i/2, i/2+1, i%3, i, i%2, 20+i/6)
	}
	return b.String()
}

func day(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }

var testPrices = &prices.Table{Name: "ours", Currency: "EUR", Reads: 1, Lists: 10, Down: 1024, Stored: 1 << 20}

// smallReads are of two jobs on two days, by names of features.
func smallReads(t *testing.T, snap *storage.Snapshot) *usage.Summary {
	t.Helper()
	f, err := snap.Lookup(t.Context(), "items", "name", "score")
	if err != nil {
		t.Fatal(err)
	}
	items, name := f[0].ID, f[1].ID
	train := usage.Counters{Readers: 2, Rows: 24, Batches: 4, Requests: 6, BytesNeeded: 900, BytesUnneeded: 100,
		Stall: time.Second, Decode: 2 * time.Second,
		Assemble: 3 * time.Second, Read: 4 * time.Second, SentReads: 10, SentLists: 2,
		BytesDown: 1 << 20, StoredRows: 24, StoredSlots: 12, EmittedRows: 24,
		EmittedSlots: 24}
	look := usage.Counters{Readers: 1, Rows: 6, Batches: 1, Requests: 1, BytesNeeded: 100, SentReads: 3,
		BytesCached: 50, StoredRows: 6,
		StoredSlots: 6, EmittedRows: 6, EmittedSlots: 6}
	total := train
	total.Readers, total.Rows, total.Batches, total.Requests, total.BytesNeeded = 3, 30, 5, 7, 1000
	total.SentReads, total.BytesCached = 13, 50
	total.StoredRows, total.StoredSlots, total.EmittedRows, total.EmittedSlots = 30, 18, 30, 30
	s := &usage.Summary{Table: "t", Total: total}
	s.Features = []usage.FeatureTotal{
		{FeatureUse: usage.FeatureUse{ID: items, Name: "items", Readers: 3, Stripes: 3, Rows: 30, BytesNeeded: 800,
			BytesUnneeded: 90, Last: day(21).Add(time.Hour)}, First: day(10), Jobs: 2, Days: 2},
		{FeatureUse: usage.FeatureUse{ID: name, Name: "name", Readers: 2, Stripes: 2, Rows: 24, BytesNeeded: 200,
			BytesUnneeded: 10, Last: day(10).Add(time.Hour)}, First: day(10), Jobs: 1, Days: 1},
	}
	s.Jobs = []usage.JobTotal{
		{Job: "look", User: "eve", Programs: []string{"dsi"}, Snapshot: 1, Start: day(21), End: day(21).Add(time.Hour),
			Counters: look,
			Features: []usage.JobFeature{{ID: items, Readers: 1}}, Days: []usage.JobDay{{Day: day(21)}}},
		{Job: "train", User: "ann", Programs: []string{"python"}, Snapshot: 1, Start: day(10),
			End: day(10).Add(time.Hour), Counters: train,
			Features: []usage.JobFeature{{ID: items, Readers: 2}, {ID: name, Readers: 2}},
			Days:     []usage.JobDay{{Day: day(10)}}},
	}
	s.Days = []usage.DayTotal{{Day: day(10), Counters: train, Features: 2, Jobs: 1},
		{Day: day(21), Counters: look, Features: 1, Jobs: 1}}
	s.Records, s.Rollups, s.DamagedCount = 1, 1, 1
	s.Damaged = []usage.Damage{{Object: "tables/t/usage/x", Err: errors.New("checksum mismatch")}}
	return s
}

func reads(s *usage.Summary) func(context.Context, *storage.Table, time.Time, time.Time) (*usage.Summary, error) {
	return func(context.Context, *storage.Table, time.Time, time.Time) (*usage.Summary, error) { return s, nil }
}

// small is a store with the table t of smallRows, an overlay, a list, a deleted row, a branch and a lease, and what is
// read of it.
func small(t *testing.T) (*storage.Store, *storage.Table, *usage.Summary) {
	t.Helper()
	ctx := t.Context()
	s := openStore(t)
	table := jsonRows(t, s, smallRows(), ingest.Options{PartitionBy: "day", Options: writer.Options{StripeRows: 4}})
	first := latest(t, table)
	change := commit.Change{Operation: "branch", Base: 1,
		Ops: []commit.Operation{commit.SetBranches{{Name: "b", Snapshot: 1, Owner: "ann", Created: testNow}}}}
	if _, err := table.Commit(ctx, change); err != nil {
		t.Fatal(err)
	}
	if _, err := overlay.Add(ctx, s, "t", "o", overlay.Options{Exprs: []string{"high = score > 5"},
		Role: catalog.RoleLabel}); err != nil {
		t.Fatal(err)
	}
	if _, err := selection.Create(ctx, table, "l", &selection.Query{Where: "click = 1"}, false,
		selection.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := selection.Delete(ctx, table, &selection.Query{Where: "score = 3.5"}, selection.Options{}); err != nil {
		t.Fatal(err)
	}
	lease, err := latest(t, table).Lease(ctx, "job of ann", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
	return s, table, smallReads(t, first)
}

// scrub takes out of a report's JSON what differs from run to run: the ids of segments.
func scrub(b []byte) []byte {
	return regexp.MustCompile(`"segment": "[0-9a-f]{32}"`).ReplaceAll(b, []byte(`"segment": "(random)"`))
}

// TestGolden: the JSON form of a report, as docs/reference/dsistat-report.md has it, keeps its keys and what they mean.
func TestGolden(t *testing.T) {
	s, _, summary := small(t)
	r, err := Build(t.Context(), s, nil, Options{Now: clock, Usage: reads(summary), Since: day(1), Encodings: true,
		Prices: testPrices})
	if err != nil {
		t.Fatal(err)
	}
	addsUp(t, s, latest(t, tableOf(t, s)), &r.Tables[0])
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(scrub(got), '\n')
	path := filepath.Join("testdata", "report.json")
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		for i, line := range strings.Split(string(got), "\n") {
			if w := strings.Split(string(want), "\n"); i >= len(w) || w[i] != line {
				t.Fatalf("line %d is %s, not as in %s; go test -update writes it", i+1, line, path)
			}
		}
		t.Fatalf("shorter than %s", path)
	}
}

func tableOf(t *testing.T, s *storage.Store) *storage.Table {
	t.Helper()
	table, err := s.Table(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestNoNulls: no list of a report is null in JSON, even of a table with nothing in it, and no number is one that JSON
// lacks.
func TestNoNulls(t *testing.T) {
	s := openStore(t)
	table, err := s.NewTable(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Commit(t.Context(), commit.Change{Operation: "ingest"}); err != nil {
		t.Fatal(err)
	}
	r, err := Build(t.Context(), s, nil, Options{Now: clock, Usage: unread})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), ":null") {
		t.Errorf("a null in %s", b)
	}
	if _, err := SummaryView(&r.Tables[0], ViewOptions{}); err != nil {
		t.Error(err)
	}
	for name, view := range Views {
		if _, err := view(&r.Tables[0], ViewOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func advice(r *Table, kind string) *Advice {
	for i := range r.Advice {
		if r.Advice[i].Kind == kind {
			return &r.Advice[i]
		}
	}
	return nil
}

// TestAdvice: each piece is there where it should be, with its figures, and not elsewhere.
func TestAdvice(t *testing.T) {
	s, _, summary := small(t)
	r := build(t, s, Options{Usage: reads(summary), UnreadDays: 5})
	unread := advice(r, AdviceUnread)
	if unread != nil && !strings.Contains(unread.Text, "as far as 3 readers of 2 jobs on 2 days since 2026-11-10 say") {
		t.Errorf("%q does not say what it rests on", unread.Text)
	}
	if unread != nil && (unread.Command != "" ||
		!strings.HasSuffix(unread.Text, ", but 1 usage record could not be read")) {
		t.Errorf("what was not read is not certain: %+v", unread)
	}
	want, bytes := []string{}, uint64(0) // user and score: click is no label here
	for _, f := range r.Features {
		if f.Role == "" && f.Status == "" && f.Name != "items" {
			want, bytes = append(want, f.Name), bytes+f.StoredBytes
		}
	}
	if unread == nil || unread.SavedBytes != bytes || unread.FeatureCount != uint64(len(want)) ||
		!strings.Contains(unread.Text, "5 days") {
		t.Fatalf("%+v, want %v of %d bytes", unread, want, bytes)
	}
	got := slices.Sorted(slices.Values(unread.Features))
	if !slices.Equal(got, want) {
		t.Errorf("unread %v, want %v", got, want)
	}
	if a := advice(r, AdviceRecords); a == nil ||
		!strings.Contains(a.Text, "1 usage record is damaged, or of a newer") {
		t.Errorf("%+v", a)
	}
	// 30 days are not known: that is said, and how to ask for those that are
	r = build(t, s, Options{Usage: reads(summary)})
	if a := advice(r, AdviceUnread); a != nil {
		t.Errorf("records are of 12 days, and %+v", a)
	}
	at := slices.IndexFunc(r.Advice, func(a Advice) bool {
		return strings.Contains(a.Text, "records began on 2026-11-10")
	})
	if at < 0 || r.Advice[at].Kind != AdviceRecords || r.Advice[at].Command != "dsistat advise memory t --unread 12" {
		t.Errorf("%+v", r.Advice)
	}
	// and which were not read so far
	views, err := adviseView(r, ViewOptions{})
	if want := "; not read so far: 3 features, 477 B, the largest first: score, click, user\n"; err != nil ||
		!slices.ContainsFunc(views[0].Lines, func(l string) bool { return strings.Contains(l, want) }) {
		t.Errorf("%q in no line of %q: %v", want, views[0].Lines, err)
	}
	r = build(t, s, Options{Usage: reads(summary), Since: day(9)})
	at = slices.IndexFunc(r.Advice, func(a Advice) bool {
		return strings.Contains(a.Text, "records were looked at since 2026-11-10")
	})
	if at < 0 || r.Advice[at].Command != "dsistat advise memory t --unread 12 --since 2026-11-09" {
		t.Errorf("%+v", r.Advice)
	}
	r = build(t, s, Options{})
	if a := advice(r, AdviceUnread); a != nil {
		t.Errorf("nothing is recorded, and %+v", a)
	}
	if a := advice(r, AdviceRecords); a == nil || !strings.Contains(a.Text, "no reads are recorded") {
		t.Errorf("%+v", a)
	}
}

// TestUnreadOfNew: a feature that came after the first record could not be read before, and snapshots say when it came.
func TestUnreadOfNew(t *testing.T) {
	now := day(1)
	s, err := storage.Create(t.Context(), object.NewMemory(), storage.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, x := range []struct {
		day int
		row string
	}{{1, `{"a": 1}`}, {5, `{"a": 2}`}, {11, `{"a": 3}`}, {12, `{"a": 4, "b": 2}`}, {13, `{"a": 5}`},
		{20, `{"a": 6, "b": 2, "c": 3}`}, {21, `{"a": 7}`}} {
		now = day(x.day)
		jsonRows(t, s, x.row+"\n", ingest.Options{})
	}
	records := &usage.Summary{Table: "t", Days: []usage.DayTotal{{Day: day(10)}}}
	for _, x := range []struct {
		records *usage.Summary
		want    map[string]uint64
	}{{records, map[string]uint64{"a": 12, "b": 10, "c": 2}},
		{&usage.Summary{Table: "t"}, map[string]uint64{"a": 0, "b": 0, "c": 0}}} {
		r := build(t, s, Options{Usage: reads(x.records)})
		for _, f := range r.Features {
			if f.UnreadDays != x.want[f.Name] || f.LastRead != "" {
				t.Errorf("%s was not read for %d days, want %d", f.Name, f.UnreadDays, x.want[f.Name])
			}
		}
	}
}

// TestUnreadOfKept: how old features are is known since the oldest snapshot that is kept.
func TestUnreadOfKept(t *testing.T) {
	now := day(1)
	s, err := storage.Create(t.Context(), object.NewMemory(), storage.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var table *storage.Table
	for _, d := range []int{1, 5, 20} {
		now = day(d)
		text := ""
		for i := range 1000 { // too many bytes for advice to pass over
			text += fmt.Sprintf("%x", i*i*2654435761+d)
		}
		table = jsonRows(t, s, fmt.Sprintf(`{"a": "%s"}`+"\n", text), ingest.Options{})
	}
	records := reads(&usage.Summary{Table: "t", Days: []usage.DayTotal{{Day: day(2)}}})
	if r := build(t, s, Options{Usage: records, UnreadDays: 15}); r.Features[0].UnreadDays != 20 ||
		advice(r, AdviceUnread) == nil {
		t.Errorf("%+v, advice %+v", r.Features[0], r.Advice)
	}
	if _, err := table.Expire(t.Context(), gc.ExpireOptions{KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	r := build(t, s, Options{Usage: records, UnreadDays: 15})
	if r.Features[0].UnreadDays != 2 || advice(r, AdviceUnread) != nil {
		t.Errorf("%+v, advice %+v", r.Features[0], r.Advice)
	}
	if a := advice(r, AdviceRecords); a == nil || !strings.Contains(a.Text, "since 2026-11-20, the day of the oldest "+
		"snapshot that is kept") || !strings.HasSuffix(a.Command, " --unread 2") || len(a.Features) != 1 {
		t.Errorf("%+v", r.Advice)
	}
}

// TestCouldSave: bytes that two pieces of advice would save count once.
func TestCouldSave(t *testing.T) {
	x := Table{Advice: []Advice{{Kind: AdviceUnread, SavedBytes: 90}, {Kind: AdviceCluster, SavedBytes: 70},
		{Kind: AdviceExpire, SavedBytes: 20}}}
	if n := x.couldSave(); n != 110 {
		t.Error(n)
	}
}

// TestEndpointOfCommands: a service that was given for the report is the commands' too.
func TestEndpointOfCommands(t *testing.T) {
	s, _, summary := small(t)
	r := build(t, s, Options{Usage: reads(summary), Endpoint: "http://here:9000/a b"})
	n := 0
	for _, a := range r.Advice {
		if a.Command != "" {
			n++
			if !strings.Contains(a.Command, " memory t --endpoint-url 'http://here:9000/a b'") {
				t.Errorf("%q", a.Command)
			}
		}
	}
	if n == 0 {
		t.Error("no command")
	}
}

// TestWrongClock: what is recorded of a day to come counts, and hides none of those that were.
func TestWrongClock(t *testing.T) {
	s, _, summary := small(t)
	summary.Days = append(summary.Days, usage.DayTotal{Day: day(21).AddDate(90, 0, 0),
		Counters: usage.Counters{Readers: 1}, Jobs: 1})
	r := build(t, s, Options{Usage: reads(summary)})
	if n := len(r.Days); n != 13 || r.Days[0].Day != "2026-11-10" || r.Days[0].Readers != 2 ||
		r.Days[n-1].Day != "2026-11-22" {
		t.Errorf("%d days, the first %+v", n, r.Days[0])
	}
	// Nor does what a clock that was not set dated make all features look unread for long.
	const said = "2 readers read on 2 days from 1970-01-01 to 2116-11-21, by the clocks of their hosts, which cannot " +
		"be: the sums have them, the days not"
	summary.Days = slices.Insert(summary.Days, 0, usage.DayTotal{Day: time.Unix(0, 0).UTC(),
		Counters: usage.Counters{Readers: 1}, Jobs: 1})
	summary.Features[0].Last = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	r = build(t, s, Options{Usage: reads(summary)})
	if n := len(r.Days); n != 13 || r.Days[0].Day != "2026-11-10" || r.Summary.LastRead != "2026-11-22T12:00:00Z" {
		t.Errorf("%d days from %s, the last read %s", n, r.Days[0].Day, r.Summary.LastRead)
	}
	for _, f := range r.Features {
		if f.Name == "user" && f.UnreadDays != 12 || f.LastRead > "2026-11-22T12:00:00Z" {
			t.Errorf("%s: %+v", f.Name, f.Use)
		}
	}
	if !slices.ContainsFunc(r.Advice, func(a Advice) bool { return a.Kind == AdviceRecords && a.Text == said }) {
		t.Errorf("advice %+v", r.Advice)
	}
	if slices.ContainsFunc(r.Advice, func(a Advice) bool { return a.Kind == AdviceUnread }) {
		t.Errorf("advice %+v", r.Advice)
	}
	// Nor is a feature unread whose readers have such a clock.
	summary.Features[0].Last = time.Unix(0, 0).UTC()
	r = build(t, s, Options{Usage: reads(summary), UnreadDays: 5})
	if a := advice(r, AdviceUnread); a == nil || slices.Contains(a.Features, "items") {
		t.Errorf("%+v", a)
	}
}

// TestMergeAdvice: small segments of a partition are worth merging.
func TestMergeAdvice(t *testing.T) {
	s := openStore(t)
	for i := range 5 {
		jsonRows(t, s, fmt.Sprintf(`{"x": %d, "day": "a"}`+"\n", i), ingest.Options{PartitionBy: "day"})
	}
	r := build(t, s, Options{})
	a := advice(r, AdviceMerge)
	if a == nil || !strings.Contains(a.Text, "5 segments") || a.Command != "dsi compact memory t" {
		t.Errorf("%+v", a)
	}
	if h := r.Health.Segments; h.Small != 5 || h.Mergeable != 5 || h.Count != 5 {
		t.Errorf("%+v", h)
	}
	if h := r.Health.Packs; h.Packs != 5 || h.Small != 5 {
		t.Errorf("%+v", h)
	}
}

// TestRepack: what packs in the order of popularity would save follows from where files lie.
func TestRepack(t *testing.T) {
	c := newCollector([]catalog.Feature{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c"}, {ID: 4, Name: "d"}})
	c.gap = 1000
	// a job of a, c and d reads b too, and the inverse of the group that c and d are in, before them
	c.layout = []place{
		{1, 0, "p", 4, 100}, {2, 0, "p", 104, 1000}, {9, 0, "p", 1104, 10}, {3, 9, "p", 1114, 100},
		{4, 9, "p", 1214, 100},
	}
	job := func(needed uint64, ids ...catalog.FeatureID) usage.JobTotal {
		j := usage.JobTotal{Counters: usage.Counters{BytesNeeded: needed}}
		for _, id := range ids {
			j.Features = append(j.Features, usage.JobFeature{ID: id, Stripes: 1})
		}
		return j
	}
	s := &usage.Summary{Jobs: []usage.JobTotal{job(310, 1, 3, 4)}}
	if got := c.repack(s); got != 1 {
		t.Errorf("saves %v of the unneeded, want all", got)
	}
	// Another reads more, b and d: d comes first then, which both read, with its group, and b before a.
	s.Jobs = append(s.Jobs, job(1110, 2, 4))
	var order []catalog.FeatureID
	for _, p := range c.packed(s) {
		order = append(order, p.feature)
	}
	for gap, want := range map[uint64]uint64{99: 0, 100: 100} {
		needed, over := unneeded(c.layout, map[catalog.FeatureID]bool{2: true, 4: true}, gap)
		if needed != 1110 || over != want {
			t.Errorf("%d needed, %d unneeded, want 1110 and %d", needed, over, want)
		}
	}
	if want := []catalog.FeatureID{9, 4, 3, 2, 1}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	c.layout[0].object = "q" // nothing is unneeded
	s.Jobs = s.Jobs[:1]
	if got := c.repack(s); got != 0 {
		t.Errorf("saves %v of nothing", got)
	}
}

// TestFeatures: --features selects what is listed, and an unknown name is answered with the nearest.
func TestFeatures(t *testing.T) {
	s, _, summary := small(t)
	all := build(t, s, Options{Usage: reads(summary)})
	some := build(t, s, Options{Usage: reads(summary), Features: []string{"*e*"}})
	var names []string
	for _, f := range some.Features {
		names = append(names, f.Name)
	}
	if want := []string{"items", "name", "score", "user"}; !slices.Equal(names, want) {
		t.Errorf("listed %v, want %v", names, want)
	}
	if !reflect.DeepEqual(all.Summary, some.Summary) || !reflect.DeepEqual(all.Savings, some.Savings) {
		t.Error("the table's figures depend on what is listed")
	}
	_, err := Build(t.Context(), s, nil, Options{Now: clock, Usage: unread, Features: []string{"scor"}})
	if !errors.Is(err, storage.ErrNotFound) || !strings.Contains(err.Error(), `did you mean "score"`) {
		t.Errorf("%v", err)
	}
	if _, err := Build(t.Context(), s, []string{"tt"}, Options{Usage: unread}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestDistinct: bounds hold what the rows have.
func TestDistinct(t *testing.T) {
	s := openStore(t)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, `{"flag": %v, "one": 5, "id": %d, "list": [%d], "text": "x"}`+"\n", i%2 == 0, i%100,
			(i*7919)%50*1_000_003)
	}
	jsonRows(t, s, b.String(), ingest.Options{Options: writer.Options{StripeRows: 500}})
	r := build(t, s, Options{})
	for _, f := range r.Features {
		want := map[string]uint64{"flag": 2, "one": 1, "id": 100, "list": 50}[f.Name]
		d := f.Distinct
		t.Logf("%s: %s", f.Name, distinctText(d))
		switch {
		case f.Name == "text":
			if d != nil {
				t.Errorf("text: %+v", d)
			}
		case d == nil:
			if f.Name != "list" {
				t.Errorf("%s: nothing is known", f.Name)
			}
		case d.AtLeast > want || d.AtMost != nil && *d.AtMost < want:
			t.Errorf("%s: %d to %d, want %d between", f.Name, d.AtLeast, *d.AtMost, want)
		}
	}
}

// TestDistinctOfFewValues: a wide range of integers bounds the distinct values no closer than the number of the values.
func TestDistinctOfFewValues(t *testing.T) {
	s := openStore(t)
	var b strings.Builder
	for i := range 600 { // times are in order: only the second file's are far from the first's
		fmt.Fprintf(&b, `{"ts": %d, "list": [%d, %d]}`+"\n", i/2+i/300*166_393_000_000, i*1_000_003, i*7_919)
		if i%300 == 299 {
			jsonRows(t, s, b.String(), ingest.Options{})
			b.Reset()
		}
	}
	for _, f := range build(t, s, Options{}).Features {
		want := map[string]uint64{"ts": 600, "list": 1200}[f.Name]
		if f.Distinct == nil || f.Distinct.AtMost == nil || *f.Distinct.AtMost != want {
			t.Errorf("%s: %s, want at most %d", f.Name, distinctText(f.Distinct), want)
		}
	}
}

// TestSort: rows are sorted by any column, both ways, and an unknown one is answered with the nearest.
func TestSort(t *testing.T) {
	table := &Table{Features: []Feature{{Name: "a", StoredBytes: 5, Saved: map[string]int64{}},
		{Name: "c", StoredBytes: 7}, {Name: "b", StoredBytes: 9}}}
	order := func(sortBy string, limit int) (string, *Listing) {
		t.Helper()
		key, reverse := strings.CutPrefix(sortBy, "-")
		sections, err := featuresView(table, ViewOptions{Sort: key, Reverse: reverse, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, r := range sections[0].Listing.Values {
			names += r[0]
		}
		return names, sections[0].Listing
	}
	for sortBy, want := range map[string]string{"": "acb", "feature": "abc", "-feature": "cba", "stored_bytes": "bca",
		"-stored_bytes": "acb"} {
		if got, _ := order(sortBy, 0); got != want {
			t.Errorf("%q: %s, want %s", sortBy, got, want)
		}
	}
	if names, l := order("stored_bytes", 2); names != "bca" || len(l.Rows) != 2 || l.More != 1 || l.Rows[0][0] != "b" {
		t.Errorf("%s %+v", names, l)
	}
	if _, err := featuresView(table, ViewOptions{Sort: "stored_byte"}); !errors.Is(err, ErrSort) ||
		!strings.Contains(err.Error(), `did you mean "stored_bytes"`) {
		t.Errorf("%v", err)
	}
}

// TestDamage: an index that is damaged ends the report with an error that says where.
func TestDamage(t *testing.T) {
	s, table, _ := small(t)
	segments, err := latest(t, table).Segments(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	memory := s.Blobs().(*object.Memory)
	name := segments[0].Index
	b := make([]byte, segments[0].IndexSize)
	if err := memory.ReadAt(t.Context(), name, b, 0); err != nil {
		t.Fatal(err)
	}
	b[10] ^= 1
	if err := errors.Join(memory.Delete(t.Context(), name), memory.PutIfAbsent(t.Context(), name, b)); err != nil {
		t.Fatal(err)
	}
	_, err = Build(t.Context(), s, nil, Options{Now: clock, Usage: unread})
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), name) {
		t.Errorf("%v, want damage of %s", err, name)
	}
	// The other tables are reported on.
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(`{"a": 1}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Run(t.Context(), s, "u", []string{path},
		ingest.Options{Options: writer.Options{Workers: 1}}); err != nil {
		t.Fatal(err)
	}
	r, err := Build(t.Context(), s, nil, Options{Now: clock, Usage: unread})
	if !errors.Is(err, format.ErrCorrupt) || r == nil || len(r.Tables) != 1 || r.Tables[0].Table != "u" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Build(t.Context(), s, []string{"u", "t"}, Options{Now: clock, Usage: unread}); r != nil ||
		err == nil || strings.Contains(err.Error(), "table t: table t") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRecorded: what readers did is in the report as they counted it, from their records.
func TestRecorded(t *testing.T) {
	ctx := t.Context()
	s := openStore(t)
	table := generated(t, s, 800)
	snap := latest(t, table)
	writer, err := usage.NewWriter(table, usage.Options{Now: clock, User: "ann", Host: "h", Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	var want reader.Stats
	features := map[string]bool{}
	for i, names := range [][]string{{"user_dense_*", "user_history_*"}, {"user_history_00000"},
		{"user_history_00000"}} {
		plan, err := reader.NewPlan(ctx, snap, reader.PlanOptions{Features: names})
		if err != nil {
			t.Fatal(err)
		}
		r, err := reader.Open(ctx, snap, plan,
			reader.Options{Usage: reader.UsageOptions{Writer: writer, Job: []string{"train", "look", "look"}[i]}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := r.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		got := r.Stats()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		want.Rows += got.Rows
		want.Batches += got.Batches
		want.BytesNeeded += got.BytesNeeded
		want.BytesUnneeded += got.BytesUnneeded
		for _, f := range plan.Features {
			features[f.Name] = true
		}
	}
	if err := writer.Close(ctx); err != nil {
		t.Fatal(err)
	}
	report, err := Build(ctx, s, nil, Options{Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	r := &report.Tables[0]
	g := r.Summary.Reads
	if g.Rows != want.Rows || g.Batches != want.Batches || g.BytesNeeded != want.BytesNeeded ||
		g.BytesUnneeded != want.BytesUnneeded || g.Readers != 3 || g.Jobs != 2 {
		t.Errorf("%+v, readers counted %+v", g, want)
	}
	var needed, over uint64
	for _, f := range r.Features {
		needed, over = needed+f.BytesNeeded, over+f.BytesUnneeded
		if features[f.Name] != (f.Readers > 0) || f.Name == "user_history_00000" && (f.Readers != 3 || f.Jobs != 2) {
			t.Errorf("%s: %+v", f.Name, f.Use)
		}
	}
	if needed != want.BytesNeeded || over != want.BytesUnneeded {
		t.Errorf("features come to %d and %d bytes, readers counted %+v", needed, over, want)
	}
	if r.Summary.FeaturesRead != uint64(len(features)) || len(r.Curve.Points) == 0 ||
		r.Health.Records.First != "2026-11-22" {
		t.Errorf("%d features read, want %d; %+v", r.Summary.FeaturesRead, len(features), r.Health.Records)
	}
}
