package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/command"
)

const (
	// listedFeatures is how many features a piece of advice names.
	listedFeatures = 100
	// leastUnreadDays is how long records must have been kept before anything is called unread.
	leastUnreadDays = 7
	// Advice must be worth worthBytes, or worthShare of the table and leastBytes.
	worthShare = 0.001
	worthBytes = 64 << 10
	leastBytes = 1 << 10
	// lowFactor: segments whose dedupe factor is less than this share of the others' are worth clustering again.
	lowFactor = 0.7
)

// An adviser looks at a table's report and says what is worth doing.
type adviser struct {
	t       *Table
	c       *collector
	command string // "dsi %s STORE TABLE" of the table
	now     time.Time
	out     []Advice
}

// worth reports whether so many of a table's bytes are worth a sentence.
func (a *adviser) worth(bytes uint64) bool {
	return bytes >= worthBytes || bytes >= leastBytes && float64(bytes) >= worthShare*float64(a.t.Summary.StoredBytes)
}

func (a *adviser) add(x Advice) {
	if x.Features == nil {
		x.Features = []string{}
	}
	a.out = append(a.out, x)
}

// dsi is a command on the table.
func (a *adviser) dsi(verb, rest string) string {
	return strings.TrimSpace(fmt.Sprintf(a.command, verb) + " " + rest)
}

// of names features, the largest first, and adds up their bytes.
func of(features []*Feature, bytes func(*Feature) uint64) (names []string, sum uint64) {
	features = slices.Clone(features)
	slices.SortStableFunc(features, func(a, b *Feature) int { return cmp.Compare(bytes(b), bytes(a)) })
	for i, f := range features {
		sum += bytes(f)
		if i < listedFeatures {
			names = append(names, f.Name)
		}
	}
	return names, sum
}

func storedBytes(f *Feature) uint64 { return f.StoredBytes + f.LayerBytes }

// records says what is wrong with the records themselves.
func (a *adviser) records() {
	h := &a.t.Health.Records
	if h.First == "" && h.Damaged == 0 {
		a.add(Advice{Kind: AdviceRecords, Text: "no reads are recorded: what is unread, and what reads cost, is not known"})
	}
	if h.Damaged > 0 {
		a.add(Advice{Kind: AdviceRecords, Text: fmt.Sprintf("%s damaged and left out: reads are missing here", command.Plural(h.Damaged, "access record")+" "+are(h.Damaged))})
	}
}

func are(n uint64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// unread names the features that nobody read for days.
func (a *adviser) unread(days uint64, first time.Time) {
	known := daysSince(first, a.now)
	if first.IsZero() || known < leastUnreadDays {
		return
	}
	days = min(days, known)
	var found []*Feature
	for i := range a.t.Features {
		f := &a.t.Features[i]
		if f.Role == "" && (f.Status == "" || f.Status == storage.FeatureDeprecated.String()) && f.UnreadDays >= days && storedBytes(f) > 0 {
			found = append(found, f)
		}
	}
	names, bytes := of(found, storedBytes)
	if len(found) == 0 {
		return
	}
	all := a.t.Summary.StoredBytes + a.t.Summary.LayerBytes
	a.add(Advice{
		Kind: AdviceUnread, SavedBytes: bytes, Features: names, FeatureCount: uint64(len(found)),
		Command: a.drop(names, len(found)),
		Text: fmt.Sprintf("%s not read for %s or more: dropping them would save %s, %.1f %% of what is stored",
			command.Plural(uint64(len(found)), "feature")+" "+were(len(found)), command.Plural(days, "day"), command.Bytes(bytes), 100*share(bytes, all)),
	})
}

// drop is the command that drops features, of which it names three. What a dump calls its columns is not to run when somebody pastes it, and a
// name that a terminal cannot show is not to become another's.
func (a *adviser) drop(names []string, all int) string {
	var words []string
	dash := ""
	for _, name := range names {
		if len(words) == 3 {
			break
		}
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			continue
		}
		if strings.HasPrefix(name, "-") {
			dash = "-- "
		}
		words = append(words, shellWord(name))
	}
	if len(words) == 0 {
		return ""
	}
	return a.dsi("features drop", dash+strings.Join(words, " ")+more(all-len(words)))
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// more ends a command that names only some.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return " ..."
}

