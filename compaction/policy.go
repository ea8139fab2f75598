package compaction

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dsistore/dsistore/internal/quantity"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// NewPlan returns the jobs that are worth doing in the newest snapshot of a table. It writes nothing. It reads the
// listing, the deletes and overlays of segments, and the schema if there are jobs. It also reads the indexes of
// segments if features were dropped, and the session keys of partitions with several large segments, but of each
// segment only once (lookedProperty).
func NewPlan(ctx context.Context, table *storage.Table, opts Options) (*Plan, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	return planOf(ctx, snap, opts)
}

func planOf(ctx context.Context, snap *storage.Snapshot, opts Options) (*Plan, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	p := planner{snap: snap, opts: opts.withDefaults()}
	p.plan = &Plan{Table: snap.Table().Name(), Snapshot: snap.Info().Number, Jobs: []Job{}, Notes: []string{}}
	if err := p.look(ctx); err != nil {
		return nil, fmt.Errorf("plan of compaction: %w", err)
	}
	for _, g := range p.groups(p.ordered) {
		if err := p.group(ctx, g); err != nil {
			return nil, fmt.Errorf("plan of compaction: %w", err)
		}
	}
	p.noteOrder()
	var deleted, dropped uint64 // of segments that stay because that is too little
	for _, s := range p.segments {
		if !s.planned {
			p.plan.Left++
			p.plan.LeftRows += s.d.Rows
			p.plan.LeftBytes += s.d.Bytes
			if len(s.reasons) == 0 {
				deleted += s.deleted
				dropped += s.dropped
			}
		}
	}
	if deleted > 0 {
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%d deleted rows stay: less than %.3g %% of their segments' "+
			"rows is deleted (--deleted-share)", deleted, 100*p.opts.DeletedShare))
	}
	if dropped > 0 {
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%s of dropped features stay: less than %.3g %% of their "+
			"segments (--dropped-share)", quantity.Bytes(dropped), 100*p.opts.DroppedShare))
	}
	if len(p.plan.Jobs) > 0 {
		var err error
		if p.plan.Packs, err = packOrder(ctx, snap, p.opts.Popularity); err != nil {
			return nil, fmt.Errorf("plan of compaction: %w", err)
		}
	}
	p.plan.Looked = p.toNote()
	return p.plan, nil
}

// A planner makes a Plan.
type planner struct {
	snap     *storage.Snapshot
	opts     Options
	plan     *Plan
	segments []*candidate // in the table's order
	// ordered: the table has no session key and keeps the order of its rows. Only neighbours are rewritten together.
	ordered bool

	hash   uint64 // planner.asked
	looked uint64 // segments that were added in this snapshot, or before, need not be examined
	looks  int    // number of segments examined
}

// A candidate is a segment, and what the plan knows about it.
type candidate struct {
	d       catalog.SegmentDescriptor
	at      int    // its position among the segments of the matched partitions
	deleted uint64 // rows
	dropped uint64 // bytes of dropped features
	// kind has a byte for each overlay for which splits is true: '1' if the segment has a layer of it. Segments of
	// different kinds are not merged.
	kind    string
	forced  bool     // it is one of Options.Segments
	reasons []string // to rewrite it, whatever its size
	planned bool     // a job has it
}

// live returns how many rows are not deleted.
func (c *candidate) live() uint64 { return c.d.Rows - c.deleted }

