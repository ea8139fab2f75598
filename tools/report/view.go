package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/tools/terminal"
)

// A Section is a part of what is printed of a table: facts, sentences or a listing, under a title.
type Section struct {
	Title   string
	Facts   [][2]string
	Lines   []string
	Listing *Listing
}

// ViewOptions say how a view is laid out. The zero value works.
type ViewOptions struct {
	// a column of its main listing, the largest number or the first word first; empty: the view's own order
	Sort    string
	Reverse bool   // the other way round
	Limit   int    // rows of its main listing, for people; 0: all
	Since   string // Report.Since, for sentences
}

// A View lays out a part of a table's report. The first of its listings is its main one, which CSV has.
type View func(t *Table, o ViewOptions) ([]Section, error)

// Views are those that have a command, by its name. A table at a glance is SummaryView.
var Views = map[string]View{"features": featuresView, "jobs": jobsView, "savings": savingsView, "health": healthView,
	"advise": adviseView}

// parts are the keys of a Table that the views have.
var parts = map[string][]string{
	"features": {"features", "groups"}, "jobs": {"jobs", "days"}, "savings": {"savings"}, "health": {"health"},
	"advise": {"advice"},
}

// Part returns what the JSON form of a view is: the report with only the view's keys of its tables. An empty name, or
// one of no view, means all.
func (r *Report) Part(view string) any {
	keys := parts[view]
	if keys == nil {
		return r
	}
	tables := []map[string]any{}
	for i := range r.Tables {
		t := &r.Tables[i]
		all := map[string]any{"features": t.Features, "groups": t.Groups, "jobs": t.Jobs, "days": t.Days,
			"savings": t.Savings, "health": t.Health, "advice": t.Advice}
		part := map[string]any{"table": t.Table}
		for _, k := range keys {
			part[k] = all[k]
		}
		tables = append(tables, part)
	}
	return map[string]any{"schema": r.Schema, "made": r.Made, "store": r.Store, "since": r.Since, "tables": tables}
}

// Tables lays out a line per table.
func Tables(r *Report, o ViewOptions) (*Listing, error) {
	return list(r.Tables, []column[Table]{
		textColumn("table", "table", func(t *Table) string { return t.Table }),
		countColumn("rows", "rows", func(t *Table) uint64 { return t.Summary.Rows }),
		countColumn("features", "features", func(t *Table) uint64 { return t.Summary.Features }),
		bytesColumn("raw_bytes", "raw", func(t *Table) uint64 { return t.Summary.RawBytes }),
		bytesColumn("stored_bytes", "stored", func(t *Table) uint64 { return t.Summary.StoredBytes }),
		floatColumn("ratio", "ratio", "%.1f", func(t *Table) float64 { return t.Summary.Ratio }),
		countColumn("jobs", "jobs", func(t *Table) uint64 { return t.Summary.Reads.Jobs }),
		bytesColumn("bytes_read", "read",
			func(t *Table) uint64 { return t.Summary.Reads.BytesNeeded + t.Summary.Reads.BytesUnneeded }),
		{"amplification", "amplification", func(t *Table) any { return t.Summary.Reads.Amplification },
			func(t *Table) string {
				if t.Summary.Reads.Amplification == 0 { // nothing was read
					return ""
				}
				return fmt.Sprintf("%.3f", t.Summary.Reads.Amplification)
			}},
		textColumn("last_read", "last read", func(t *Table) string { return t.Summary.LastRead }),
		bytesColumn("advice_bytes", "could save", func(t *Table) uint64 {
			return t.couldSave()
		}),
		costColumn(r.Cost, "stored_month", "stored/month", func(t *Table) float64 { return t.cost().StoredMonth }),
		readsColumn(r.Cost, func(t *Table) float64 { return t.cost().ReadsMonth },
			func(t *Table) uint64 { return t.cost().Days }),
	}, o)
}

// couldSave adds up what the advice would save, each byte once as far as is known: sessions that come together save of
// unread features too.
func (t *Table) couldSave() (n uint64) {
	unread, others := uint64(0), uint64(0)
	for _, a := range t.Advice {
		switch a.Kind {
		case AdviceUnread:
			unread += a.SavedBytes
		case AdviceCluster, AdviceMerge:
			others += a.SavedBytes
		default:
			n += a.SavedBytes
		}
	}
	return n + max(unread, others)
}

