package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/object"
)

// A run is the goroutines that read from one position to the end; doc.go draws them. A Scanner has at most one.
type run struct {
	s          *Scanner
	epoch      uint64
	first, end uint64       // rows of the epoch's order
	batch      uint64       // index of the first batch
	loaded     *segmentLoad // a segment that was looked up before, or nil

	cancel context.CancelFunc
	done   <-chan struct{}
	wg     sync.WaitGroup

	chunks   chan chunk // in order
	requests chan fetchJob
	decode   chan decodeTask
	stripes  chan *stripe // in order
	assemble chan *draft
	out      chan result // in order; closed after the last

	fetchers   int          // goroutines that read; emitStripes' own
	emitted    int          // stripes; emitStripes' own
	before     int          // stripes before the window that the next one is of; emitStripes' own
	cut        atomic.Int64 // stripes that cutBatches is through with
	assembling atomic.Int64 // batches cut and not yet made
}

// A result is a batch, perhaps still in the making, or what went wrong in its place.
type result struct {
	draft *draft
	err   error
}

type fetchJob struct {
	unit  *unit
	index int // of the request
}

// A decodeTask is items [lo, hi) of a stripe.
type decodeTask struct {
	unit   *unit
	stripe *stripe
	lo, hi int
}

// segmentsAhead is how many segments are opened before they are needed.
const segmentsAhead = 4

func (s *Scanner) start(epoch, first, end, batch uint64) *run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{
		s: s, epoch: epoch, first: first, end: end, batch: batch, loaded: s.loaded, cancel: cancel, done: ctx.Done(),
		chunks:   make(chan chunk, segmentsAhead-1+s.layout.plan.Shuffle.Window),
		requests: make(chan fetchJob),
		decode:   make(chan decodeTask, 4*s.opts.Workers),
		stripes:  make(chan *stripe, 64),
		assemble: make(chan *draft, s.opts.MaxBatches),
		out:      make(chan result, s.opts.MaxBatches+1),
	}
	s.loaded = nil
	if s.layout.plan.Shuffle.Unit == UnitNone {
		r.wg.Go(func() { r.openSegments(ctx) })
	} else {
		r.wg.Go(func() { r.openWindows(ctx) })
	}
	r.wg.Go(func() { r.emitStripes(ctx) })
	for range s.opts.Workers {
		r.wg.Go(r.work)
	}
	r.wg.Go(r.cutBatches)
	return r
}

// stop ends all goroutines, waits for them and takes back the batches that nobody received.
func (r *run) stop() {
	r.cancel()
	r.wg.Wait()
	for {
		select {
		case x, ok := <-r.out:
			if !ok {
				return
			}
			if x.draft != nil {
				r.s.batches.drop(x.draft)
			}
			continue
		default:
		}
		return
	}
}

// openSegments opens the segments in order, a few ahead of their use.
func (r *run) openSegments(ctx context.Context) {
	defer close(r.chunks)
	if r.first >= r.end {
		return
	}
	l := r.s.layout
	for i := l.segmentAt(r.first); i < len(l.segments) && l.firstRow[i] < r.end; i++ {
		if l.segments[i].Rows == 0 {
			continue
		}
		x, loaded := r.loaded, r.loaded != nil && r.loaded.index == i
		if !loaded {
			x = &segmentLoad{index: i, done: make(chan struct{})}
		}
		select {
		case r.chunks <- chunk{load: x}:
		case <-r.done:
			return
		}
		if loaded {
			continue
		}
		r.wg.Go(func() {
			x.segment, x.err = l.loadSegment(ctx, x.index)
			close(x.done)
		})
	}
}

// emitStripes cuts chunks into units, waits for their memory, and hands their requests and then their stripes on.
func (r *run) emitStripes(ctx context.Context) {
	defer close(r.stripes)
	for c := range r.chunks {
		select {
		case <-c.load.done:
		case <-r.done:
			return
		}
		err := c.load.err
		if err == nil && c.window != nil {
			err = c.check(r.s.layout)
		}
		if err != nil {
			r.emitError(err)
			return
		}
		for _, x := range c.dropped { // earlier chunks waited for them
			x.segment.dictionaries.drop(r.s.budget)
		}
		g := c.load.segment
		from, to := c.from, c.to
		if c.window == nil {
			from, to = g.stripesOf(max(r.first, g.starts[0]), r.end)
			c.left = g.countStripes(from, to)
		}
		g.dictionaries.expect(c.left)
		for {
			lo, hi := g.nextRun(from, to)
			if lo == to {
				break
			}
			u := r.s.getUnit()
			u.plan(g, lo, hi, &r.s.opts)
			from = u.to
			n := u.to - u.from
			if !r.emitUnit(ctx, u, &c, c.last && from == to) {
				return
			}
			g.dictionaries.emitted(n, r.s.budget)
		}
	}
}