// look sets p.segments.
func (p *planner) look(ctx context.Context) error {
	match, err := partitionMatch(ctx, p.snap, p.opts.Partition)
	if err != nil {
		return err
	}
	all, err := p.snap.Segments(ctx, match)
	if err != nil {
		return err
	}
	forced := map[string]bool{}
	for _, i := range p.opts.Segments {
		forced[i] = true
	}
	keys, err := p.snap.KeyFeatures(ctx)
	if err != nil {
		return err
	}
	p.ordered = !slices.ContainsFunc(keys, func(f catalog.Feature) bool { return f.Role == catalog.RoleSessionKey })
	var ds []catalog.SegmentDescriptor
	for i, d := range all {
		if len(forced) > 0 && !forced[d.ID] {
			continue
		}
		ds = append(ds, d)
		p.segments = append(p.segments, &candidate{d: d, at: i, forced: len(forced) > 0})
	}
	deleted, err := p.snap.DeletionVectors(ctx, ds...)
	if err != nil {
		return err
	}
	for i, s := range p.segments {
		s.deleted = deleted[i].Count
	}
	kinds, err := kindsOf(ctx, p.snap, ds)
	if err != nil {
		return err
	}
	for i, s := range p.segments {
		s.kind = kinds[i]
	}
	if err := p.lookDropped(ctx); err != nil {
		return err
	}
	for _, s := range p.segments {
		p.reasons(s)
	}
	return nil
}

// partitionMatch returns a predicate over partitions; nil selects all.
func partitionMatch(ctx context.Context, snap *storage.Snapshot, text string) (func(catalog.Partition) bool, error) {
	if text == "" {
		return nil, nil
	}
	keys, err := snap.PartitionKeys(ctx)
	if err != nil {
		return nil, err
	}
	match, err := expr.ParsePartition(text, keys)
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	return match, nil
}

// kindsOf returns candidate.kind of each segment.
func kindsOf(ctx context.Context, snap *storage.Snapshot, ds []catalog.SegmentDescriptor) ([]string, error) {
	overlays, err := snap.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	overlays = slices.DeleteFunc(overlays, func(o catalog.Overlay) bool { return !splits(o) })
	out := make([]string, len(ds))
	layers, err := snap.OverlaySegments(ctx, overlays, ds...)
	if err != nil {
		return nil, err
	}
	for i := range ds {
		kind := make([]byte, len(overlays))
		for j, l := range layers[i] {
			kind[j] = '0'
			if l != nil {
				kind[j] = '1'
			}
		}
		out[i] = string(kind)
	}
	return out, nil
}

// separate reports whether an overlay stays an overlay after compaction: it is neither part of the table nor of a
// branch. A branch keeps its old segments.
func separate(o catalog.Overlay) bool { return o.Merged == 0 && o.Branch == "" }

// splits reports whether segments with a layer of the overlay must not be merged with segments without one: the overlay
// has different missing-value policies for rows that a layer does not cover and for segments without a layer. A merged
// segment could not tell its rows apart.
func splits(o catalog.Overlay) bool { return separate(o) && o.MissingLayers != o.MissingRows }

// lookDropped sets candidate.dropped.
func (p *planner) lookDropped(ctx context.Context) error {
	live, err := p.snap.Features(ctx)
	if err != nil {
		return err
	}
	ids, err := p.snap.FeatureIDs(ctx)
	if err != nil {
		return err
	}
	known := make(map[catalog.FeatureID]bool, len(live))
	for _, f := range live {
		known[f.ID] = true
	}
	dropped := map[catalog.FeatureID]bool{}
	for f := range ids {
		if !known[f] {
			dropped[f] = true
		}
	}
	if err := p.readLooked(ctx, dropped); err != nil || len(dropped) == 0 {
		return err
	}
	added, err := addedIn(ctx, p.snap, p.segments)
	if err != nil {
		return err
	}
	for i, s := range p.segments {
		if added[i] <= p.looked {
			continue
		}
		p.looks++
		entries, _, err := indexOf(ctx, p.snap.Table().Store(), s.d)
		if err != nil {
			return err
		}
		for f, e := range entries {
			if dropped[f] { // not the inverse of a group
				s.dropped += e.Length
			}
		}
	}
	return nil
}