// shownAdvice and shownJobs are how much of them a summary has.
const (
	shownAdvice = 5
	shownJobs   = 5
)

// SummaryView is a table at a glance.
func SummaryView(t *Table, o ViewOptions) ([]Section, error) {
	s := &t.Summary
	facts := [][2]string{
		{"table", fmt.Sprintf("%s, snapshot %d, %s, %s", t.Table, s.Snapshot, s.Operation, s.SnapshotTime)},
		{"rows", fmt.Sprintf("%s in %s of %s, %s", terminal.Count(s.Rows), terminal.Plural(s.Segments, "segment"),
			terminal.Plural(s.Partitions, "partition"), terminal.Plural(s.Features, "feature"))},
		{"stored", fmt.Sprintf("%s for %s of values, %s; %.1f bytes/row", terminal.Bytes(s.StoredBytes),
			terminal.Bytes(s.RawBytes), ratioText(s.Ratio), s.BytesPerRow)},
		{"duplicates", duplicatesText(t)},
	}
	if s.LayerBytes > 0 {
		facts = append(facts, [2]string{"overlays", terminal.Bytes(s.LayerBytes) + " beside the segments"})
	}
	facts = append(facts, readFacts(t, o)...)
	facts = append(facts, t.Cost.Facts()...)
	sections := []Section{{Facts: facts}}
	saved, err := savingsView(t, ViewOptions{})
	if err != nil {
		return nil, err
	}
	sections = append(sections, saved[0])
	if len(t.Jobs) > 0 {
		jobs, err := jobsView(t, ViewOptions{Limit: shownJobs})
		if err != nil {
			return nil, err
		}
		jobs[0].Title = "jobs that read most"
		sections = append(sections, jobs[0])
	}
	if len(t.Advice) > 0 {
		sections = append(sections, Section{Title: "worth doing",
			Lines: adviceLines(t.Advice[:min(len(t.Advice), shownAdvice)])})
		if n := len(t.Advice) - shownAdvice; n > 0 {
			last := &sections[len(sections)-1]
			last.Lines = append(last.Lines, fmt.Sprintf("... and %s more: dsistat advise", terminal.Count(n)))
		}
	}
	return sections, nil
}

// duplicatesText says how much sharing saves on disk. The links of the chain say it of plain numbers, part of which
// encodings would save without sharing.
func duplicatesText(t *Table) string {
	text := fmt.Sprintf("each stored value is used %.2f times", t.Summary.DedupeFactor)
	if n := t.Savings.DuplicatesSaved; n > 0 {
		text += fmt.Sprintf("; without, about %s more would be stored, encoded (%s)", terminal.Bytes(n),
			shareText(share(n, t.Summary.StoredBytes)))
	}
	return text
}

func ratioText(ratio float64) string {
	switch {
	case ratio == 0:
		return "nothing yet"
	case ratio < 1:
		return fmt.Sprintf("%.1f times more, as directories of so little are more than it", 1/ratio)
	}
	return fmt.Sprintf("%.1f times less", ratio)
}

// noReads says that there are none, and since when.
func noReads(o ViewOptions) string {
	if o.Since != "" {
		return "none recorded since " + o.Since
	}
	return "none recorded"
}