// emitError hands on a stripe that stands for an error.
func (r *run) emitError(err error) {
	s := r.s.getStripe()
	s.segment, s.window, s.rows, s.err = nil, nil, 0, err
	s.users.Store(1)
	s.ready <- struct{}{}
	select {
	case r.stripes <- s:
	case <-r.done:
	}
}

// emitUnit hands on a unit of a chunk; last: it ends the window.
func (r *run) emitUnit(ctx context.Context, u *unit, c *chunk, last bool) bool {
	total := int64(u.stored)
	for _, n := range u.decoded {
		total += n
	}
	g := u.segment
	if u.leads {
		total += g.dictionaries.bytes
	}
	if !r.s.budget.take(r.done, total, r.starved) {
		return false
	}
	if u.leads {
		g.dictionaries.taken.Store(g.dictionaries.bytes)
	}
	g.dictionaries.enter()
	u.taken = int64(u.stored)
	perTask := r.itemsPerTask(len(g.items))
	tasks := (len(g.items) + perTask - 1) / perTask
	u.stripes = u.stripes[:0]
	for i := u.from; i < u.to; i++ {
		s := r.s.getStripe()
		s.segment, s.index, s.firstRow, s.rows, s.stored = g, i, g.starts[i], int(g.starts[i+1]-g.starts[i]), g.storedRows(i)
		s.picked, s.sparse, s.condensed = nil, false, false
		if s.rows < s.stored {
			s.selection = g.appendSelected(s.selection[:0], i)
			s.picked, s.sparse = s.selection, r.s.decodesRows(s.rows, s.stored)
			s.condensed = s.sparse || r.s.layout.condenses(s.picked)
		}
		s.window, s.endsWindow = c.window, last && i == u.to-1
		if r.s.sessions && g.featureFile[r.s.layout.sessionKey] < 0 {
			s.findSessions(nil)
		}
		s.taken = u.decoded[i-u.from]
		s.users.Store(1)
		s.undecoded.Store(int32(tasks))
		u.stripes = append(u.stripes, s)
	}
	u.undecoded.Store(int32(tasks * len(u.stripes)))
	u.unread.Store(int32(len(u.requests)))
	u.err = nil
	r.s.stats.count(u)
	r.emitted += len(u.stripes)
	if c.window == nil || last {
		r.before = r.emitted
	}
	// The unit is its tasks' once the last request is handed on, so what comes after is taken out of it first.
	stripes := append(r.s.emitted[:0], u.stripes...)
	r.s.emitted = stripes
	if len(u.requests) == 0 {
		r.arrived(u)
	} else {
		for i := range u.requests {
			if !r.ask(ctx, fetchJob{u, i}) {
				return false
			}
		}
	}
	for _, s := range stripes {
		select {
		case r.stripes <- s:
		case <-r.done:
			return false
		}
	}
	return true
}

// ask hands a request to a goroutine that reads, a new one where all are at it and more may be.
func (r *run) ask(ctx context.Context, j fetchJob) bool {
	select {
	case r.requests <- j:
		return true
	default:
	}
	if r.fetchers < r.s.opts.Requests {
		r.fetchers++
		r.wg.Go(func() { r.fetch(ctx) })
	}
	select {
	case r.requests <- j:
		return true
	case <-r.done:
		return false
	}
}

// starved reports whether all memory that is taken belongs to the window that the next stripe is of, and to the batch being
// cut, which needs that window to become whole: waiting for memory would be for ever.
func (r *run) starved() bool {
	return r.cut.Load() == int64(r.before) && r.assembling.Load() == 0
}

// itemsPerTask makes tasks large enough that handing them out costs little, and enough of them for every worker.
func (r *run) itemsPerTask(items int) int {
	return max(1, items/(4*r.s.opts.Workers))
}

// fetch reads requests.
func (r *run) fetch(ctx context.Context) {
	for {
		var j fetchJob
		select {
		case j = <-r.requests:
		case <-r.done:
			return
		}
		start := time.Now()
		if err := r.read(ctx, j.unit, j.index); err != nil {
			j.unit.fail(j.index, err)
		}
		r.s.stats.read.Add(int64(time.Since(start)))
		r.s.stats.requests.Add(1)
		if j.unit.unread.Add(-1) == 0 {
			r.arrived(j.unit)
		}
	}
}

