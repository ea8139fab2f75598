package writer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"golang.org/x/sync/errgroup"
)

// A unit is what one worker writes: a feature, or the features of a dedup group.
type unit struct {
	order    int // position in the packs; a group takes one position for its inverse and one for each feature
	features []*Feature
	byRuns   bool  // dedup.Group.ByRuns
	memory   int64 // bytes to acquire while the unit is written
}

// units returns the units of the segment in the order of the packs. A group has the position of its first feature.
func (j *segmentJob) units(ctx context.Context) ([]*unit, error) {
	groups, err := j.groups(ctx)
	if err != nil {
		return nil, err
	}
	groupOf := map[int]*dedup.Group{} // by position in j.order
	for i := range groups {
		g := &groups[i]
		slices.Sort(g.Members)
		for _, m := range g.Members {
			groupOf[m] = g
		}
	}
	var out []*unit
	order := 0
	for i, f := range j.order {
		u := &unit{order: order, features: []*Feature{f}, memory: j.estimate(f)}
		beside := int64(0)
		if g := groupOf[i]; g != nil {
			if g.Members[0] != i {
				continue
			}
			u.byRuns = g.ByRuns
			beside = j.groupBytes(f) + j.blockBytes(f)
			for _, m := range g.Members[1:] {
				u.features = append(u.features, j.order[m])
				u.memory += j.estimate(j.order[m])
				beside += j.groupBytes(j.order[m]) + j.blockBytes(j.order[m])
			}
			order++
		}
		if j.Dedup != DedupOff {
			u.memory += j.scratch(u)
		}
		if beside > 0 {
			// What a group holds keeps other units out, but not its own helpers.
			helpers := int64(min(j.Workers, len(u.features))-1) * j.seekerBytes(u)
			u.memory = max(u.memory, min(u.memory+beside, writeShare(j.Memory)-helpers))
		}
		u.memory = min(u.memory, writeShare(j.Memory))
		order += len(u.features)
		out = append(out, u)
	}
	return out, nil
}

// groupBytes estimates what a dedup group holds of a feature until the group ends, beside a stripe of it: its file,
// with the integers that wait for the file's dictionary. A feature that is in no group holds this, too, but there are
// no more of them at once than workers.
func (j *segmentJob) groupBytes(f *Feature) int64 {
	const (
		valueBytes    = 24      // of a value that waits, with its place in a hash table
		mostWaitBytes = 6 << 20 // package format ends the wait
	)
	rowBytes := float64(f.RawBytes) / float64(j.rows)
	stored := int64(rowBytes * float64(j.plan.rows) * f.distinct)
	n := min(stored, standAloneBytes(j.Memory))
	if f.Type.Physical() == vector.Int64Values {
		n += min(stored/int64(f.Type.ValueBytes())*valueBytes, mostWaitBytes)
	}
	return n
}

// blockBytes estimates the blocks of runs that are in memory while a feature is open. They have no part in groupWeight:
// the same rows make the same groups, whatever was spilled.
func (j *segmentJob) blockBytes(f *Feature) int64 { return min(j.blocks, int64(f.RawBytes)) }

// groupWeight returns a feature's weight for a Grouper whose limit is half of writeShare. The stripes of a group take
// at most that, an eighth of Memory, and all that it holds takes at most half of Memory.
func (j *segmentJob) groupWeight(f *Feature) int64 {
	stripes := j.estimate(f)
	return max(stripes, (stripes+j.groupBytes(f))/4)
}

// scratch bounds the memory for finding the duplicates of a unit: one seeker for all its features, and a group's Union.
func (j *segmentJob) scratch(u *unit) int64 {
	n := j.seekerBytes(u)
	if len(u.features) > 1 {
		n += dedup.UnionBytes(j.stripeRows())
	}
	return n
}

// seekerBytes bounds the memory of a seeker that handles the features of a unit one after the other.
func (j *segmentJob) seekerBytes(u *unit) int64 {
	values := int64(0)
	for _, f := range u.features {
		values = max(values, j.stripeBytes(f))
	}
	return dedup.ScratchBytes(j.stripeRows(), values) + 2*values // the Sizer holds the values and their encoded form
}

// stripeRows returns the rows of the segment's largest stripe.
func (j *segmentJob) stripeRows() int64 {
	rows := 0
	for i := range j.plan.stripes {
		rows = max(rows, j.plan.stripes[i].rows)
	}
	return int64(rows)
}

// A part is the first rows of a stripe, for a sample.
type part struct {
	stripe *stripePlan
	pieces []piece
	rows   int
}