// readFacts say who reads, and what that costs.
func readFacts(t *Table, o ViewOptions) [][2]string {
	s, h := &t.Summary, &t.Health.Records
	if s.Reads.Readers == 0 {
		return [][2]string{{"reads", noReads(o)}}
	}
	r := &s.Reads
	days := "on " + h.First
	if h.Last != h.First {
		days = "from " + h.First + " to " + h.Last
	}
	facts := [][2]string{
		{"reads", fmt.Sprintf("%s of %s %s; %s rows; the last %s", terminal.Plural(r.Readers, "reader"),
			terminal.Plural(r.Jobs, "job"), days, terminal.Count(r.Rows), s.LastRead)},
		{"features read", fmt.Sprintf("%s of %s, %s of the bytes%s", terminal.Count(s.FeaturesRead),
			terminal.Count(s.Features), shareText(s.BytesReadShare), curveText(&t.Curve))},
		{"bytes read", fmt.Sprintf("%s needed, %s unneeded: %.3f times what was needed, in %s requests",
			terminal.Bytes(r.BytesNeeded), terminal.Bytes(r.BytesUnneeded),
			r.Amplification, terminal.Count(r.Requests))},
		{"time", fmt.Sprintf("%.1f s waited for batches; over all threads %.1f s read, %.1f s decoded, %.1f s "+
			"assembled", r.StallSeconds, r.ReadSeconds,
			r.DecodeSeconds, r.AssembleSeconds)},
	}
	if r.SentReads+r.SentLists+r.BytesCached > 0 {
		facts = append(facts, [2]string{"sent", fmt.Sprintf("%s, %s; %s down, %s from the cache",
			terminal.Plural(r.SentReads, "read"), terminal.Plural(r.SentLists, "list"), terminal.Bytes(r.BytesDown),
			terminal.Bytes(r.BytesCached))})
	}
	if h.Damaged > 0 {
		facts = append(facts, [2]string{"records", terminal.Count(h.Damaged) + " damaged and left out"})
	}
	return facts
}

// curveText says where the curve reaches 80 % of the traffic.
func curveText(c *Curve) string {
	for _, p := range c.Marks {
		if p.Traffic >= 0.8 {
			return fmt.Sprintf("; %s of the bytes, %s, serve %s of the traffic", shareText(p.Bytes),
				terminal.Plural(p.Features, "feature"), shareText(p.Traffic))
		}
	}
	return ""
}

// featuresView is a line per feature.
func featuresView(t *Table, o ViewOptions) ([]Section, error) {
	columns := []column[Feature]{
		textColumn("feature", "feature", func(f *Feature) string { return f.Name }),
		textColumn("id", "", func(f *Feature) string { return f.ID }),
		textColumn("type", "type", func(f *Feature) string {
			if f.Kind == f.Type {
				return f.Type
			}
			return f.Kind + " " + f.Type
		}),
		textColumn("role", "role", func(f *Feature) string { return f.Role }),
		textColumn("status", "status", func(f *Feature) string { return f.Status }),
		floatColumn("coverage", "coverage", "%.3f", func(f *Feature) float64 { return f.Coverage }),
		floatColumn("mean_length", "length", "%.2f", func(f *Feature) float64 { return f.MeanLength }),
		{"distinct", "distinct", func(f *Feature) any {
			if f.Distinct != nil && f.Distinct.AtMost != nil {
				return *f.Distinct.AtMost
			}
			return uint64(0)
		}, func(f *Feature) string { return distinctText(f.Distinct) }},
		bytesColumn("raw_bytes", "raw", func(f *Feature) uint64 { return f.RawBytes }),
		bytesColumn("stored_bytes", "stored", func(f *Feature) uint64 { return f.StoredBytes }),
		bytesColumn("layer_bytes", "overlays", func(f *Feature) uint64 { return f.LayerBytes }),
		floatColumn("dedupe_factor", "dedupe", "%.2f", func(f *Feature) float64 { return f.DedupeFactor }),
		countColumn("partial", "partial", func(f *Feature) uint64 { return f.Partial }),
		textColumn("group", "group", func(f *Feature) string { return f.Group }),
		textColumn("encodings", "encodings", func(f *Feature) string { return encodingsText(f.Encodings) }),
		countColumn("readers", "readers", func(f *Feature) uint64 { return f.Readers }),
		countColumn("jobs", "jobs", func(f *Feature) uint64 { return f.Jobs }),
		bytesColumn("bytes_needed", "read", func(f *Feature) uint64 { return f.BytesNeeded }),
		bytesColumn("bytes_unneeded", "unneeded", func(f *Feature) uint64 { return f.BytesUnneeded }),
		textColumn("last_read", "last read", func(f *Feature) string { return f.LastRead }),
		{"unread_days", "", func(f *Feature) any { return f.UnreadDays }, nil},
		{"duplicates_saved_estimate", "", func(f *Feature) any { return f.DuplicatesSaved }, nil},
	}
	for _, l := range new(chain).links() {
		columns = append(columns, column[Feature]{"saved_" + l.cause, "",
			func(f *Feature) any { return f.Saved[l.cause] }, nil})
	}
	columns = append(columns,
		costColumn(t.Cost, "stored_month", "stored/month", func(f *Feature) float64 { return f.StoredMonth }),
		readsColumn(t.Cost, func(f *Feature) float64 { return f.ReadsMonth },
			func(*Feature) uint64 { return t.Cost.Days }))
	l, err := list(t.Features, columns, o)
	return []Section{{Listing: l}}, err
}