// read does one request of a unit.
func (r *run) read(ctx context.Context, u *unit, index int) error {
	q := u.requests[index]
	rng := &u.ranges[q.rng]
	place := func(reason string) error {
		return &format.CorruptError{Object: rng.object, Stripe: -1, Offset: int64(q.from), Reason: reason}
	}
	if err := r.s.allocate(ctx, u, q.rng); err != nil {
		return err
	}
	err := r.s.layout.blobs.ReadAt(ctx, rng.object, rng.buf[q.from-rng.from:q.to-rng.from], int64(q.from))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return place(fmt.Sprintf("the object ends before offset %d", q.to))
	case errors.Is(err, object.ErrNotFound):
		return place("object is missing")
	}
	return fmt.Errorf("read of %s at %d: %w", rng.object, q.from, err)
}

// allocate gives a range of u its buffer, unless another request has.
func (s *Scanner) allocate(ctx context.Context, u *unit, rng int32) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := &u.ranges[rng]
	if f.buf != nil {
		return nil
	}
	if f.to-f.from > object.LargeRead {
		if err := s.checkEnd(ctx, f.object, f.to); err != nil {
			return err
		}
	}
	f.buf = s.buffers.get(int(f.to - f.from))
	return nil
}

// checkEnd makes sure that an object has the bytes up to an offset.
func (s *Scanner) checkEnd(ctx context.Context, name string, end uint64) error {
	err := object.CheckEnd(ctx, s.layout.blobs, name, end)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &format.CorruptError{Object: name, Stripe: -1, Offset: -1, Reason: fmt.Sprintf("the object ends before offset %d", end)}
	}
	if err != nil {
		return fmt.Errorf("size of %s: %w", name, err)
	}
	return nil
}

// fail records that a request went wrong; of several, the first in order counts. A nil error is none.
func (u *unit) fail(index int, err error) {
	if err == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil || index < u.errAt {
		u.err, u.errAt = err, index
	}
}

// dispatch hands the tasks of a unit whose bytes and dictionaries are there to the workers.
func (r *run) dispatch(u *unit) {
	stripes, items := u.stripes, len(u.segment.items)
	if u.err != nil || items == 0 {
		for _, s := range stripes {
			if u.err != nil {
				s.fail(0, u.err)
			}
			s.ready <- struct{}{}
		}
		r.s.putUnit(u)
		return
	}
	per := r.itemsPerTask(items)
	for i := range stripes {
		last := i == len(stripes)-1
		s := stripes[i]
		for lo := 0; lo < items; lo += per {
			t := decodeTask{unit: u, stripe: s, lo: lo, hi: min(lo+per, items)}
			select {
			case r.decode <- t:
			case <-r.done:
				return
			}
			if last && t.hi == items {
				return // u may be in use for other stripes by now
			}
		}
	}
}

// work decodes and assembles. Batches come first: they free stripes. After each task whoever waits for what it made goes first,
// where there are fewer processors than goroutines: a batch that is taken and released at once leaves its memory, still in the
// caches, to the next one, and a stripe is cut before another is decoded.
func (r *run) work() {
	for {
		select {
		case d := <-r.assemble:
			r.task(func() { r.makeBatch(d) })
		default:
			select {
			case d := <-r.assemble:
				r.task(func() { r.makeBatch(d) })
			case t := <-r.decode:
				r.task(func() { r.decodeItems(t) })
			case <-r.done:
				return
			}
		}
		runtime.Gosched()
	}
}

// task runs f, which waits for nothing, beside as many tasks of other scanners as the pools allow.
func (r *run) task(f func()) {
	r.s.tasks <- struct{}{}
	defer func() { <-r.s.tasks }()
	f()
}

func (r *run) decodeItems(t decodeTask) {
	if i, err := r.decodeTask(t); err != nil {
		t.stripe.fail(i, err)
	}
	// The stripe may be used up, and the unit read anew, as soon as their last task is counted.
	unitDone := t.unit.undecoded.Add(-1) == 0
	if t.stripe.undecoded.Add(-1) == 0 {
		t.stripe.ready <- struct{}{}
	}
	if unitDone {
		r.s.putUnit(t.unit)
	}
}

// decodeTask decodes the items of a task as far as they can be; the error is that of item i.
func (r *run) decodeTask(t decodeTask) (i int, err error) {
	start := time.Now()
	d := r.s.getDecoder()
	defer r.s.putDecoder(d)
	var group *format.Selection
	if t.stripe.sparse {
		group = groupSelections.Get().(*format.Selection)
		defer groupSelections.Put(group)
	}
	var rows, slots uint64
	for i = t.lo; i < t.hi; i++ {
		it := &t.stripe.segment.items[i]
		var n uint64
		if n, err = r.decodeItem(d, group, t, it); err != nil {
			break
		}
		if n > 0 {
			slots += n
			rows += uint64(len(it.features) * t.stripe.decodedRows())
		}
	}
	st := r.s.stats
	st.decodedRows.Add(rows)
	st.decodedSlots.Add(slots)
	st.decode.Add(int64(time.Since(start)))
	return i, err
}