// Groups are chosen from a sample of rows. The sample comes from a few stripes spread over the segment, so that one
// unusual stripe does not decide. In all it has about as many rows as a stripe, so that values repeat as often in it.
const (
	sampledStripes = 4
	minSampleRows  = 4096
	maxSampleRows  = 16384
)

// sampleParts returns parts of the segment's stripes with about a sixteenth of its rows, and how many rows they have.
func sampleParts(p *segmentPlan) (parts []part, rows int) {
	n := min(sampledStripes, len(p.stripes))
	want := (min(max(p.rows/16, minSampleRows), maxSampleRows) + n - 1) / n
	for i := range n {
		st := &p.stripes[(2*i+1)*len(p.stripes)/(2*n)]
		t := part{stripe: st, rows: min(st.rows, want)}
		left := uint32(t.rows)
		for _, q := range p.pieces[st.from:st.to] {
			if left == 0 {
				break
			}
			q.n = min(q.n, left)
			left -= q.n
			t.pieces = append(t.pieces, q)
		}
		parts = append(parts, t)
		rows += t.rows
	}
	return parts, rows
}

// groups finds the features that repeat on the same rows, from a sample of the segment's rows, and sets distinct of all
// features. Members are positions in j.order. Features are sampled in parallel, a block of them at a time, while the
// features of the block before are added to groups in order.
func (j *segmentJob) groups(ctx context.Context) ([]dedup.Group, error) {
	if !j.Dedup.includes(DedupGroups) {
		return nil, nil
	}
	positions := make([]int, len(j.order))
	for i := range positions {
		positions[i] = i
	}
	// Large features come first: they have few nulls, so they show best which rows repeat. The others join their
	// groups.
	slices.SortStableFunc(positions, func(a, b int) int {
		return cmp.Compare(j.order[b].RawBytes, j.order[a].RawBytes)
	})
	parts, rows := sampleParts(j.plan)
	var g dedup.Grouper
	share := max(writeShare(j.Memory)/2, 1) // for the groups that are found, for samples, and for one group's stripes
	g.Reset(rows, share, dedup.Options{NsPerByte: j.weight.NsPerByte()})
	samplers := make([]featureSampler, j.Workers)
	memory := newMemoryBudget(share)
	for i := range samplers {
		m := j.makers.Get().(*stripeMaker)
		defer j.makers.Put(m)
		s := j.seekers.Get().(*seeker)
		defer j.seekers.Put(s)
		samplers[i] = featureSampler{segmentJob: j, maker: m, seeker: s, parts: parts, budget: memory, most: share,
			sampled: int64(rows)}
	}
	ahead := sampledAhead * j.Workers
	now, next := make([]dedup.Sampled, ahead), make([]dedup.Sampled, ahead)
	if err := sampleAll(ctx, samplers, positions[:min(ahead, len(positions))], now); err != nil {
		return nil, err
	}
	for len(positions) > 0 {
		block := positions[:min(ahead, len(positions))]
		positions = positions[len(block):]
		var eg errgroup.Group
		eg.Go(func() error { return sampleAll(ctx, samplers, positions[:min(ahead, len(positions))], next) })
		for k, i := range block {
			f := j.order[i]
			f.distinct = now[k].Distinct
			g.Add(i, &now[k], j.groupWeight(f), share)
		}
		if err := eg.Wait(); err != nil {
			return nil, err
		}
		now, next = next, now
	}
	return g.Groups(), nil
}

// sampledAhead is how many features of a block each worker samples.
const sampledAhead = 4

// A featureSampler holds one worker's state for sampling features.
type featureSampler struct {
	*segmentJob
	maker   *stripeMaker
	seeker  *seeker
	parts   []part
	budget  *memoryBudget // of all samplers
	most    int64         // bytes of budget
	sampled int64         // rows of parts
	sampler dedup.Sampler
	rows    vector.Column
	starts  []int32
}

// sampleAll samples the features at positions, in parallel.
func sampleAll(ctx context.Context, samplers []featureSampler, positions []int, out []dedup.Sampled) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for i := range min(len(samplers), len(positions)) {
		s := &samplers[i]
		g.Go(func() error {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(positions) {
					return nil
				}
				f := s.order[positions[k]]
				n := s.bytes(f)
				if err := s.budget.acquire(ctx, n); err != nil {
					return err
				}
				err := s.sample(ctx, f, &out[k])
				s.budget.release(n)
				if err != nil {
					return ofFeature(f.Name, err)
				}
			}
		})
	}
	return g.Wait()
}

// bytes estimates the memory of a sample of f: its rows, what is needed to find their duplicates, and the stripe that
// some of them are taken from, with its source.
func (s *featureSampler) bytes(f *Feature) int64 {
	rows := int64(float64(f.RawBytes) / float64(s.output.rows) * float64(s.sampled))
	return min(rows+dedup.ScratchBytes(s.sampled, 0)+2*s.stripeBytes(f)+f.MostBytes, s.most)
}