// reasons sets candidate.reasons.
func (p *planner) reasons(s *candidate) {
	add := func(format string, args ...any) { s.reasons = append(s.reasons, fmt.Sprintf(format, args...)) }
	if s.forced {
		add("it was asked for")
	}
	if share := float64(s.deleted) / float64(max(s.d.Rows, 1)); s.deleted > 0 && share >= p.opts.DeletedShare {
		add("%.1f %% of its rows are deleted", 100*share)
	}
	if share := float64(s.dropped) / float64(max(s.d.Bytes, 1)); s.dropped > 0 && share >= p.opts.DroppedShare {
		add("%.1f %% of it is features that were dropped", 100*share)
	}
	if p.size(s) > 2 && p.cuttable(s) {
		add("it is %.1f times as large as a segment should be", p.size(s))
	}
	if p.opts.Repack {
		add("its features are packed anew")
	}
}

// cuttable reports whether s has enough rows that cutting it makes smaller segments, whatever its sessions: a segment
// ends where a stripe ends, and a stripe has at most 2*StripeRows rows.
func (p *planner) cuttable(s *candidate) bool {
	return s.live() > 4*uint64(stripeRowsOf(&p.opts))
}

// size returns the size of s as a multiple of the target size.
func (p *planner) size(s *candidate) float64 {
	return p.share(s.live(), liveBytes(s))
}

// share returns the size of a segment of so many rows and stored bytes as a multiple of the target size.
func (p *planner) share(rows, bytes uint64) float64 {
	return max(float64(rows)/float64(p.opts.SegmentRows), float64(bytes)/float64(p.opts.SegmentBytes))
}

// liveBytes estimates the stored bytes of s without deleted rows and dropped features.
func liveBytes(s *candidate) uint64 {
	return uint64(float64(s.d.Bytes-min(s.dropped, s.d.Bytes)) * float64(s.live()) / float64(max(s.d.Rows, 1)))
}