// groupSelections are memory for the rows of a group's stripe that are decoded alone.
var groupSelections = sync.Pool{New: func() any { return new(format.Selection) }}

// decodeItem decodes the features of an item, transforms and condenses them, and returns how many slots they have. group is scratch memory, of
// stripes that are sparse.
func (r *run) decodeItem(d *format.StripeDecoder, group *format.Selection, t decodeTask, it *item) (uint64, error) {
	g, s := t.stripe.segment, t.stripe
	gathers := s.condensed && !s.sparse
	var gather condenser
	if it.parts != nil {
		slots, err := r.s.decodeBlended(d, t.unit, s, it, s.rowsAlone())
		if err != nil || !gathers {
			return slots, err
		}
		for _, f := range it.features {
			if c := s.columns[f]; c != nil {
				gather.condense(r.s, s, c)
			}
		}
		return slots, nil
	}
	var inverse *vector.Column
	switch {
	case it.inverse >= 0 && s.sparse:
		f := &g.files[it.inverse]
		src, at := t.unit.bytes(it.inverse, s.index)
		if err := d.SelectRows(group, f.entry.Meta, s.index, src, s.picked); err != nil {
			return 0, f.locate(err, at)
		}
	case it.inverse >= 0:
		inv := r.s.inverses.get()
		s.keepInverse(inv)
		if err := r.decodeFile(d, t, it.inverse, inv, nil, nil); err != nil {
			return 0, err
		}
		inverse = inv.column
	}
	var slots uint64
	for _, f := range it.features {
		c := r.s.columns[f].get()
		s.columns[f] = c
		x := r.s.layout.transformers[f]
		if isWeight(r.s.layout.features[f]) {
			var rows []int32
			if s.condensed {
				rows = s.picked
			}
			c.weigh(g.weighted, r.s.layout.weight, g.first[s.index], s.columnRows(), rows)
			continue
		}
		if g.featureFile[f] < 0 {
			if err := c.missing(x, r.s.zeros.get(s.columnRows())); err != nil {
				return 0, fmt.Errorf("feature %q: %w", r.s.layout.plan.Features[f].Name, err)
			}
			continue
		}
		if err := r.decodeFile(d, t, g.featureFile[f], c, inverse, group); err != nil {
			return 0, err
		}
		if r.s.sessions && f == r.s.layout.sessionKey {
			s.findSessions(c.column)
		}
		slots += uint64(c.column.Slots)
		if x != nil {
			if err := c.transform(x); err != nil {
				return 0, fmt.Errorf("feature %q: %w", r.s.layout.plan.Features[f].Name, err)
			}
		}
		if gathers {
			gather.condense(r.s, s, c)
		}
	}
	return slots, nil
}

// decodeFile decodes the stripe of one feature file, or of a sparse one the rows of the group, and widens it to the plan's type.
func (r *run) decodeFile(d *format.StripeDecoder, t decodeTask, fileIndex int32, c *decoded, inverse *vector.Column, group *format.Selection) error {
	return r.s.decodeFile(d, t.unit, t.stripe, fileIndex, c, t.stripe.rowsAlone(), inverse, group)
}

// locate adds what a decoder does not know to its error: the object, the feature's name and the offset in the object.
func (f *file) locate(err error, at uint64) error {
	var c *format.CorruptError
	if errors.As(err, &c) && c.Offset < 0 {
		d := *c
		d.Offset = int64(at - f.entry.Offset)
		err = &d
	}
	return format.Locate(err, f.entry.Object, f.feature, int64(f.entry.Offset))
}

// makeBatch makes the batch of a draft.
func (r *run) makeBatch(d *draft) {
	start := time.Now()
	b := r.s.batches.take()
	b.Index, b.FirstRow, b.Rows = d.index, d.firstRow, d.rows
	b.pieces, d.pieces = d.pieces, b.pieces
	d.err = b.make(r.s.stock.layout)
	for i := range b.pieces {
		// The pieces of a stripe are next to each other.
		if s := b.pieces[i].stripe; i == len(b.pieces)-1 || b.pieces[i+1].stripe != s {
			r.s.releaseStripe(s)
		}
	}
	clear(b.pieces)
	b.pieces = b.pieces[:0]
	r.assembling.Add(-1)
	r.s.budget.poke()
	r.s.stats.assemble.Add(int64(time.Since(start)))
	if d.err == nil {
		r.s.prefetched(1)
	}
	d.batch = b
	d.done <- struct{}{}
}