func distinctText(d *Distinct) string {
	switch {
	case d == nil:
		return ""
	case d.AtMost == nil:
		return ">=" + terminal.Count(d.AtLeast)
	case *d.AtMost == d.AtLeast:
		return terminal.Count(d.AtLeast)
	}
	return "<=" + terminal.Count(*d.AtMost)
}

func encodingsText(all []StreamEncoding) string {
	var out []string
	for _, e := range all {
		out = append(out, e.Stream+" "+e.Encoding)
	}
	return strings.Join(out, "; ")
}

// jobsView is a line per job.
func jobsView(t *Table, o ViewOptions) ([]Section, error) {
	l, err := list(t.Jobs, []column[Job]{
		textColumn("job", "job", func(j *Job) string { return j.Job }),
		textColumn("user", "user", func(j *Job) string { return j.User }),
		textColumn("programs", "program", func(j *Job) string { return strings.Join(j.Programs, ",") }),
		countColumn("readers", "readers", func(j *Job) uint64 { return j.Readers }),
		countColumn("days", "days", func(j *Job) uint64 { return j.Days }),
		countColumn("features", "features", func(j *Job) uint64 { return j.Features }),
		shareColumn("feature_share", "of features", func(j *Job) float64 { return j.FeatureShare }),
		shareColumn("bytes_share", "of bytes", func(j *Job) float64 { return j.BytesShare }),
		countColumn("rows", "rows", func(j *Job) uint64 { return j.Rows }),
		bytesColumn("bytes_needed", "needed", func(j *Job) uint64 { return j.BytesNeeded }),
		bytesColumn("bytes_unneeded", "unneeded", func(j *Job) uint64 { return j.BytesUnneeded }),
		floatColumn("amplification", "amplification", "%.3f", func(j *Job) float64 { return j.Amplification }),
		countColumn("requests", "requests", func(j *Job) uint64 { return j.Requests }),
		floatColumn("stall_seconds", "waited s", "%.1f", func(j *Job) float64 { return j.StallSeconds }),
		floatColumn("read_seconds", "", "%g", func(j *Job) float64 { return j.ReadSeconds }),
		floatColumn("decode_seconds", "decode s", "%.1f", func(j *Job) float64 { return j.DecodeSeconds }),
		floatColumn("assemble_seconds", "", "%g", func(j *Job) float64 { return j.AssembleSeconds }),
		floatColumn("dedupe_factor", "dedupe", "%.2f", func(j *Job) float64 { return j.DedupeFactor }),
		floatColumn("emitted_factor", "emitted", "%.2f", func(j *Job) float64 { return j.EmittedFactor }),
		textColumn("first", "", func(j *Job) string { return j.First }),
		textColumn("last", "last", func(j *Job) string { return j.Last }),
		textColumn("purposes", "", func(j *Job) string { return strings.Join(j.Purposes, ",") }),
		{"sent_reads", "", func(j *Job) any { return j.SentReads }, nil},
		{"sent_lists", "", func(j *Job) any { return j.SentLists }, nil},
		{"bytes_down", "", func(j *Job) any { return j.BytesDown }, nil},
		{"bytes_cached", "", func(j *Job) any { return j.BytesCached }, nil},
		costColumn(t.Cost, "reads_month", "reads/month", func(j *Job) float64 { return j.ReadsMonth }),
	}, o)
	if err != nil {
		return nil, err
	}
	days := layOut(t.Days, []column[Day]{
		textColumn("day", "day", func(d *Day) string { return d.Day }),
		countColumn("readers", "readers", func(d *Day) uint64 { return d.Readers }),
		countColumn("jobs", "jobs", func(d *Day) uint64 { return d.Jobs }),
		countColumn("features", "features", func(d *Day) uint64 { return d.Features }),
		countColumn("rows", "rows", func(d *Day) uint64 { return d.Rows }),
		bytesColumn("bytes_needed", "needed", func(d *Day) uint64 { return d.BytesNeeded }),
		bytesColumn("bytes_unneeded", "unneeded", func(d *Day) uint64 { return d.BytesUnneeded }),
		knownColumn("table_rows", "table's rows", terminal.Count[uint64], func(d *Day) *uint64 { return d.TableRows }),
		knownColumn("table_bytes", "table's bytes", terminal.Bytes, func(d *Day) *uint64 { return d.TableBytes }),
	}, 0)
	sections := []Section{{Listing: l}}
	if len(l.Values) == 0 {
		sections = []Section{{Lines: []string{"reads: " + noReads(o)}, Listing: l}}
	}
	if len(days.Values) > 0 {
		sections = append(sections, Section{Title: "by day", Listing: days})
	}
	return sections, nil
}