// groups returns the groups of segments that may be merged with each other, each in the table's order. ordered: the
// segments of a group are neighbours in the table.
func (p *planner) groups(ordered bool) [][]*candidate {
	var out [][]*candidate
	at := map[string]int{}
	for _, s := range p.segments {
		key := s.d.Partition.String() + "\x00" + s.kind
		i, ok := at[key]
		if ok && ordered {
			ok = out[i][len(out[i])-1].at == s.at-1
		}
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// small: a segment of less than this share of the target size is merged with others.
const small = 0.5

// tier returns how many times the size of s must be multiplied by 4 to reach small: 0 for a segment that is not small,
// 1 for the largest small ones.
func (p *planner) tier(s *candidate) int {
	size := p.size(s)
	if size >= small {
		return 0
	}
	return 1 + int(math.Log(small/max(size, 1e-12))/math.Log(4))
}

// group plans segments that may be merged with each other.
func (p *planner) group(ctx context.Context, g []*candidate) error {
	// Shared sessions are counted within each possible job. Sessions shared between two jobs would still be shared
	// after both, and every plan would merge them again.
	for from := 0; from < len(g) && !p.ordered; {
		to := p.fill(g, from)
		shared, text, err := p.sharedSessions(ctx, g[from:to])
		switch {
		case err != nil:
			return err
		case shared:
			p.job(g[from:to], []string{text})
		case text != "":
			p.plan.Notes = append(p.plan.Notes, text)
		}
		from = to
	}
	g = slices.DeleteFunc(slices.Clone(g), func(s *candidate) bool { return s.planned })
	for _, merge := range p.merges(g) {
		for from := 0; from < len(merge.segments); {
			to := p.fill(merge.segments, from)
			if to-from > 1 || len(merge.segments[from].reasons) > 0 {
				p.job(merge.segments[from:to], merge.why)
			}
			from = to
		}
	}
	for _, s := range g {
		if !s.planned && len(s.reasons) > 0 {
			p.job([]*candidate{s}, nil)
		}
	}
	return nil
}

// fill returns the end of the job that starts at merge[from]: a job has as many segments as its memory allows.
func (p *planner) fill(merge []*candidate, from int) int {
	to, held := from, int64(0)
	for to < len(merge) && to-from < p.opts.MaxInputs {
		held += indexMemory(merge[to].d)
		if to > from && held > memoryOf(&p.opts)/8 {
			break
		}
		to++
	}
	return to
}

// memoryOf is writer.Options.Memory with its default.
func memoryOf(o *Options) int64 { return cmp.Or(o.Write.Memory, 1<<30) }

// stripeRowsOf is writer.Options.StripeRows with its default.
func stripeRowsOf(o *Options) int { return cmp.Or(o.Write.StripeRows, 16384) }

// indexMemory estimates the memory of a segment's index, in bytes: its entries and their stripes.
func indexMemory(d catalog.SegmentDescriptor) int64 {
	return int64(d.Features) * (300 + 250*int64(1+d.Rows/16384))
}

// A merge is a list of segments to be merged, and the reasons.
type merge struct {
	segments []*candidate
	why      []string
}

// merges returns the merges of a group.
func (p *planner) merges(g []*candidate) []merge {
	if len(p.opts.Segments) > 0 {
		return []merge{{segments: g}}
	}
	return p.mergeBySize(g, 1, p.ordered)
}

// mergeBySize returns the merges among the segments of a tier and of smaller ones. ordered: only neighbours in g are
// merged.
func (p *planner) mergeBySize(g []*candidate, tier int, ordered bool) (out []merge) {
	least := p.opts.Fanout
	if p.opts.Full {
		least = 2
	}
	for _, s := range p.stretches(g, tier, ordered) {
		if len(s) < least {
			continue // no tier has enough segments
		}
		n := 0
		for _, c := range s {
			if p.tier(c) == tier {
				n++
			}
		}
		if n >= least || p.opts.Full {
			why := fmt.Sprintf("%d segments have less than %.3g %% of the target size", len(s),
				100*small/math.Pow(4, float64(tier-1)))
			out = append(out, merge{s, []string{why}})
		} else {
			out = append(out, p.mergeBySize(s, tier+1, ordered)...)
		}
	}
	return out
}

// stretches returns the segments of g in a tier and in smaller ones, as one list. ordered: as a list for each stretch
// without a larger segment between.
func (p *planner) stretches(g []*candidate, tier int, ordered bool) [][]*candidate {
	var out [][]*candidate
	open := false
	for _, s := range g {
		switch {
		case p.tier(s) < tier:
			open = open && !ordered
		case open:
			out[len(out)-1] = append(out[len(out)-1], s)
		default:
			out, open = append(out, []*candidate{s}), true
		}
	}
	return out
}

// noteOrder adds a note about segments that are not merged only because the table keeps the order of its rows.
func (p *planner) noteOrder() {
	if !p.ordered || len(p.opts.Segments) > 0 {
		return
	}
	left := 0
	for _, g := range p.groups(false) {
		g = slices.DeleteFunc(slices.Clone(g), func(s *candidate) bool { return s.planned })
		for _, m := range p.mergeBySize(g, 1, false) {
			left += len(m.segments)
		}
	}
	if left > 0 {
		p.plan.Notes = append(p.plan.Notes,
			fmt.Sprintf("%d small segments are not merged: others lie between them, and a table without a session key "+
				"keeps the order of its rows", left))
	}
}

// job adds a job to the plan.
func (p *planner) job(segments []*candidate, why []string) {
	j := Job{Partition: segments[0].d.Partition.String(), Segments: []string{}, Reasons: slices.Clone(why)}
	reasons := map[string]int{}
	var order []string
	for _, s := range segments {
		s.planned = true
		j.Segments = append(j.Segments, s.d.ID)
		j.Rows += s.d.Rows
		j.Deleted += s.deleted
		j.Bytes += s.d.Bytes
		j.BytesOut += liveBytes(s)
		for _, r := range s.reasons {
			if reasons[r]++; reasons[r] == 1 {
				order = append(order, r)
			}
		}
	}
	for _, r := range order {
		if n := reasons[r]; n > 1 {
			r = fmt.Sprintf("%s (%d segments)", r, n)
		}
		j.Reasons = append(j.Reasons, r)
	}
	if live := j.Rows - j.Deleted; live > 0 {
		j.Into = uint64(max(math.Round(p.share(live, j.BytesOut)), 1))
	}
	p.plan.Jobs = append(p.plan.Jobs, j)
}
