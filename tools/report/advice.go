package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/usage"
)

const (
	// listedFeatures is how many features a piece of advice names, and typedFeatures how many its command.
	listedFeatures = 100
	typedFeatures  = 12
	// Advice must be worth worthBytes, or worthShare of the table and leastBytes.
	worthShare = 0.001
	worthBytes = 64 << 10
	leastBytes = 1 << 10
	// dsi compact rewrites segments of which purgedShare is deleted or dropped, unless it is told otherwise. Advice
	// tells it to from leastPurged on: less is not worth writing the rest again.
	purgedShare = 0.1
	leastPurged = 0.01
	// popularDays is how many days of reads dsi compact looks at, unless it is told otherwise.
	popularDays = ingest.PopularDays
)

// An adviser looks at a table's report and says what is worth doing.
type adviser struct {
	t      *Table
	c      *collector
	table  string // "STORE TABLE", as a shell takes them, perhaps with a flag
	since  time.Time
	oldest time.Time // of the oldest snapshot that is kept, if records are older
	now    time.Time
	listed int // features that a piece names at most
	out    []Advice
}

// worth reports whether so many of a table's bytes are worth a sentence.
func (a *adviser) worth(bytes uint64) bool {
	return bytes >= worthBytes || bytes >= leastBytes && float64(bytes) >= worthShare*float64(a.t.Summary.StoredBytes)
}

func (a *adviser) add(x Advice) {
	if x.Features == nil {
		x.Features = []string{}
	}
	if !Printable(x.Command) { // a name in it that a terminal would change
		x.Command = ""
	}
	a.out = append(a.out, x)
}

// dsi is a command on the table.
func (a *adviser) dsi(verb, rest string) string {
	return strings.TrimSpace("dsi " + verb + " " + a.table + " " + rest)
}

// largest names features, the largest first, and adds up their bytes.
func (a *adviser) largest(features []*Feature, bytes func(*Feature) uint64) (names []string, sum uint64) {
	features = slices.Clone(features)
	slices.SortStableFunc(features, func(a, b *Feature) int { return cmp.Compare(bytes(b), bytes(a)) })
	for i, f := range features {
		sum += bytes(f)
		if i < a.listed {
			names = append(names, f.Name)
		}
	}
	return names, sum
}

func storedBytes(f *Feature) uint64 { return f.StoredBytes }

// records says what is wrong with the records themselves.
func (a *adviser) records() {
	h := &a.t.Health.Records
	if h.First == "" && h.Damaged == 0 {
		a.add(Advice{Kind: AdviceRecords,
			Text: "no reads are recorded: what is unread, and what reads cost, is known once jobs have read, unless " +
				"they have DSISTORE_USAGE=off"})
	}
	if h.Damaged > 0 {
		a.add(Advice{Kind: AdviceRecords, Text: fmt.Sprintf("%s damaged, or of a newer version, and left out: reads "+
			"are missing here",
			terminal.Plural(h.Damaged, "usage record")+" "+agree(h.Damaged, "is", "are"))})
	}
}

// wrongClocks says that records are of days on which nothing can have been read.
func (a *adviser) wrongClocks(s *usage.Summary) {
	var readers, days uint64
	first, last := "", ""
	for i := range s.Days {
		if d := &s.Days[i]; !possible(d.Day, a.now) {
			days++
			readers += d.Readers
			last = dayText(d.Day)
			first = cmp.Or(first, last)
		}
	}
	if days == 0 {
		return
	}
	when := "on " + first
	if last != first {
		when = fmt.Sprintf("on %s from %s to %s", terminal.Plural(days, "day"), first, last)
	}
	a.add(Advice{Kind: AdviceRecords, Text: fmt.Sprintf("%s read %s, by the clocks of their hosts, which cannot be: "+
		"the sums have them, the days not",
		terminal.Plural(readers, "reader"), when)})
}