// savingsView is the chain from the source's bytes to those stored, and the savings that are not in it.
func savingsView(t *Table, o ViewOptions) ([]Section, error) {
	s := &t.Savings
	rows := []Cause{{Cause: "source", Bytes: int64(s.RawBytes),
		Meaning: "the values of all rows as plain numbers, in their source's width"}}
	rows = append(rows, s.Causes...)
	rows = append(rows, Cause{Cause: "stored", Bytes: int64(s.StoredBytes), Meaning: "the segments"})
	left := int64(s.RawBytes)
	after := map[string]int64{}
	for _, c := range s.Causes {
		left -= c.Bytes
		after[c.Cause] = left
	}
	l := layOut(rows, []column[Cause]{
		textColumn("cause", "cause", func(c *Cause) string { return c.Cause }),
		{"bytes", "saved", func(c *Cause) any { return c.Bytes }, func(c *Cause) string {
			if _, link := after[c.Cause]; !link {
				return ""
			}
			return terminal.SignedBytes(c.Bytes)
		}},
		{"left", "left", func(c *Cause) any {
			if n, link := after[c.Cause]; link {
				return n
			}
			return c.Bytes
		}, func(c *Cause) string {
			if n, link := after[c.Cause]; link {
				return terminal.SignedBytes(n)
			}
			return terminal.SignedBytes(c.Bytes)
		}},
		bytesColumn("estimated_bytes", "estimated", func(c *Cause) uint64 { return c.EstimatedBytes }),
		{"meaning", "because", func(c *Cause) any { return c.Meaning },
			func(c *Cause) string { return shortMeaning(c.Meaning) }},
	}, 0)
	apart := []string{fmt.Sprintf("sharing slots: about %s more would be stored, encoded, with a slot for each row",
		terminal.Bytes(s.DuplicatesSaved))}
	for _, x := range s.Overlays {
		apart = append(apart, fmt.Sprintf("overlay %s: %s instead of a copy of %s", x.Overlay, terminal.Bytes(x.Bytes),
			terminal.Bytes(x.CopyBytes)))
	}
	for _, x := range s.Lists {
		apart = append(apart, fmt.Sprintf("sample list %s: no copy of %s, about %s", x.List,
			terminal.Plural(x.Rows, "row"), terminal.Bytes(x.SavedBytes)))
	}
	if s.Deleted.Count > 0 {
		apart = append(apart, fmt.Sprintf("deleted, and stored until compaction: %s, about %s",
			terminal.Plural(s.Deleted.Count, "row"), terminal.Bytes(s.Deleted.Bytes)))
	}
	if s.Dropped.Count > 0 {
		apart = append(apart, fmt.Sprintf("dropped, and stored until compaction: %s, %s",
			terminal.Plural(s.Dropped.Count, "feature"), terminal.Bytes(s.Dropped.Bytes)))
	}
	return []Section{{Title: "from the source to what is stored, in the order of the writer; runs, slots and partial " +
		"duplicates before encoding", Listing: l}, {Title: "besides", Lines: apart}}, nil
}

// shortMeaning is a meaning without what the listing's title says for all.
func shortMeaning(text string) string {
	text, _, _ = strings.Cut(text, "; ")
	return text
}

