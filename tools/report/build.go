package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/tools/prices"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/usage"
)

// Options say what a report is about. The zero value works.
type Options struct {
	// Since is the first day of which usage records are looked at. Default: all that there are.
	Since time.Time
	// Features are names, globs or sets, as of a reader: only those are listed. All figures but those are of the whole
	// table. Default: all, dropped ones that are still stored and those of overlays too.
	Features []string
	// Encodings says of the features listed how their streams are encoded: a read of the first stripe of each.
	Encodings bool
	// UnreadDays is for how long a feature was not read that advice calls unread. Default 30.
	UnreadDays int
	// Endpoint is the URL of the store's service, where it was given for this report alone: advised commands have it.
	Endpoint string
	// Prices are those of the store's service. Default: none, and the report has no costs.
	Prices *prices.Table
	// AllNames lets advice name all the features that it is about. Default: at most 100.
	AllNames bool
	// Now is the time of the report. Default time.Now.
	Now func() time.Time
	// Usage gives what was read of a table. Default usage.Load.
	Usage func(ctx context.Context, t *storage.Table, since, until time.Time) (*usage.Summary, error)
}

// Validate returns an error naming the first field that is wrong.
func (o *Options) Validate() error {
	if o.UnreadDays < 0 {
		return fmt.Errorf("unread days %d: want 1 or more, or 0 for the default", o.UnreadDays)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.UnreadDays = cmp.Or(o.UnreadDays, 30)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Usage == nil {
		o.Usage = usage.Load
	}
	return o
}

// Build reports on tables of a store, without names on all of them. Then the error names those that it cannot report
// on, and the report has the others. Build reads the indexes of the newest snapshot's segments and layers, the listings
// of snapshots after which data was removed, and the usage records. It writes nothing.
func Build(ctx context.Context, store *storage.Store, tables []string, opts Options) (*Report, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	all := len(tables) == 0
	if all {
		var err error
		if tables, err = store.Tables(ctx); err != nil {
			return nil, err
		}
	}
	now := opts.Now()
	r := newReport(store, now, opts)
	var failed error
	for _, name := range tables {
		table, err := buildTable(ctx, store, name, now, opts)
		switch {
		case err == nil:
			r.Tables = append(r.Tables, *table)
		case all && ctx.Err() == nil:
			failed = errors.Join(failed, err)
		default:
			return nil, err
		}
	}
	r.cost()
	return r, failed
}

// New returns a report of a store without its tables.
func New(store *storage.Store, opts Options) *Report {
	opts = opts.withDefaults()
	return newReport(store, opts.Now(), opts)
}

func newReport(store *storage.Store, now time.Time, opts Options) *Report {
	return &Report{Schema: Schema, Made: timeText(now), Store: store.Blobs().URI(), Since: dayText(opts.Since),
		Tables: []Table{}}
}

func buildTable(ctx context.Context, store *storage.Store, name string, now time.Time, opts Options) (*Table, error) {
	t, err := store.Table(ctx, name)
	if err != nil {
		return nil, err
	}
	b := builder{t: t, opts: opts, now: now}
	table, err := b.build(ctx)
	if err != nil && !strings.HasPrefix(err.Error(), "table "+name+":") {
		err = fmt.Errorf("table %s: %w", name, err)
	}
	return table, err
}

// A builder makes the report of a table.
type builder struct {
	t    *storage.Table
	opts Options
	now  time.Time

	snap     *storage.Snapshot
	segments []catalog.SegmentDescriptor
	history  []snapshot.Info // snapshots that have not expired
	c        *collector
	reads    *usage.Summary
	uses     map[catalog.FeatureID]Use
	added    map[catalog.FeatureID]time.Time // when features were added, if after the first day of records
	oldest   time.Time                       // of the oldest snapshot that is kept, if records are older
	out      *Table
}

func (b *builder) build(ctx context.Context) (*Table, error) {
	var err error
	if b.snap, err = b.t.Latest(ctx); err != nil {
		return nil, err
	}
	b.out = &Table{Table: b.t.Name()}
	listed, err := b.selected(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.collect(ctx, listed); err != nil {
		return nil, err
	}
	if b.reads, err = b.opts.Usage(ctx, b.t, b.opts.Since, time.Time{}); err != nil {
		return nil, err
	}
	b.uses = usesOf(b.reads, b.now)
	if err := b.health(ctx); err != nil {
		return nil, err
	}
	if err := b.age(ctx); err != nil {
		return nil, err
	}
	b.features()
	b.groups()
	b.reading()
	b.summary()
	b.cost()
	if err := b.advise(ctx); err != nil {
		return nil, err
	}
	if listed != nil {
		b.out.Features = slices.DeleteFunc(b.out.Features, func(f Feature) bool { return !listed[f.ID] })
	}
	if b.opts.Encodings {
		if err := b.encodings(ctx); err != nil {
			return nil, err
		}
	}
	return b.out, nil
}

// selected returns the ids of the features to list; nil: all.
func (b *builder) selected(ctx context.Context) (map[string]bool, error) {
	if len(b.opts.Features) == 0 {
		return nil, nil
	}
	plan, err := reader.NewViewPlan(ctx, &storage.View{Snapshot: b.snap}, reader.PlanOptions{Features: b.opts.Features})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, f := range plan.Features {
		if !reader.IsPartitionKey(f) { // which takes no bytes
			out[idText(f.ID)] = true
		}
	}
	return out, nil
}

func idText(id catalog.FeatureID) string { return fmt.Sprintf("%016x", uint64(id)) }

// collect goes through the directories.
func (b *builder) collect(ctx context.Context, listed map[string]bool) error {
	features, err := b.snap.AllFeatures(ctx)
	if err != nil {
		return err
	}
	if b.segments, err = b.snap.Segments(ctx, nil); err != nil {
		return err
	}
	deleted, err := b.snap.DeletionVectors(ctx, b.segments...)
	if err != nil {
		return err
	}
	b.c = newCollector(features)
	if b.opts.Encodings {
		b.c.encodings = func(id catalog.FeatureID) bool { return listed == nil || listed[idText(id)] }
	}
	return b.c.read(ctx, b.t.Store(), b.segments, deleted)
}

// health fills in Health, and the savings of overlays, sample lists and compaction.
func (b *builder) health(ctx context.Context) error {
	h, s := &b.out.Health, &b.out.Savings
	h.Segments, h.Packs = b.c.segmentHealth(), b.c.packHealth()
	h.Largest, h.Smallest = b.c.extremes()
	s.Deleted, s.Dropped = b.c.waiting()
	var err error
	if h.Overlays, s.Overlays, err = b.c.overlays(ctx, b.snap); err != nil {
		return err
	}
	if h.Lists, s.Lists, err = lists(ctx, b.snap, b.segments); err != nil {
		return err
	}
	infos, err := b.t.Snapshots(ctx)
	if err != nil {
		return err
	}
	// Without those committed meanwhile.
	b.history = slices.DeleteFunc(infos, func(i snapshot.Info) bool { return i.Number > b.snap.Info().Number })
	if h.Snapshots, h.Branches, h.Leases, err = holdings(ctx, b.snap, b.history); err != nil {
		return err
	}
	h.Records = UsageHealth{Records: b.reads.Records, Rollups: b.reads.Rollups, Damaged: b.reads.DamagedCount,
		DamagedNames: []string{}}
	if n := len(b.reads.Days); n > 0 {
		h.Records.First, h.Records.Last = dayText(b.reads.Days[0].Day), dayText(b.reads.Days[n-1].Day)
	}
	for _, d := range b.reads.Damaged {
		h.Records.DamagedNames = append(h.Records.DamagedNames, fmt.Sprintf("%s: %v", d.Object, d.Err))
	}
	return nil
}

// features turns what was collected into Features.
func (b *builder) features() {
	b.c.sorted()
	rows := b.snap.Info().Rows
	first := firstDay(b.reads, b.now)
	b.out.Features = make([]Feature, 0, len(b.c.order))
	for _, f := range b.c.order {
		if f.status == catalog.FeatureDropped.String() && f.segments == 0 && f.layers == 0 {
			continue
		}
		present := f.rows - min(f.nulls, f.rows)
		elements := f.elements
		out := Feature{
			ID: idText(f.ID), Name: f.Name, Kind: f.Type.Kind.String(), Type: f.Type.String(), Status: f.status,
			Origin:   f.OriginColumn,
			Segments: f.segments, Coverage: share(present, rows), MeanLength: share(elements, present),
			Elements: elements,
			Distinct: f.distinct.bounds(f.Type, elements), RawBytes: f.raw, StoredBytes: f.stored, LayerBytes: f.layers,
			Slots: f.slots, StoredElements: f.storedElements, Partial: f.partial,
			DedupeFactor: factor(f.elements, f.storedElements, f.rows, f.slots),
			Group:        b.c.groupName(f), Saved: f.chain.saved(), DuplicatesSaved: f.found, Use: b.uses[f.ID],
		}
		if f.Role != catalog.RoleFeature {
			out.Role = f.Role.String()
		}
		if out.LastRead == "" {
			out.UnreadDays = b.unread(first, f.ID)
		}
		b.out.Features = append(b.out.Features, out)
	}
}

// unread returns for how many days at least a feature without reads has been unread: since it was added, or since there
// are records. Of features that the oldest snapshot has it is not known when they were added: since that snapshot.
func (b *builder) unread(first time.Time, id catalog.FeatureID) uint64 {
	for _, t := range [...]time.Time{b.added[id], b.oldest} {
		if !first.IsZero() && t.After(first) {
			first = t
		}
	}
	return daysSince(first, b.now)
}

// age finds out when features were added, where that was after the first day of records, and the oldest snapshot's time
// if it is not the table's first: when the features that it has were added is not known. It halves the history until no
// feature was added between two snapshots: features are added a few times in a table's life, so that few snapshots are
// opened.
func (b *builder) age(ctx context.Context) error {
	first := firstDay(b.reads, b.now)
	from, _ := slices.BinarySearchFunc(b.history, first,
		func(i snapshot.Info, t time.Time) int { return i.Time.Compare(t) })
	from = max(from-1, 0) // the table's on that day
	if !first.IsZero() && len(b.history) > 0 && b.history[0].Number > 1 && b.history[0].Time.After(first) {
		b.oldest = b.history[0].Time
	}
	if first.IsZero() || len(b.history) < 2 || from == len(b.history)-1 {
		return nil
	}
	known := map[int]map[catalog.FeatureID]bool{len(b.history) - 1: {}}
	for id := range b.c.schema {
		known[len(b.history)-1][id] = true
	}
	b.added = map[catalog.FeatureID]time.Time{}
	var between func(low, high int) error
	between = func(low, high int) error {
		for _, i := range [...]int{low, high} {
			if known[i] == nil {
				var err error
				if known[i], err = b.schemaOf(ctx, b.history[i].Number); err != nil {
					return err
				}
			}
		}
		var came []catalog.FeatureID
		for id := range known[high] {
			if !known[low][id] {
				came = append(came, id)
			}
		}
		if len(came) == 0 {
			return nil
		}
		if high-low == 1 {
			for _, id := range came {
				b.added[id] = b.history[high].Time
			}
			return nil
		}
		middle := low + (high-low)/2
		return errors.Join(between(low, middle), between(middle, high))
	}
	return between(from, len(b.history)-1)
}

// schemaOf returns the features of a snapshot, none where it has expired meanwhile.
func (b *builder) schemaOf(ctx context.Context, number uint64) (map[catalog.FeatureID]bool, error) {
	out := map[catalog.FeatureID]bool{}
	snap, err := b.t.At(ctx, number)
	if errors.Is(err, storage.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	features, err := snap.AllFeatures(ctx)
	for _, f := range features {
		out[f.ID] = true
	}
	return out, err
}

// factor is how often a stored value is used: elements over stored elements, or rows over slots where there are none.
func factor(elements, stored, rows, slots uint64) float64 {
	switch {
	case stored > 0:
		return share(elements, stored)
	case slots > 0:
		return share(rows, slots)
	}
	return 1
}

// groups turns what was collected into Groups.
func (b *builder) groups() {
	b.out.Groups = make([]Group, 0, len(b.c.groups))
	for _, g := range b.c.groups {
		out := Group{Group: g.name, Features: []string{}, Segments: g.segments, Bytes: g.bytes, SavedBytes: g.saved}
		for _, id := range g.members {
			out.Features = append(out.Features, b.c.byID[id].Name)
		}
		slices.Sort(out.Features)
		b.out.Groups = append(b.out.Groups, out)
	}
	slices.SortFunc(b.out.Groups, func(x, y Group) int { return strings.Compare(x.Group, y.Group) })
}

// reading turns usage records into jobs, days and the curve.
func (b *builder) reading() {
	stored := map[catalog.FeatureID]uint64{}
	for _, f := range b.c.order {
		if f.status != catalog.FeatureDropped.String() {
			stored[f.ID] = f.stored + f.layers
		}
	}
	b.out.Jobs = jobsOf(b.reads, stored)
	b.out.Days = daysOf(b.reads, b.history, b.opts.Since, b.now)
	b.out.Curve = curveOf(b.out.Features)
}

// summary fills in Summary, and the chain of Savings.
func (b *builder) summary() {
	i := b.snap.Info()
	total := &b.c.total
	partitions, last := uint64(0), ""
	for n, d := range b.segments {
		if p := d.Partition.String(); n == 0 || p != last {
			partitions, last = partitions+1, p
		}
	}
	s := &b.out.Summary
	*s = Summary{
		Snapshot: i.Number, SnapshotTime: timeText(i.Time), Operation: i.Operation, Rows: i.LiveRows(),
		RowsStored: i.Rows, Partitions: partitions,
		Segments: i.Segments, Features: i.Features, RawBytes: b.c.raw, StoredBytes: i.Bytes,
		Reads: readsOf(b.reads.Total, len(b.reads.Jobs)),
	}
	var elements, kept, all, read, rows, slots uint64
	for _, f := range b.c.order {
		s.LayerBytes += f.layers
		elements, kept, rows, slots = elements+f.elements, kept+f.storedElements, rows+f.rows, slots+f.slots
		if f.status == catalog.FeatureDropped.String() {
			continue
		}
		all += f.stored + f.layers
		if u, ok := b.uses[f.ID]; ok && u.Readers > 0 {
			if f.status != statusOverlay { // Features has none of these
				s.FeaturesRead++
			}
			read += f.stored + f.layers
		}
		b.out.Savings.DuplicatesSaved += f.found
	}
	s.BytesPerRow, s.Ratio, s.DedupeFactor = share(i.Bytes, i.Rows), share(s.RawBytes, s.StoredBytes),
		factor(elements, kept, rows, slots)
	s.BytesReadShare = share(read, all)
	for j := range b.reads.Features {
		if t := timeText(notAfter(b.reads.Features[j].Last, b.now)); t > s.LastRead {
			s.LastRead = t
		}
	}
	v := &b.out.Savings
	v.RawBytes, v.StoredBytes, v.Causes = s.RawBytes, s.StoredBytes, total.causes()
}

// advise fills in Advice.
func (b *builder) advise(ctx context.Context) error {
	usual, full, err := b.rewritings(ctx)
	if err != nil {
		return err
	}
	a := adviser{
		t: b.out, c: b.c, now: b.now, since: b.opts.Since, oldest: b.oldest,
		table:  terminal.ShellWord(b.t.Store().Blobs().URI()) + " " + terminal.ShellWord(b.t.Name()),
		listed: listedFeatures,
	}
	if b.opts.Endpoint != "" {
		a.table += " --endpoint-url " + terminal.ShellWord(b.opts.Endpoint)
	}
	if b.opts.AllNames {
		a.listed = math.MaxInt
	}
	a.records()
	a.wrongClocks(b.reads)
	a.unread(uint64(b.opts.UnreadDays), firstDay(b.reads, b.now))
	a.repack(b.reads)
	a.duplicates()
	a.purge()
	a.rewrite(usual)
	a.rewrite(full)
	a.history()
	a.overlays()
	b.out.Advice = a.order()
	return nil
}

// rewritings returns what dsi compact would merge or cut, and what it would merge besides with --full.
func (b *builder) rewritings(ctx context.Context) (usual, full rewriting, err error) {
	plan, err := compaction.NewPlan(ctx, b.t, compaction.Options{})
	if err != nil {
		return usual, full, err
	}
	if usual, err = b.rewriting(ctx, plan.Jobs); err != nil {
		return usual, full, err
	}
	planned := map[string]bool{}
	for i := range plan.Jobs {
		for _, id := range plan.Jobs[i].Segments {
			planned[id] = true
		}
	}
	if b.out.Health.Segments.Mergeable == 0 {
		return usual, full, nil
	}
	// Large ones are in the plan before, if they are to be merged: no session keys are read again.
	if plan, err = compaction.NewPlan(ctx, b.t, compaction.Options{Full: true, SharedShare: 2}); err != nil {
		return usual, full, err
	}
	plan.Jobs = slices.DeleteFunc(plan.Jobs, func(j compaction.Job) bool {
		return !slices.ContainsFunc(j.Segments, func(id string) bool { return !planned[id] })
	})
	full, err = b.rewriting(ctx, plan.Jobs)
	full.full = true
	return usual, full, err
}

// rewriting adds up what jobs of a plan would merge and cut.
func (b *builder) rewriting(ctx context.Context, jobs []compaction.Job) (out rewriting, err error) {
	byID := make(map[string]*segmentFacts, len(b.c.segments))
	for i := range b.c.segments {
		byID[b.c.segments[i].d.ID] = &b.c.segments[i]
	}
	for i := range jobs {
		j := &jobs[i]
		var segments []catalog.SegmentDescriptor
		var frames, stripes uint64
		for _, id := range j.Segments {
			if s := byID[id]; s != nil { // not of a snapshot that was made meanwhile
				segments = append(segments, s.d)
				frames, stripes = frames+s.frames, stripes+s.stripes
			}
		}
		if len(segments) < len(j.Segments) || len(segments) == 1 && j.Into <= 1 {
			continue
		}
		out.segments += uint64(len(segments))
		out.into += j.Into
		out.bytes += j.Bytes
		for _, r := range j.Reasons {
			if !slices.Contains(out.reasons, r) {
				out.reasons = append(out.reasons, r)
			}
		}
		after := max(j.Into, (j.Rows-j.Deleted)/stripeRows)
		out.frames += float64(frames) * max(1-float64(after)/float64(max(stripes, 1)), 0)
		s, err := sharingOf(ctx, b.snap, segments)
		if err != nil {
			return out, err
		}
		if s != nil {
			out.sharing = append(out.sharing, *s)
		}
	}
	return out, nil
}