// agree returns the form of a verb that goes with so many of something.
func agree(n uint64, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// features returns the stored features, other than labels, keys and dropped ones, of which is is true.
func (a *adviser) features(is func(*Feature) bool) (out []*Feature) {
	for i := range a.t.Features {
		f := &a.t.Features[i]
		if f.Role == "" && (f.Status == "" || f.Status == catalog.FeatureDeprecated.String()) && storedBytes(f) > 0 &&
			is(f) {
			out = append(out, f)
		}
	}
	return out
}

// unread names the features that nobody read for so many days. Where the records are of fewer, it says so.
func (a *adviser) unread(days uint64, first time.Time) {
	known := daysSince(first, a.now)
	if first.IsZero() {
		return
	}
	if known < days {
		since := "records began on " + dayText(first)
		if !a.since.IsZero() {
			since = "records were looked at since " + dayText(first)
		}
		text := fmt.Sprintf("%s, so what was not read for %s cannot be known yet", since, terminal.Plural(days, "day"))
		x := Advice{Kind: AdviceRecords, Text: text}
		if known > 0 {
			x.Command = a.advise(known, "")
			x.Text += fmt.Sprintf("; --unread %d says what was not read for %s", known, terminal.Plural(known, "day"))
		} else {
			x.Text += "; from tomorrow, --unread 1 says what was not read for a day"
		}
		never := a.features(func(f *Feature) bool { return f.Readers == 0 })
		if names, bytes := a.largest(never, storedBytes); len(never) > 0 {
			x.Features, x.FeatureCount = names, uint64(len(never))
			x.Text += fmt.Sprintf("; not read so far: %s, %s", terminal.Plural(x.FeatureCount, "feature"),
				terminal.Bytes(bytes))
		}
		a.add(x)
		return
	}
	a.unknownAge(days)
	found := a.features(func(f *Feature) bool { return f.UnreadDays >= days })
	if len(found) == 0 {
		return
	}
	names, bytes := a.largest(found, storedBytes)
	r := &a.t.Summary.Reads
	x := Advice{
		Kind: AdviceUnread, SavedBytes: bytes, Features: names, FeatureCount: uint64(len(found)), Readers: r.Readers,
		Jobs: r.Jobs, Days: a.readDays(), Command: a.drop(names, len(found), days),
	}
	x.Text = fmt.Sprintf("%s not read for %s or more, as far as %s of %s on %s since %s say: dropped, and then taken "+
		"out by dsi compact, they would save %s, %s of what is stored",
		terminal.Plural(x.FeatureCount, "feature")+" "+agree(x.FeatureCount, "was", "were"),
		terminal.Plural(days, "day"), terminal.Plural(x.Readers, "reader"),
		terminal.Plural(x.Jobs, "job"), terminal.Plural(x.Days, "day"), dayText(first), terminal.Bytes(bytes),
		shareText(share(bytes, a.t.Summary.StoredBytes)))
	if n := a.t.Health.Records.Damaged; n > 0 { // they may say that some of these were read
		x.Command = ""
		x.Text += fmt.Sprintf(", but %s could not be read", terminal.Plural(n, "usage record"))
	}
	a.add(x)
}

// unknownAge says of features that were not read since the oldest snapshot that it is not known whether they are as
// old as unread ones must be.
func (a *adviser) unknownAge(days uint64) {
	known := daysSince(a.oldest, a.now)
	if a.oldest.IsZero() || known >= days {
		return
	}
	found := a.features(func(f *Feature) bool { return f.Readers == 0 && f.UnreadDays == known })
	names, bytes := a.largest(found, storedBytes)
	if len(found) == 0 || !a.worth(bytes) {
		return
	}
	x := Advice{Kind: AdviceRecords, Features: names, FeatureCount: uint64(len(found))}
	x.Text = fmt.Sprintf("nobody has read %s, %s, since %s, the day of the oldest snapshot that is kept; whether %s "+
		"there for %s cannot be known", terminal.Plural(x.FeatureCount, "feature"), terminal.Bytes(bytes),
		dayText(a.oldest), agree(x.FeatureCount, "it was", "they were"), terminal.Plural(days, "day"))
	if known > 0 {
		x.Command = a.advise(known, "")
		x.Text += fmt.Sprintf("; --unread %d says what was not read for %s", known, terminal.Plural(known, "day"))
	}
	a.add(x)
}

// readDays is on how many days anything was read.
func (a *adviser) readDays() (n uint64) {
	for i := range a.t.Days {
		if a.t.Days[i].Readers > 0 {
			n++
		}
	}
	return n
}

// advise is the command that gives this advice again, for so many days; with a kind it prints the names of the features
// that advice of the kind is about.
func (a *adviser) advise(days uint64, kind string) string {
	text := fmt.Sprintf("dsistat advise %s --unread %d", a.table, days)
	if !a.since.IsZero() {
		text += " --since " + dayText(a.since)
	}
	if kind != "" {
		text += " --names " + kind
	}
	return text
}

// drop is the command that drops features. Where they are many, it reads their names from another command. Names come
// from dumps: each is quoted as one word of a shell, and no glob, and those that a terminal would change are left out.
func (a *adviser) drop(names []string, all int, days uint64) string {
	if all > typedFeatures {
		return a.advise(days, AdviceUnread) + " | " + a.dsi("features drop", "--from -")
	}
	var words []string
	dash := ""
	for _, name := range names {
		if !Printable(name) {
			continue
		}
		if strings.HasPrefix(name, "-") {
			dash = "-- "
		}
		words = append(words, terminal.ShellWord(reader.Literal(name)))
	}
	if len(words) == 0 {
		return ""
	}
	return a.dsi("features drop", dash+strings.Join(words, " "))
}

// Printable reports whether a terminal shows a name as it is, on one line.
func Printable(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// more ends a command that names only some.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return " ..."
}

// duplicates names the features whose duplicates cost more than they save. In a group, these are features whose part of
// the inverse takes more than the writer's estimate saves. Alone, they are those for which that estimate, which counts
// the inverse, is that nothing is saved.
func (a *adviser) duplicates() {
	cost := map[string]uint64{}
	var found []*Feature
	for _, f := range a.c.order {
		if f.slots == 0 || f.slots >= f.rows || f.status == catalog.FeatureDropped.String() {
			continue
		}
		lost := uint64(0)
		if g := a.c.groups[f.group]; g != nil {
			part := g.bytes / uint64(max(len(g.members), 1))
			lost = part - min(part, f.found)
		} else if f.found == 0 {
			lost = f.inverse
		}
		if lost == 0 {
			continue
		}
		if at, ok := slices.BinarySearchFunc(a.t.Features, f.Name,
			func(x Feature, name string) int { return strings.Compare(x.Name, name) }); ok {
			cost[f.Name] = lost
			found = append(found, &a.t.Features[at])
		}
	}
	names, bytes := a.largest(found, func(f *Feature) uint64 { return cost[f.Name] })
	if len(found) == 0 || !a.worth(bytes) {
		return
	}
	a.add(Advice{
		Kind: AdviceDuplicate, Features: names, FeatureCount: uint64(len(found)),
		Text: fmt.Sprintf("nothing to do: equal values are stored once where that saves space or time; with the "+
			"inverse indices, which say which row has which value, this saves time and takes up to %s more, in %s",
			terminal.Bytes(bytes), terminal.Plural(uint64(len(found)), "feature")),
	})
}

// A purge is what compaction takes out of segments with deleted rows or dropped features.
type purge struct {
	count, bytes uint64 // rows, or bytes of features
	segments     uint64
}

// purge says what dsi compact would take out by itself. Where that is less than 80 % of what it could take out, it says
// what it would take out of all segments for which that pays, and how to tell it.
func (a *adviser) purge() {
	const rows, features = "rows", "features"
	for _, what := range []string{rows, features} {
		usual, all := purge{}, purge{}
		for i := range a.c.segments {
			s := &a.c.segments[i]
			part, bytes := share(s.deleted, s.d.Rows), partOf(s.d, s.deleted)
			if what == features {
				part, bytes = share(s.droppedBytes, s.d.Bytes), s.droppedBytes
			}
			for limit, to := range map[float64]*purge{purgedShare: &usual, leastPurged: &all} {
				if bytes > 0 && part >= limit {
					to.count, to.bytes, to.segments = to.count+s.deleted, to.bytes+bytes, to.segments+1
				}
			}
		}
		found, rest := usual, ""
		if float64(usual.bytes) < 0.8*float64(all.bytes) {
			found, rest = all, fmt.Sprintf("--%s-share %g",
				map[string]string{rows: "deleted", features: "dropped"}[what], leastPurged)
		}
		if found.bytes == 0 || !a.worth(found.bytes) {
			continue
		}
		x := Advice{Kind: AdvicePurge, SavedBytes: found.bytes, Command: a.dsi("compact", rest)}
		if what == rows {
			x.Estimate, x.AtMost = true, found.bytes
			x.Text = fmt.Sprintf("%s deleted and stored: compaction takes them out of %s, up to %s, less where rows "+
				"that stay have the same values",
				terminal.Plural(found.count, "row")+" "+agree(found.count, "is", "are"),
				terminal.Plural(found.segments, "segment"), terminal.Bytes(found.bytes))
		} else {
			n := a.t.Savings.Dropped.Count
			x.Text = fmt.Sprintf("%s dropped and stored: compaction takes them out of %s, %s",
				terminal.Plural(n, "feature")+" "+agree(n, "is", "are"),
				terminal.Plural(found.segments, "segment"), terminal.Bytes(found.bytes))
		}
		a.add(x)
	}
}

// A rewriting adds up the jobs of a compaction's plan that merge segments, or cut them. What they save of deleted rows
// and dropped features is not in it.
type rewriting struct {
	segments, into uint64
	bytes          uint64
	reasons        []string
	frames         float64 // of fewer, larger files
	sharing        []sharing
	full           bool // dsi compact does it when told to merge all
}

// rewrite says what compaction would merge, and which values rows would share then.
func (a *adviser) rewrite(w rewriting) {
	if w.segments == 0 {
		return
	}
	kind, rest := AdviceMerge, ""
	if w.full {
		rest = "--full"
	}
	saved, least, most := w.frames, w.frames/2, 0.0 // how much better larger stripes are encoded is not known
	text := fmt.Sprintf("%s, %s, would become about %s", terminal.Plural(w.segments, "segment"),
		terminal.Bytes(w.bytes), terminal.Count(w.into))
	if len(w.reasons) > 0 {
		text += ": " + strings.Join(w.reasons[:min(len(w.reasons), 3)], "; ") + more(len(w.reasons)-3)
	}
	if len(w.sharing) > 0 {
		var sum sharing
		for _, s := range w.sharing {
			sum.add(s)
		}
		saved, least = saved+sum.saved, least+sum.least
		if sum.saved > w.frames {
			kind, most = AdviceCluster, 1.5*w.frames+1.1*sum.most
		}
		text += fmt.Sprintf("; their %s lie in %s: together, the dedupe factor would go %s",
			terminal.Plural(sum.sessions, "session"), terminal.Plural(sum.pieces, "piece"), &sum)
	}
	if w.full && !a.worth(uint64(saved)) {
		return
	}
	x := Advice{Kind: kind, SavedBytes: uint64(saved), AtLeast: uint64(least), AtMost: uint64(most), Estimate: true,
		Command: a.dsi("compact", rest)}
	if x.SavedBytes > 0 {
		text += fmt.Sprintf("; about %s less", terminal.Bytes(x.SavedBytes))
	}
	x.Text = text
	a.add(x)
}

// history says how many bytes are stored for old snapshots, branches and leases alone.
func (a *adviser) history() {
	h := &a.t.Health
	if h.Snapshots.AloneBytes > 0 && a.worth(h.Snapshots.AloneBytes) {
		a.add(Advice{
			Kind: AdviceExpire, SavedBytes: h.Snapshots.AloneBytes, Command: a.dsi("snapshots expire", "--keep-last 1"),
			Text: fmt.Sprintf("snapshots before %d alone hold %s: let those expire that nobody needs, then dsi gc",
				h.Snapshots.Newest, terminal.Bytes(h.Snapshots.AloneBytes)),
		})
	}
	for _, b := range h.Branches {
		if b.AloneBytes > 0 && a.worth(b.AloneBytes) {
			x := Advice{
				Kind: AdviceBranch, SavedBytes: b.AloneBytes,
				Command: a.dsi("branch drop", terminal.ShellWord(b.Branch)),
				Text: fmt.Sprintf("branch %s, of %s, alone holds %s of expired snapshots", b.Branch,
					cmp.Or(b.Owner, "nobody"), terminal.Bytes(b.AloneBytes)),
			}
			if own := a.madeOn(b.Branch); len(own) > 0 { // perhaps of files that exist nowhere else
				x.Command = ""
				n := uint64(len(own))
				names := strings.Join(own[:min(len(own), 3)], ", ") + more(len(own)-3)
				x.Text += fmt.Sprintf("; dropping it drops %s that %s made on it, too: %s",
					terminal.Plural(n, "overlay"), agree(n, "was", "were"), names)
			}
			a.add(x)
		}
	}
	for _, l := range h.Leases {
		if l.AloneBytes > 0 && a.worth(l.AloneBytes) {
			a.add(Advice{
				Kind: AdviceBranch, SavedBytes: l.AloneBytes,
				Text: fmt.Sprintf("a lease of %s holds %s of snapshot %d until %s", l.Owner,
					terminal.Bytes(l.AloneBytes), l.Snapshot, l.Until),
			})
		}
	}
}

// madeOn returns the overlays that were made on a branch.
func (a *adviser) madeOn(branch string) (names []string) {
	for _, o := range a.t.Health.Overlays {
		if o.State == "branch "+branch {
			names = append(names, o.Overlay)
		}
	}
	return names
}

// overlays names those that compaction could make part of the segments, and those that cover no row.
func (a *adviser) overlays() {
	for _, o := range a.t.Health.Overlays {
		switch {
		case o.Covered == 0:
			a.add(Advice{
				Kind: AdviceOverlay, SavedBytes: o.Bytes, Features: o.Features, FeatureCount: uint64(len(o.Features)),
				Command: a.dsi("overlay drop", terminal.ShellWord(o.Overlay)),
				Text:    fmt.Sprintf("overlay %s covers no row any more", o.Overlay),
			})
		case o.State == "merged" && o.Layers > 0:
			a.add(Advice{
				Kind: AdviceOverlay, Features: o.Features, FeatureCount: uint64(len(o.Features)),
				Command: a.dsi("compact", "--repack"),
				Text: fmt.Sprintf("overlay %s is part of the table and still lies over %s: compaction makes it part "+
					"of the segments, and readers merge nothing",
					o.Overlay, terminal.Plural(o.Layers, "segment")),
			})
		}
	}
}

// order returns the advice, what saves most first, and last what only informs.
func (a *adviser) order() []Advice {
	informs := func(x Advice) int {
		if x.Kind == AdviceDuplicate {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(a.out, func(x, y Advice) int {
		return cmp.Or(cmp.Compare(informs(x), informs(y)),
			cmp.Compare(y.SavedBytes+y.UnneededBytes, x.SavedBytes+x.UnneededBytes),
			cmp.Compare(x.Kind, y.Kind))
	})
	if a.out == nil {
		return []Advice{}
	}
	return a.out
}
