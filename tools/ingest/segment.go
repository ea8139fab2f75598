package ingest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// rowsOf gives the columns that a stripe's pieces speak of, for one feature of one segment at a time.
type rowsOf interface {
	// open starts the feature of that number, as type t, in the segment and reports whether any of its rows is not null. sample: a few of its
	// stripes are asked for, and not all.
	open(number int, t vector.Type, s *segmentPlan, sample bool) (bool, error)
	// stripe returns the columns, of the feature's type, nil where a whole one is null. Stripes come in order. Borrowed
	// until the next call.
	stripe(st *stripePlan) ([]*vector.Column, error)
	// done gives back what is held of the feature that was opened last.
	done()
}

// bufferRows gives the rows of a sorted buffer.
type bufferRows struct {
	buf  *buffer
	cols []*vector.Column
}

func (b *bufferRows) open(number int, t vector.Type, s *segmentPlan, _ bool) (present bool, err error) {
	if !b.buf.has(number) {
		return false, nil
	}
	if b.cols, err = b.buf.sources(b.cols, number, t); err != nil {
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

func (b *bufferRows) done() {}

// runRows gives the rows of runs. Its memory is for the runs that one segment needs, by their place in its plan.
type runRows struct {
	runs    []*run
	typ     vector.Type
	readers []runReader
	decoded []vector.Column
	cols    []*vector.Column
}

func (r *runRows) open(number int, t vector.Type, s *segmentPlan, _ bool) (bool, error) {
	for len(r.readers) < len(s.ranges) {
		r.readers, r.decoded = append(r.readers, runReader{}), append(r.decoded, vector.Column{})
	}
	r.cols = resize(r.cols, len(s.ranges))
	r.typ = t
	present := false
	for i, g := range s.ranges {
		rd := &r.readers[i]
		src := r.runs[g.run]
		rd.sec = src.section(number)
		if rd.sec.blocks == 0 {
			continue
		}
		if err := rd.reset(src, rd.sec, int(g.lo), int(g.hi)); err != nil {
			return false, err
		}
		r.decoded[i].Type = rd.sec.typ
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
	clear(r.cols)
	for _, g := range st.ranges {
		rd := &r.readers[g.run]
		if rd.sec.blocks == 0 {
			continue
		}
		c := &r.decoded[g.run]
		c.Reset()
		rd.seek(int(g.lo))
		if err := rd.appendRows(c, int(g.hi-g.lo)); err != nil {
			return nil, err
		}
		out, err := vector.Convert(c, r.typ)
		if err != nil {
			return nil, err
		}
		r.cols[g.run] = out
	}
	return r.cols, nil
}

// done: blocks of runs are small, and stay for the next feature.
func (r *runRows) done() {}

// A segmentJob writes one segment: its features in parallel, each stripe by stripe, and with workers that have none the features of a group.
type segmentJob struct {
	plan     *segmentPlan
	out      segmentWriter
	order    []*feature
	workers  int
	idle     *semaphore.Weighted    // workers without work
	memory   *memoryBudget          // for stripes being made and encoded
	most     int64                  // of memory
	estimate func(f *feature) int64 // what gathering and encoding a stripe of f takes of it
	// stripeBytes estimates what a stripe of f decodes to.
	stripeBytes func(f *feature) int64
	makers      *sync.Pool // of *stripeMaker
	seekers     *sync.Pool // of *seeker
	dedup       Dedup
	profile     format.Profile
	share       int64 // of memory, for finding groups and for one group's stripes
	// done is called when a feature is written, with the duplicates found in it, by any goroutine.
	done func(dedup.Stats)
	// grouped is called when a dedup group is written, with its number of features and the bytes of its inverse.
	grouped func(features int, inverseBytes int64)
}

// A stripeMaker is what one worker needs to make stripes of a feature.
type stripeMaker struct {
	rows   rowsOf
	whole  gatherer
	runs   runGatherer
	col    vector.Column
	stripe dedup.Stripe // of col
}

// A seeker is what one worker needs to find duplicates.
type seeker struct {
	finder dedup.Finder
	sizer  format.Sizer
}

// finding returns what the segment allows the seeker's Finder.
func (j *segmentJob) finding(s *seeker) dedup.Options {
	s.sizer.Profile = j.profile
	d := j.dedup
	return dedup.Options{
		NoRuns: !d.takes(DedupRuns), NoSlots: !d.takes(DedupSlots), NoWindows: !d.takes(DedupWindows), Sizer: &s.sizer,
		NsPerByte: j.profile.NsPerByte(),
	}
}

// foundOf is what a feature file says of its duplicates.
func foundOf(s dedup.Stats) format.Found {
	return format.Found{Windows: uint64(s.Windows), SavedBytes: uint64(max(s.SavedBytes, 0))}
}

// write writes every feature of the segment, or leaves it to the caller to abort.
func (j *segmentJob) write(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	units, err := j.units(gctx)
	if err != nil {
		return err
	}
	j.idle = semaphore.NewWeighted(int64(j.workers))
	for _, u := range units {
		// Started in order, here and not in the goroutine: a writer that waits for its predecessors finds them running.
		if err := j.memory.acquire(gctx, u.memory); err != nil {
			break // a worker has ended, or the caller; Wait says why
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

// spread calls work with the numbers 0 to n-1, in the caller and in workers that are idle. Each of these holds scratch more bytes of memory, as
// long as there is so much. s is the caller's seeker; each has its own. When all calls have returned, so does spread, with the error of the
// lowest number: after one no more calls begin.
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
		return fmt.Errorf("feature %q: %w", u.features[0].name, err)
	}
	j.done(s.finder.Stats())
	return nil
}

func (j *segmentJob) writeFeature(ctx context.Context, m *stripeMaker, s *seeker, order int, f *feature) error {
	s.finder.Reset(f.typ, j.finding(s), f.choice)
	defer m.rows.done()
	present, err := m.rows.open(f.number, f.typ, j.plan, false)
	if err != nil {
		return err
	}
	if !present {
		j.out.Skip(order)
		return nil
	}
	return j.out.AddFeature(ctx, order, f.stored(), func(w stripeWriter) error {
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

// form returns stripe i of f, which m has open, in the form in which it is stored. Borrowed until the next call.
func (j *segmentJob) form(ctx context.Context, m *stripeMaker, s *seeker, f *feature, i int) (*vector.Column, error) {
	if j.dedup != DedupOff {
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
	m.col.Type = f.typ
	_, err = m.whole.gather(&m.col, cols, j.plan.pieces[st.from:st.to], st.rows)
	s.finder.Leave(&m.col)
	return &m.col, err
}

// gather sets m.stripe to stripe i of f, which m has open.
func (j *segmentJob) gather(ctx context.Context, m *stripeMaker, f *feature, i int) error {
	st := &j.plan.stripes[i]
	return j.gatherPieces(ctx, m, f, st, j.plan.pieces[st.from:st.to], st.rows)
}

// gatherPieces sets m.stripe to the rows that some of a stripe's pieces spell.
func (j *segmentJob) gatherPieces(ctx context.Context, m *stripeMaker, f *feature, st *stripePlan, pieces []piece, rows int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cols, err := m.rows.stripe(st)
	if err != nil {
		return err
	}
	m.col.Type = f.typ
	m.stripe, err = m.runs.gather(&m.col, cols, pieces, rows)
	return err
}