// sample examines the rows of the parts; no rows when the feature is null in the whole segment.
func (s *featureSampler) sample(ctx context.Context, f *Feature, dst *dedup.Sampled) error {
	s.rows.Type = f.Type
	s.rows.Reset()
	s.starts = s.starts[:0]
	stripe := dedup.Stripe{Values: &s.rows}
	defer s.maker.done(s.keep())
	defer trim(&s.rows, s.keep())
	present, err := s.maker.rows.open(f.Number, f.Type, s.plan, true)
	if err != nil {
		return err
	}
	if present {
		for _, p := range s.parts {
			if err := s.gatherPieces(ctx, s.maker, f, p.stripe, p.pieces, p.rows); err != nil {
				return err
			}
			from := s.maker.stripe
			s.rows.AppendRows(from.Values, 0, from.Values.Rows)
			for _, start := range from.Starts {
				s.starts = append(s.starts, int32(stripe.Rows)+start)
			}
			stripe.Rows += from.Rows
		}
		stripe.Starts = s.starts
	}
	s.sampler.Sample(dst, stripe, s.finding(s.seeker))
	return nil
}

// writeGroup writes the features of a dedup group. It writes stripe i of all features before stripe i+1; idle workers
// help (segmentJob.spread).
func (j *segmentJob) writeGroup(ctx context.Context, u *unit) error {
	s := j.seekers.Get().(*seeker)
	defer j.seekers.Put(s)
	g := groupJob{
		segmentJob: j, unit: u, seeker: s, scratch: j.seekerBytes(u),
		makers: make([]*stripeMaker, len(u.features)), stats: make([]dedup.Stats, len(u.features)),
	}
	stored := make([]catalog.Feature, len(u.features))
	for i, f := range u.features {
		m := j.makers.Get().(*stripeMaker)
		defer j.makers.Put(m)
		defer m.done(j.keep())
		if _, err := m.rows.open(f.Number, f.Type, j.plan, false); err != nil {
			return ofFeature(f.Name, err)
		}
		g.makers[i], stored[i] = m, f.Feature
	}
	err := j.out.AddGroup(ctx, u.order, stored, func(files []StripeWriter) error {
		for i := range j.plan.stripes {
			if err := g.stripe(ctx, i, files); err != nil {
				return err
			}
		}
		return g.spread(len(u.features), s, g.scratch, func(_ *seeker, k int) error {
			files[k+1].Note(foundOf(g.stats[k]))
			if err := files[k+1].Finalize(); err != nil {
				return ofFeature(u.features[k].Name, err)
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("dedup group of feature %q: %w", u.features[0].Name, err)
	}
	for k := range g.stats {
		j.done(g.stats[k])
	}
	j.grouped(len(u.features), int64(g.inverseBytes))
	return nil
}

// A groupJob writes a dedup group.
type groupJob struct {
	*segmentJob
	*unit
	*seeker
	makers       []*stripeMaker // by feature, each with its stripe
	stats        []dedup.Stats  // by feature
	scratch      int64          // memory of a helper's seeker
	union        dedup.Union
	inverseBytes float64 // of the whole segment, estimated from the first stripe
}

// stripe writes stripe i of the inverse and of the features.
func (g *groupJob) stripe(ctx context.Context, i int, files []StripeWriter) error {
	err := g.spread(len(g.makers), g.seeker, 0, func(_ *seeker, k int) error {
		if err := g.gather(ctx, g.makers[k], g.features[k], i); err != nil {
			return ofFeature(g.features[k].Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	g.union.Reset(g.plan.stripes[i].rows, g.byRuns)
	for _, m := range g.makers {
		g.union.Add(m.stripe)
	}
	inverse := g.union.Inverse()
	if i == 0 {
		g.sizer.Reset(inverse.Type, false)
		n, err := g.sizer.Size(inverse)
		if err != nil {
			return err
		}
		g.inverseBytes = float64(n) / float64(max(inverse.Rows, 1)) * float64(g.plan.rows)
	}
	if err := files[0].WriteStripe(inverse); err != nil {
		return err
	}
	return g.spread(len(g.makers), g.seeker, g.scratch, func(s *seeker, k int) error {
		f := g.features[k]
		s.finder.Reset(f.Type, g.finding(s), f.choice)
		if err := files[k+1].WriteStripe(s.finder.FindIn(g.makers[k].stripe, &g.union)); err != nil {
			return ofFeature(f.Name, err)
		}
		f.choice = s.finder.Choice()
		g.stats[k].Add(s.finder.Stats())
		return nil
	})
}
