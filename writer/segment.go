package writer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// A rowSource returns the source columns of a stripe's pieces, for one feature of one segment at a time. Each worker
// has its own.
type rowSource interface {
	// open prepares the feature of that number, as type t, for the stripes of s. It reports whether any of its rows is
	// not null. sample: stripe will be called for a few stripes only.
	open(number int, t vector.Type, s *segmentPlan, sample bool) (bool, error)
	// stripe returns the columns by piece.src, all of the feature's type, nil for one that is null in every row.
	// Stripes are asked for in order. The columns are borrowed until the next call. Their memory is that of the stripe:
	// what the segment's other stripes need is not held.
	stripe(st *stripePlan) ([]*vector.Column, error)
	// done releases the feature that was opened last. Memory for the next one may stay, at most keep bytes of each
	// kind.
	done(keep int64)
}

// bufferRows is the rowSource of a sorted buffer.
type bufferRows struct {
	buf  *buffer
	cols []*vector.Column
}

func (b *bufferRows) open(number int, t vector.Type, s *segmentPlan, _ bool) (present bool, err error) {
	if b.cols, err = b.buf.sources(b.cols, number, t, s.ranges); err != nil || !b.buf.has(number) {
		return false, err
	}
	for _, p := range s.pieces {
		c := b.cols[p.src]
		if c == nil {
			continue
		}
		for row := p.row; row < p.row+p.n; row++ {
			if !c.IsNull(int(row)) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (b *bufferRows) stripe(*stripePlan) ([]*vector.Column, error) { return b.cols, nil }

func (b *bufferRows) done(int64) {}

// runRows is the rowSource of spilled runs. It holds the rows of one stripe, and a block of each run that the stripe
// needs, however many runs the segment needs.
type runRows struct {
	runs    []*run
	typ     vector.Type
	sample  bool
	readers []runReader // by position in the segment's ranges
	free    [][]byte    // memory for blocks
	columns stripeColumns
}

func (r *runRows) open(number int, t vector.Type, s *segmentPlan, sample bool) (bool, error) {
	for len(r.readers) < len(s.ranges) {
		r.readers = append(r.readers, runReader{})
	}
	r.typ, r.sample = t, sample
	present := false
	for i, g := range s.ranges {
		rd := &r.readers[i]
		src := r.runs[g.run]
		rd.sec, rd.free = src.section(number), &r.free
		if rd.sec.blocks == 0 {
			continue
		}
		if err := rd.reset(src, rd.sec, int(g.lo), int(g.hi)); err != nil {
			return false, err
		}
		if present {
			continue
		}
		var err error
		if present, err = rd.anyPresent(int(g.hi - g.lo)); err != nil {
			return false, err
		}
		if err := rd.reset(src, rd.sec, int(g.lo), int(g.hi)); err != nil {
			return false, err
		}
	}
	return present, nil
}

func (r *runRows) stripe(st *stripePlan) ([]*vector.Column, error) {
	cols := r.columns.begin(st.runs)
	at := -1
	for i, g := range st.ranges {
		if i == 0 || g.run != st.ranges[i-1].run {
			at++
		}
		rd := &r.readers[g.run]
		if rd.sec.blocks == 0 {
			continue
		}
		rd.seek(int(g.lo))
		if err := rd.appendRows(r.columns.column(at, rd.sec.typ), int(g.hi-g.lo)); err != nil {
			return nil, err
		}
		// A block whose rows were all read is not held until the run's next rows are wanted.
		if rd.row == rd.end || rd.row%int(rd.sec.blockRows) == 0 || r.sample && len(rd.raw) > blockBytes {
			rd.release()
		}
	}
	for i, c := range cols {
		if c == nil {
			continue
		}
		var err error
		if cols[i], err = vector.Convert(c, r.typ); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

func (r *runRows) done(keep int64) {
	for i := range r.readers {
		r.readers[i].release()
	}
	// The blocks of large rows are large, too.
	r.free = slices.DeleteFunc(r.free, func(b []byte) bool { return cap(b) > 2*blockBytes })
	r.columns.trim(keep)
}

// An output writes segments one after the other. It holds what they share.
type output struct {
	*Options
	target  Target
	weight  format.Profile
	rows    int64                // of all segments
	held    func(*Feature) int64 // memory of a feature's opened columns while a stripe of it is gathered; nil: 0
	blocks  int64                // most memory of a feature's blocks of runs while it is open
	memory  *memoryBudget        // for stripes being gathered and encoded
	makers  *sync.Pool           // of *stripeMaker
	seekers *sync.Pool           // of *seeker

	mu    sync.Mutex              // guards found, and calls of wrote
	wrote func(rows, bytes int64) // progress since the last call; nil: not reported
	found Duplicates
}

// newOutput returns an output for so many rows in all. newRows makes a worker's rowSource. opts have their defaults.
func newOutput(opts *Options, target Target, newRows func() rowSource, rows int64) (*output, error) {
	weight, err := opts.profile()
	return &output{
		Options: opts, target: target, weight: weight, rows: max(rows, 1),
		memory:  newMemoryBudget(writeShare(opts.Memory)),
		makers:  &sync.Pool{New: func() any { return &stripeMaker{rows: newRows()} }},
		seekers: &sync.Pool{New: func() any { return new(seeker) }},
	}, err
}

// progress reports rows and decoded bytes that were written since the last report.
func (w *output) progress(rows, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progressLocked(rows, bytes)
}

func (w *output) progressLocked(rows, bytes int64) {
	if w.wrote != nil {
		w.wrote(rows, bytes)
	}
}

// write writes the planned rows of the features as one segment. Each finished feature adds share bytes to the progress.
func (w *output) write(ctx context.Context, plan *segmentPlan, p catalog.Partition, features []*Feature,
	share int64) (d catalog.SegmentDescriptor, err error) {
	stripeRows := make([]uint32, len(plan.stripes))
	for i, s := range plan.stripes {
		stripeRows[i] = uint32(s.rows)
	}
	out, err := w.target.NewSegment(ctx, p, stripeRows, w.weight)
	if err != nil {
		return d, err
	}
	j := &segmentJob{output: w, plan: plan, out: out, order: features, share: share}
	if err = j.write(ctx); err == nil {
		d, err = out.Finish(ctx)
	}
	if err != nil {
		out.Abort()
		return catalog.SegmentDescriptor{}, err
	}
	if d.Rows != uint64(plan.rows) {
		w.target.Discard(ctx, []catalog.SegmentDescriptor{d})
		return catalog.SegmentDescriptor{}, fmt.Errorf("segment %s has %d rows, want the %d that were planned", d.ID,
			d.Rows, plan.rows)
	}
	return d, nil
}

// done counts a feature that was written, and its duplicates.
func (j *segmentJob) done(s dedup.Stats) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progressLocked(0, j.share)
	j.found.add(s)
}

// grouped counts a dedup group that was written.
func (j *segmentJob) grouped(features int, inverseBytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.found.addAll(Duplicates{Groups: 1, GroupFeatures: features, saved: -inverseBytes})
}

// stripeBytes estimates the decoded bytes of a stripe of f.
func (w *output) stripeBytes(f *Feature) int64 {
	return min(int64(float64(f.RawBytes)/float64(w.rows)*float64(w.StripeRows)), w.StripeBytes)
}

// estimate returns the approximate memory while a stripe of f is written: the stripe, the columns that it is gathered
// from, and its encoded form.
func (w *output) estimate(f *Feature) int64 {
	n := 3 * w.stripeBytes(f)
	if w.held != nil {
		n += w.held(f)
	}
	return min(n, writeShare(w.Memory))
}

// keep is how much memory of each kind a worker keeps from one feature to the next, which may be a small one. There are
// three kinds: the rows of a source, a stripe, and a sample. So all workers keep less than a fifth of the memory for
// stripes.
func (w *output) keep() int64 { return max(writeShare(w.Memory)/int64(16*w.Workers), 64<<10) }

// A segmentJob writes one segment: its features in parallel, each stripe by stripe. Idle workers help with the features
// of a dedup group.
type segmentJob struct {
	*output
	plan  *segmentPlan
	out   SegmentWriter
	order []*Feature
	share int64               // decoded bytes that each feature adds to the progress
	idle  *semaphore.Weighted // idle workers
}

// A stripeMaker holds one worker's state for gathering stripes of a feature.
type stripeMaker struct {
	rows   rowSource
	whole  gatherer
	runs   runGatherer
	col    vector.Column
	stripe dedup.Stripe // of col
}

// done releases the feature that m opened last, and memory of more than keep bytes of each kind.
func (m *stripeMaker) done(keep int64) {
	m.rows.done(keep)
	m.stripe = dedup.Stripe{}
	trim(&m.col, keep)
}

// A seeker holds one worker's state for finding duplicates.
type seeker struct {
	finder dedup.Finder
	sizer  format.Sizer
}

// finding returns the options of the seeker's Finder for this segment.
func (j *segmentJob) finding(s *seeker) dedup.Options {
	s.sizer.Profile = j.weight
	d := j.Dedup
	return dedup.Options{
		NoRuns: !d.includes(DedupRuns), NoSlots: !d.includes(DedupSlots), NoPartial: !d.includes(DedupPartial),
		Sizer: &s.sizer, NsPerByte: j.weight.NsPerByte(),
	}
}

// foundOf returns the figures of duplicates that a feature file stores.
func foundOf(s dedup.Stats) format.Found {
	return format.Found{Partial: uint64(s.Partial), SavedBytes: uint64(max(s.SavedBytes, 0))}
}

// write writes every feature of the segment. After an error the caller aborts the segment.
func (j *segmentJob) write(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	units, err := j.units(gctx)
	if err != nil {
		return err
	}
	j.idle = semaphore.NewWeighted(int64(j.Workers))
	for _, u := range units {
		// Acquire here and not in the goroutine, so that units start in the order of packs: a feature file may have to
		// wait for those before it, which then are running.
		if err := j.memory.acquire(gctx, u.memory); err != nil {
			break // a worker failed or the caller canceled; Wait returns the reason
		}
		if err := j.idle.Acquire(gctx, 1); err != nil {
			j.memory.release(u.memory)
			break
		}
		g.Go(func() error {
			defer j.memory.release(u.memory)
			defer j.idle.Release(1)
			if err := gctx.Err(); err != nil {
				return err
			}
			return j.writeUnit(gctx, u)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// spread calls work with the numbers 0 to n-1, in the caller and in as many idle workers as there are and j.memory has
// scratch bytes for. The caller uses seeker s; each helper has its own. After an error no more calls start. spread
// returns when all calls have returned, with the error of the lowest number.
func (j *segmentJob) spread(n int, s *seeker, scratch int64, work func(s *seeker, k int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var ended atomic.Bool
	run := func(s *seeker) {
		for !ended.Load() {
			k := int(next.Add(1)) - 1
			if k >= n {
				return
			}
			if errs[k] = work(s, k); errs[k] != nil {
				ended.Store(true)
			}
		}
	}
	var helpers sync.WaitGroup
	for range n - 1 {
		if !j.idle.TryAcquire(1) {
			break
		}
		if !j.memory.tryAcquire(scratch) {
			j.idle.Release(1)
			break
		}
		helpers.Go(func() {
			defer j.idle.Release(1)
			defer j.memory.release(scratch)
			s := j.seekers.Get().(*seeker)
			defer j.seekers.Put(s)
			run(s)
		})
	}
	run(s)
	helpers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *segmentJob) writeUnit(ctx context.Context, u *unit) error {
	if len(u.features) > 1 {
		return j.writeGroup(ctx, u)
	}
	m := j.makers.Get().(*stripeMaker)
	defer j.makers.Put(m)
	s := j.seekers.Get().(*seeker)
	defer j.seekers.Put(s)
	if err := j.writeFeature(ctx, m, s, u.order, u.features[0]); err != nil {
		return ofFeature(u.features[0].Name, err)
	}
	j.done(s.finder.Stats())
	return nil
}

func (j *segmentJob) writeFeature(ctx context.Context, m *stripeMaker, s *seeker, order int, f *Feature) error {
	s.finder.Reset(f.Type, j.finding(s), f.choice)
	defer m.done(j.keep())
	present, err := m.rows.open(f.Number, f.Type, j.plan, false)
	if err != nil {
		return err
	}
	if !present {
		j.out.Skip(order)
		return nil
	}
	return j.out.AddFeature(ctx, order, f.Feature, func(w StripeWriter) error {
		for i := range j.plan.stripes {
			c, err := j.form(ctx, m, s, f, i)
			if err != nil {
				return err
			}
			if err := w.WriteStripe(c); err != nil {
				return err
			}
		}
		f.choice = s.finder.Choice()
		w.Note(foundOf(s.finder.Stats()))
		return nil
	})
}

// form returns stripe i of f, which m has opened, as it is to be stored. Borrowed until the next call.
func (j *segmentJob) form(ctx context.Context, m *stripeMaker, s *seeker, f *Feature, i int) (*vector.Column, error) {
	if j.Dedup != DedupOff {
		if err := j.gather(ctx, m, f, i); err != nil {
			return nil, err
		}
		return s.finder.FindRuns(m.stripe), nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	st := &j.plan.stripes[i]
	cols, err := m.rows.stripe(st)
	if err != nil {
		return nil, err
	}
	m.col.Type = f.Type
	_, err = m.whole.gather(&m.col, cols, j.plan.pieces[st.from:st.to], st.rows)
	s.finder.Leave(&m.col)
	return &m.col, err
}

// gather sets m.stripe to stripe i of f, which m has opened.
func (j *segmentJob) gather(ctx context.Context, m *stripeMaker, f *Feature, i int) error {
	st := &j.plan.stripes[i]
	return j.gatherPieces(ctx, m, f, st, j.plan.pieces[st.from:st.to], st.rows)
}

// gatherPieces sets m.stripe to the rows of some of the pieces of stripe st.
func (j *segmentJob) gatherPieces(ctx context.Context, m *stripeMaker, f *Feature, st *stripePlan, pieces []piece,
	rows int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cols, err := m.rows.stripe(st)
	if err != nil {
		return err
	}
	m.col.Type = f.Type
	m.stripe, err = m.runs.gather(&m.col, cols, pieces, rows)
	return err
}

// ofFeature says which feature an error is of, unless what writes the segment has: it writes in the background, so that
// its error may be of another one.
func ofFeature(name string, err error) error {
	if strings.HasPrefix(err.Error(), "feature ") {
		return err
	}
	return fmt.Errorf("feature %q: %w", name, err)
}