// healthView is segments, packs, snapshots, overlays, branches and leases.
func healthView(t *Table, o ViewOptions) ([]Section, error) {
	h := &t.Health
	worth, n := "nothing", uint64(0)
	for i := range t.Advice {
		if t.Advice[i].Kind != AdviceRecords { // which says what is not known, under records below
			n++
		}
	}
	if n > 0 {
		worth = terminal.Count(n) + ": see dsistat advise"
	}
	facts := [][2]string{
		{"worth doing", worth},
		{"damage", "not looked for here: dsi verify --deep reads every byte"},
		{"segments", fmt.Sprintf("%s, on average %s rows and %s; %s small, %s, %s could be merged",
			terminal.Count(h.Segments.Count), terminal.Count(uint64(h.Segments.MeanRows)),
			terminal.Bytes(uint64(h.Segments.MeanBytes)), terminal.Count(h.Segments.Small),
			terminal.Bytes(h.Segments.SmallBytes), terminal.Count(h.Segments.Mergeable))},
		{"packs", packsText(&h.Packs)},
		{"indexes", terminal.Bytes(h.Segments.IndexBytes)},
		{"snapshots", snapshotsText(&h.Snapshots)},
		{"deleted", waitingText(t.Savings.Deleted, "row", "about ")},
		{"dropped", waitingText(t.Savings.Dropped, "feature", "")},
		{"records", recordsText(&h.Records)},
	}
	if t.Summary.Reads.BytesNeeded > 0 {
		facts = append(facts, [2]string{"read", fmt.Sprintf("%.3f times what was needed",
			t.Summary.Reads.Amplification)})
	}
	smallest, err := list(h.Smallest, segmentColumns, o)
	if err != nil {
		return nil, err
	}
	sections := []Section{{Facts: facts}, {Title: "smallest segments", Listing: smallest}}
	for _, s := range []Section{
		{Title: "overlays", Listing: layOut(h.Overlays, []column[OverlayHealth]{
			textColumn("overlay", "overlay", func(o *OverlayHealth) string { return o.Overlay }),
			textColumn("state", "state", func(o *OverlayHealth) string { return o.State }),
			shareColumn("coverage", "covered", func(o *OverlayHealth) float64 { return o.Coverage }),
			countColumn("covered", "rows", func(o *OverlayHealth) uint64 { return o.Covered }),
			countColumn("layers", "layers", func(o *OverlayHealth) uint64 { return o.Layers }),
			countColumn("segments", "segments", func(o *OverlayHealth) uint64 { return o.Segments }),
			countColumn("features", "features", func(o *OverlayHealth) uint64 { return uint64(len(o.Features)) }),
			bytesColumn("bytes", "bytes", func(o *OverlayHealth) uint64 { return o.Bytes }),
		}, 0)},
		{Title: "sample lists", Listing: layOut(h.Lists, []column[ListHealth]{
			textColumn("sample_list", "sample list", func(l *ListHealth) string { return l.List }),
			countColumn("rows", "rows", func(l *ListHealth) uint64 { return l.Rows }),
			shareColumn("share", "of the table", func(l *ListHealth) float64 { return l.Share }),
			textColumn("definition", "definition", func(l *ListHealth) string { return l.Definition }),
		}, 0)},
		{Title: "what old snapshots hold", Listing: layOut(h.Snapshots.Holding, []column[SnapshotHolder]{
			countColumn("snapshot", "up to snapshot", func(s *SnapshotHolder) uint64 { return s.Snapshot }),
			textColumn("time", "time", func(s *SnapshotHolder) string { return s.Time }),
			textColumn("next_operation", "before", func(s *SnapshotHolder) string { return s.Next }),
			bytesColumn("bytes", "held alone", func(s *SnapshotHolder) uint64 { return s.Bytes }),
		}, 0)},
		{Title: "branches", Listing: layOut(h.Branches, []column[BranchHealth]{
			textColumn("branch", "branch", func(b *BranchHealth) string { return b.Branch }),
			textColumn("owner", "owner", func(b *BranchHealth) string { return b.Owner }),
			textColumn("created", "created", func(b *BranchHealth) string { return b.Created }),
			textColumn("snapshots", "snapshots",
				func(b *BranchHealth) string { return strings.Trim(fmt.Sprint(b.Snapshots), "[]") }),
			bytesColumn("alone_bytes", "held alone", func(b *BranchHealth) uint64 { return b.AloneBytes }),
		}, 0)},
		{Title: "leases", Listing: layOut(h.Leases, []column[LeaseHealth]{
			textColumn("owner", "lease of", func(l *LeaseHealth) string { return l.Owner }),
			countColumn("snapshot", "snapshot", func(l *LeaseHealth) uint64 { return l.Snapshot }),
			textColumn("until", "until", func(l *LeaseHealth) string { return l.Until }),
			bytesColumn("alone_bytes", "held alone", func(l *LeaseHealth) uint64 { return l.AloneBytes }),
		}, 0)},
	} {
		if len(s.Listing.Rows) > 0 {
			sections = append(sections, s)
		}
	}
	return sections, nil
}