// duplicates names the features whose duplicates cost more than they save: in a group, whose part of the inverse takes more; alone, where the
// writer's estimate, which has taken the inverse off, is that nothing is saved.
func (a *adviser) duplicates() {
	cost := map[string]uint64{}
	var found []*Feature
	for _, f := range a.c.order {
		if f.slots == 0 || f.slots >= f.rows || f.status == storage.FeatureDropped.String() {
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
		if at, ok := slices.BinarySearchFunc(a.t.Features, f.Name, func(x Feature, name string) int { return strings.Compare(x.Name, name) }); ok {
			cost[f.Name] = lost
			found = append(found, &a.t.Features[at])
		}
	}
	names, bytes := of(found, func(f *Feature) uint64 { return cost[f.Name] })
	if len(found) == 0 || !a.worth(bytes) {
		return
	}
	a.add(Advice{
		Kind: AdviceDuplicate, SavedBytes: bytes, Estimate: true, Features: names, FeatureCount: uint64(len(found)),
		Text: fmt.Sprintf("of %s sharing slots saves less than the inverse takes, at most %s in all: it is there for the time that decoding takes without",
			command.Plural(uint64(len(found)), "feature"), command.Bytes(bytes)),
	})
}

// purge says what compaction would take out.
func (a *adviser) purge() {
	s := &a.t.Savings
	if s.Deleted.Count > 0 && a.worth(s.Deleted.Bytes) {
		a.add(Advice{
			Kind: AdvicePurge, SavedBytes: s.Deleted.Bytes, Estimate: true, Command: a.dsi("compact", ""),
			Text: fmt.Sprintf("%s deleted and stored: compaction takes them out of %s, about %s", command.Plural(s.Deleted.Count, "row")+" "+are(s.Deleted.Count),
				command.Plural(s.Deleted.Segments, "segment"), command.Bytes(s.Deleted.Bytes)),
		})
	}
	if s.Dropped.Count > 0 && a.worth(s.Dropped.Bytes) {
		a.add(Advice{
			Kind: AdvicePurge, SavedBytes: s.Dropped.Bytes, Command: a.dsi("compact", ""),
			Text: fmt.Sprintf("%s dropped and stored in %s: compaction takes out %s", command.Plural(s.Dropped.Count, "feature")+" "+are(s.Dropped.Count),
				command.Plural(s.Dropped.Segments, "segment"), command.Bytes(s.Dropped.Bytes)),
		})
	}
}

// merge says what compaction would merge.
func (a *adviser) merge(p *compaction.Plan) {
	if p == nil || len(p.Jobs) == 0 {
		return
	}
	in, out := p.Bytes()
	into := uint64(0)
	var reasons []string
	for i := range p.Jobs {
		into += p.Jobs[i].Into
		for _, r := range p.Jobs[i].Reasons {
			if !slices.Contains(reasons, r) {
				reasons = append(reasons, r)
			}
		}
	}
	text := fmt.Sprintf("%s, %s, would become about %s", command.Plural(uint64(p.Segments()), "segment"), command.Bytes(in), command.Count(into))
	if len(reasons) > 0 {
		text += ": " + strings.Join(reasons[:min(len(reasons), 3)], "; ") + more(len(reasons)-3)
	}
	a.add(Advice{Kind: AdviceMerge, SavedBytes: in - min(in, out), Estimate: true, Command: a.dsi("compact", ""), Text: text})
}

// recluster says which segments hold more copies than the others.
func (a *adviser) recluster() {
	type ranked struct {
		factor float64
		d      storage.SegmentDescriptor
	}
	var all []ranked
	rows := uint64(0)
	for _, s := range a.c.segments {
		if s.storedElements > 0 {
			all = append(all, ranked{share(s.elements, s.storedElements), s.d})
			rows += s.d.Rows
		}
	}
	if len(all) < 2 {
		return
	}
	slices.SortStableFunc(all, func(x, y ranked) int { return cmp.Compare(y.factor, x.factor) })
	good, at := 0.0, uint64(0) // the factor that half of the rows have
	for _, x := range all {
		if at += x.d.Rows; at >= rows/2 {
			good = x.factor
			break
		}
	}
	n, bytes, saved, weighted := uint64(0), uint64(0), 0.0, 0.0
	for _, x := range all {
		if x.factor < lowFactor*good {
			n++
			bytes += x.d.Bytes
			weighted += x.factor * float64(x.d.Bytes)
			saved += float64(x.d.Bytes) * (1 - x.factor/good)
		}
	}
	if n == 0 || !a.worth(uint64(saved)) {
		return
	}
	a.add(Advice{
		Kind: AdviceCluster, SavedBytes: uint64(saved), Estimate: true, Command: a.dsi("compact", "--full"),
		Text: fmt.Sprintf("%s, %s, a dedupe factor of %.2f where half of the rows have %.2f or more: clustered as well as those they would save about %s",
			command.Plural(n, "segment")+" "+have(n), command.Bytes(bytes), weighted/float64(bytes), good, command.Bytes(uint64(saved))),
	})
}

func have(n uint64) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// history says what old snapshots, branches and leases hold.
func (a *adviser) history() {
	h := &a.t.Health
	if h.Snapshots.AloneBytes > 0 && a.worth(h.Snapshots.AloneBytes) {
		a.add(Advice{
			Kind: AdviceExpire, SavedBytes: h.Snapshots.AloneBytes, Command: a.dsi("snapshots expire", "--keep-last 1"),
			Text: fmt.Sprintf("snapshots before %d alone hold %s: let those expire that nobody needs, then dsi gc", h.Snapshots.Newest, command.Bytes(h.Snapshots.AloneBytes)),
		})
	}
	for _, b := range h.Branches {
		if b.AloneBytes > 0 && a.worth(b.AloneBytes) {
			a.add(Advice{
				Kind: AdviceBranch, SavedBytes: b.AloneBytes, Command: a.dsi("branch drop", shellWord(b.Branch)),
				Text: fmt.Sprintf("branch %s, of %s, alone holds %s of expired snapshots", b.Branch, cmp.Or(b.Owner, "nobody"), command.Bytes(b.AloneBytes)),
			})
		}
	}
	for _, l := range h.Leases {
		if l.AloneBytes > 0 && a.worth(l.AloneBytes) {
			a.add(Advice{
				Kind: AdviceBranch, SavedBytes: l.AloneBytes,
				Text: fmt.Sprintf("a lease of %s holds %s of snapshot %d until %s", l.Owner, command.Bytes(l.AloneBytes), l.Snapshot, l.Until),
			})
		}
	}
}

// overlays says which of them could be part of the table, and which say nothing.
func (a *adviser) overlays() {
	for _, o := range a.t.Health.Overlays {
		switch {
		case o.Covered == 0:
			a.add(Advice{
				Kind: AdviceOverlay, SavedBytes: o.Bytes, Features: o.Features, FeatureCount: uint64(len(o.Features)), Command: a.dsi("overlay drop", shellWord(o.Overlay)),
				Text: fmt.Sprintf("overlay %s covers no row any more", o.Overlay),
			})
		case o.State == "merged" && o.Layers > 0:
			a.add(Advice{
				Kind: AdviceOverlay, Features: o.Features, FeatureCount: uint64(len(o.Features)), Command: a.dsi("compact", "--repack"),
				Text: fmt.Sprintf("overlay %s is part of the table and still lies over %s: compaction makes it part of the segments, and readers blend nothing",
					o.Overlay, command.Plural(o.Layers, "segment")),
			})
		}
	}
}

// order puts what is worth most first.
func (a *adviser) order() []Advice {
	slices.SortStableFunc(a.out, func(x, y Advice) int {
		return cmp.Or(cmp.Compare(y.SavedBytes+y.OverReadBytes, x.SavedBytes+x.OverReadBytes), cmp.Compare(x.Kind, y.Kind))
	})
	if a.out == nil {
		return []Advice{}
	}
	return a.out
}