func packsText(p *PackHealth) string {
	text := fmt.Sprintf("%s of %s, %s below %s", terminal.Count(p.Packs), terminal.Bytes(p.PackBytes),
		terminal.Count(p.Small), terminal.Bytes(p.SmallBelowBytes))
	if p.Files > 0 {
		text += fmt.Sprintf("; %s of %s", terminal.Plural(p.Files, "large feature file"), terminal.Bytes(p.FileBytes))
	}
	return text
}

func snapshotsText(s *SnapshotHealth) string {
	if s.First == s.Newest {
		return fmt.Sprintf("%d alone", s.Newest)
	}
	return fmt.Sprintf("%d to %d; the older ones alone hold %s", s.First, s.Newest, terminal.Bytes(s.AloneBytes))
}

func waitingText(w Waiting, noun, about string) string {
	if w.Count == 0 {
		return "none"
	}
	return fmt.Sprintf("%s in %s, %s%s", terminal.Plural(w.Count, noun), terminal.Plural(w.Segments, "segment"), about,
		terminal.Bytes(w.Bytes))
}

var segmentColumns = []column[SegmentSummary]{
	textColumn("segment", "segment", func(s *SegmentSummary) string { return s.Segment }),
	textColumn("partition", "partition", func(s *SegmentSummary) string { return s.Partition }),
	countColumn("rows", "rows", func(s *SegmentSummary) uint64 { return s.Rows }),
	countColumn("rows_deleted", "deleted", func(s *SegmentSummary) uint64 { return s.Deleted }),
	bytesColumn("bytes", "bytes", func(s *SegmentSummary) uint64 { return s.Bytes }),
}

func recordsText(h *UsageHealth) string {
	if h.First == "" && h.Damaged == 0 {
		return "none"
	}
	text := fmt.Sprintf("%s to %s: %s, and %s not merged yet", h.First, h.Last, terminal.Plural(h.Rollups, "rollup"),
		terminal.Plural(h.Records, "record"))
	if h.Damaged > 0 {
		text += fmt.Sprintf("; %s damaged and left out", terminal.Count(h.Damaged))
	}
	return text
}

// adviseView is what is worth doing.
func adviseView(t *Table, o ViewOptions) ([]Section, error) {
	l := layOut(t.Advice, []column[Advice]{
		textColumn("kind", "", func(a *Advice) string { return a.Kind }),
		bytesColumn("saved_bytes", "", func(a *Advice) uint64 { return a.SavedBytes }),
		bytesColumn("unneeded_bytes", "", func(a *Advice) uint64 { return a.UnneededBytes }),
		textColumn("text", "", func(a *Advice) string { return a.Text }),
		textColumn("command", "", func(a *Advice) string { return a.Command }),
	}, 0)
	lines := adviceLines(t.Advice)
	if len(lines) == 0 {
		lines = []string{"nothing"}
	}
	return []Section{{Lines: lines, Listing: l}}, nil
}

// adviceLines are two lines a piece: the second is its command. Features that no command names are named in the first.
func adviceLines(all []Advice) []string {
	var out []string
	for _, a := range all {
		line := terminal.OneLine(a.Kind + ": " + a.Text)
		if names := a.Features; (a.Kind == AdviceRecords || a.Kind == AdviceDuplicate) && len(names) > 0 {
			names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !Printable(n) })
			names = names[:min(len(names), typedFeatures)]
			line += ", the largest first: " + strings.Join(names, ", ")
			if more := a.FeatureCount - uint64(len(names)); more > 0 {
				line += fmt.Sprintf(" and %s more (dsistat advise --names %s prints all)", terminal.Count(more), a.Kind)
			}
		}
		if a.Command != "" {
			line += "\n" + a.Command
		}
		out = append(out, line)
	}
	return out
}
