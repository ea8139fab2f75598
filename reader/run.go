package reader

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/object"
)

// A run is the set of goroutines that read from one position to the end; doc.go has a picture. A Scanner has at most
// one.
type run struct {
	s          *Scanner
	epoch      uint64
	first, end uint64       // rows of the epoch's order
	batch      uint64       // index of the first batch
	loaded     *segmentLoad // a segment that Scanner.inline has loaded, or nil

	cancel context.CancelFunc
	done   <-chan struct{}
	wg     sync.WaitGroup

	indexes  *semaphore.Weighted // bytes of the indexes that are opened in advance
	chunks   chan chunk          // in order
	requests chan execution.Request
	decode   chan execution.DecodeTask
	fetched  chan fetched        // in order; nil unless I/O tasks are fetched apart from decoding them
	stripes  chan *ioplan.Stripe // in order
	assemble chan *batch.Draft
	out      chan result // in order; closed after the last

	// Used only by emitStripes:
	fetches  fetchPlan
	fetchers int // goroutines that read

	emitted    int64        // stripes; used only by emit
	before     atomic.Int64 // stripes before the buffer of the next stripe
	tasks      atomic.Int64 // I/O tasks that are not yet decoded
	cut        atomic.Int64 // stripes that cutBatches has finished
	assembling atomic.Int64 // batches that were cut and are not yet assembled
}

// A fetched is an I/O task whose requests are sent, or a stripe that carries an error.
type fetched struct {
	task *ioplan.IOTask
	err  *ioplan.Stripe
}

// A result is a batch, which may still be assembled, or an error.
type result struct {
	draft *batch.Draft
	err   error
}

// segmentsAhead is how many segments are opened in advance; from a store of high latency it is remoteSegmentsAhead, as
// long as their indexes take at most an eighth of the memory. A store's client sends as many requests again for data.
const (
	segmentsAhead       = 4
	remoteSegmentsAhead = 128
)

// start starts a run that reads rows [first, end) of an epoch, whose first batch has index firstBatch.
func (s *Scanner) start(epoch, first, end, firstBatch uint64) *run {
	ctx, cancel := context.WithCancel(object.CountTraffic(context.Background(), &s.x.Stats.Traffic))
	ahead := segmentsAhead
	if object.HighLatency(s.layout.blobs) {
		ahead = remoteSegmentsAhead
	}
	r := &run{
		s: s, epoch: epoch, first: first, end: end, batch: firstBatch, loaded: s.loaded, cancel: cancel,
		done:     ctx.Done(),
		fetches:  s.layout.newFetchPlan(&s.opts),
		indexes:  semaphore.NewWeighted(max(s.opts.MemoryBudget/8, segmentsAhead)),
		chunks:   make(chan chunk, ahead-1+s.layout.plan.Shuffle.BufferStripes),
		requests: make(chan execution.Request),
		decode:   make(chan execution.DecodeTask, 4*s.opts.Workers),
		stripes:  make(chan *ioplan.Stripe, 4*ahead),
		assemble: make(chan *batch.Draft, s.opts.MaxBatches),
		out:      make(chan result, s.opts.MaxBatches+1),
	}
	s.loaded = nil
	if s.layout.plan.Shuffle.Unit == plan.UnitNone {
		r.wg.Go(func() { r.openSegments(ctx) })
	} else {
		r.wg.Go(func() { r.openBuffers(ctx) })
	}
	if r.fetches.sizes.Apart {
		r.fetched = make(chan fetched, ahead)
		r.wg.Go(r.admitStripes)
	}
	r.wg.Go(func() { r.emitStripes(ctx) })
	for range s.opts.Workers {
		r.wg.Go(r.work)
	}
	r.wg.Go(r.cutBatches)
	return r
}

// stop ends all goroutines, waits for them and drops the batches that were not received.
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
				r.s.batches.Drop(x.draft)
			}
			continue
		default:
		}
		return
	}
}

// openSegments opens the segments in order, ahead of their use, and sends a chunk for each.
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
		weight := min(int64(l.segments[i].IndexSize), max(r.s.opts.MemoryBudget/8/segmentsAhead, 1))
		if r.indexes.Acquire(ctx, weight) != nil {
			return
		}
		select {
		case r.chunks <- chunk{load: x, weight: weight}:
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

// emitStripes divides chunks into I/O tasks. It waits for the memory of each, then sends its requests and its stripes;
// of tasks that are fetched apart, admitStripes sends the stripes.
func (r *run) emitStripes(ctx context.Context) {
	if r.fetched != nil {
		defer close(r.fetched)
	} else {
		defer close(r.stripes)
	}
	for c := range r.chunks {
		select {
		case <-c.load.done:
		case <-r.done:
			return
		}
		r.indexes.Release(c.weight)
		err := c.load.err
		if err == nil && c.buffer != nil {
			err = c.check(r.s.layout)
		}
		if err != nil {
			r.emitError(err)
			return
		}
		for _, x := range c.dropped { // all earlier chunks are done with them
			x.segment.Dictionaries.Drop(r.s.x.Fetched)
		}
		g := c.load.segment
		from, to := c.from, c.to
		if c.buffer == nil {
			from, to = g.StripesOf(max(r.first, g.Starts[0]), r.end)
			c.left = g.CountStripes(from, to)
		}
		g.Dictionaries.Expect(c.left)
		for {
			lo, hi := g.NextRun(from, to)
			if lo == to {
				break
			}
			u := r.s.x.PlanTask(g, lo, hi, r.fetches.next())
			r.fetches.planned(u)
			from = u.To
			n := u.To - u.From
			if !r.emitTask(ctx, u, &c, c.last && from == to) {
				return
			}
			g.Dictionaries.Emitted(n, r.s.x.Fetched)
		}
	}
}

// emitError sends a stripe that carries an error.
func (r *run) emitError(err error) {
	s := r.s.x.Stripe(nil, 0)
	s.Err = err
	s.Ready <- struct{}{}
	if r.fetched == nil {
		r.emit(s)
		return
	}
	select {
	case r.fetched <- fetched{err: s}:
	case <-r.done:
	}
}

// emit sends the next stripe. It returns false if the run is stopped.
func (r *run) emit(s *ioplan.Stripe) bool {
	if r.emitted++; s.Buffer == nil || s.EndsBuffer {
		r.before.Store(r.emitted)
	}
	select {
	case r.stripes <- s:
		return true
	case <-r.done:
		return false
	}
}

// emitTask sends an I/O task of a chunk. last: it is the last one of a buffer. It returns false if the run is stopped.
func (r *run) emitTask(ctx context.Context, u *ioplan.IOTask, c *chunk, last bool) bool {
	g, apart := u.Segment, u.Sizes.Apart
	total, starved := int64(u.Stored), r.starved
	if u.Leads {
		total += g.Dictionaries.Bytes
	}
	if apart {
		starved = func() bool { return r.tasks.Load() == 0 && r.starved() }
	} else {
		for _, n := range u.Decoded {
			total += n
		}
	}
	if !r.s.x.Fetched.Take(r.done, total, starved) {
		return false
	}
	r.tasks.Add(1)
	if u.Leads {
		g.Dictionaries.Taken.Store(g.Dictionaries.Bytes)
	}
	u.Taken = int64(u.Stored)
	u.Stripes = u.Stripes[:0]
	for i := u.From; i < u.To; i++ {
		s := r.s.x.Stripe(u, i)
		s.Buffer, s.EndsBuffer = c.buffer, last && i == u.To-1
		s.Undecoded.Store(int32(r.decodeTasks(g)))
		if !apart {
			r.prepare(s, u.Decoded[i-u.From])
		}
		u.Stripes = append(u.Stripes, s)
	}
	u.Undecoded.Store(int32(len(u.Stripes)))
	u.Unread.Store(int32(len(u.Requests)))
	u.Admitted, u.Arrived, u.Err = len(u.Stripes), false, nil
	if apart {
		u.Admitted = 0
	}
	r.s.x.Stats.CountTask(u)
	// After the last request is sent and the last stripe admitted, the decode tasks own u and may reuse it: copy its
	// stripes before.
	stripes := append(r.s.emitted[:0], u.Stripes...)
	r.s.emitted = stripes
	if len(u.Requests) == 0 {
		r.arrived(u)
	} else {
		for i := range u.Requests {
			if !r.ask(ctx, execution.Request{Task: u, Index: i}) {
				return false
			}
		}
	}
	if apart {
		select {
		case r.fetched <- fetched{task: u}:
			return true
		case <-r.done:
			return false
		}
	}
	for _, s := range stripes {
		if !r.emit(s) {
			return false
		}
	}
	return true
}

// admitStripes takes the memory to decode the stripes of tasks, one after the other, and sends them. Meanwhile later
// tasks are fetched.
func (r *run) admitStripes() {
	defer close(r.stripes)
	for {
		var f fetched
		var ok bool
		select {
		case f, ok = <-r.fetched:
		case <-r.done:
		}
		if !ok {
			return
		}
		if f.err != nil {
			r.emit(f.err)
			return
		}
		u := f.task
		for i, n := 0, len(u.Stripes); i < n; i++ { // u may be reused when the last one is admitted
			s := u.Stripes[i]
			if !r.admit(u, s, u.Decoded[i]) || !r.emit(s) {
				return
			}
		}
	}
}

// prepare gives a stripe the memory that was taken for it, and finds the rows that it is to have.
func (r *run) prepare(s *ioplan.Stripe, bytes int64) {
	s.Taken = bytes
	r.s.x.Select(s)
	if r.s.x.Sessions && s.Segment.FeatureFile[r.s.layout.sessionKey] < 0 {
		s.FindSessions(nil)
	}
}

// admit takes the memory of a decoded stripe, the next one of u. If u's bytes are in memory, it sends the stripe's
// decode tasks. It returns false if the run is stopped.
func (r *run) admit(u *ioplan.IOTask, s *ioplan.Stripe, bytes int64) bool {
	if !r.s.x.Budget.Take(r.done, bytes, r.starved) {
		return false
	}
	r.prepare(s, bytes)
	u.Mu.Lock()
	u.Admitted++
	arrived := u.Arrived
	u.Mu.Unlock()
	return !arrived || r.decodeStripe(u, s)
}

// ask passes a request to a goroutine that reads. If all are busy and there are fewer than Options.Requests, it starts
// one more. It returns false if the run is stopped.
func (r *run) ask(ctx context.Context, j execution.Request) bool {
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

// starved reports whether all memory that is taken belongs to the buffer of the next stripe and to the batch being cut,
// which needs that buffer. Then waiting for memory would never end.
func (r *run) starved() bool {
	return r.cut.Load() == r.before.Load() && r.assembling.Load() == 0
}

// poke lets who waits for memory look whether it is starved.
func (r *run) poke() {
	r.s.x.Fetched.Poke()
	r.s.x.Budget.Poke()
}

// itemsPerTask returns how many items a decode task has: so many that passing tasks to workers costs little, and so few
// that there are tasks for every worker.
func (r *run) itemsPerTask(items int) int {
	return max(1, items/(4*r.s.opts.Workers))
}

// decodeTasks returns how many decode tasks a stripe of g has.
func (r *run) decodeTasks(g *ioplan.Segment) int {
	per := r.itemsPerTask(len(g.Items))
	return (len(g.Items) + per - 1) / per
}

// fetch executes requests until the run ends.
func (r *run) fetch(ctx context.Context) {
	for {
		var j execution.Request
		select {
		case j = <-r.requests:
		case <-r.done:
			return
		}
		u := j.Task
		u.Fail(j.Index, r.s.x.ReadRequests(ctx, u.Ranges[u.Requests[j.Index].Range].Object, j))
		if u.Unread.Add(-1) == 0 {
			r.arrived(u)
		}
	}
}

// arrived dispatches an I/O task whose bytes have been read. A task of a segment with dictionaries waits until the task
// that leads has decoded them.
func (r *run) arrived(u *ioplan.IOTask) {
	d := u.Segment.Dictionaries
	switch {
	case d == nil:
		r.dispatch(u)
		return
	case !u.Leads:
		if !d.Wait(u) {
			u.Fail(0, d.Failed())
			r.dispatch(u)
		}
		return
	}
	err := u.Err
	if err == nil {
		if err = r.s.x.DecodeDictionaries(u); err != nil {
			u.Fail(0, err)
		}
	}
	line := d.Finish(err)
	r.dispatch(u)
	for _, w := range line {
		w.Fail(0, err)
		r.dispatch(w)
	}
}

// dispatch sends the decode tasks of an I/O task whose bytes and dictionaries are in memory: of the stripes that are
// admitted. admit sends those of later ones.
func (r *run) dispatch(u *ioplan.IOTask) {
	u.Mu.Lock()
	u.Arrived = true
	stripes := u.Stripes[:u.Admitted]
	u.Mu.Unlock()
	for _, s := range stripes {
		if !r.decodeStripe(u, s) {
			return
		}
	}
}

// decodeStripe sends the decode tasks of an admitted stripe of u, whose bytes and dictionaries are in memory. After the
// last stripe of u it may already be reused. It returns false if the run is stopped.
func (r *run) decodeStripe(u *ioplan.IOTask, s *ioplan.Stripe) bool {
	items := len(u.Segment.Items)
	if u.Err != nil || items == 0 {
		if u.Err != nil {
			s.Fail(0, u.Err)
		}
		r.decoded(u, s)
		return true
	}
	per := r.itemsPerTask(items)
	for lo := 0; lo < items; lo += per {
		select {
		case r.decode <- execution.DecodeTask{Stripe: s, Lo: lo, Hi: min(lo+per, items)}:
		case <-r.done:
			return false
		}
	}
	return true
}

// decoded says that a stripe of u is decoded, or failed.
func (r *run) decoded(u *ioplan.IOTask, s *ioplan.Stripe) {
	// After this is counted, other goroutines may reuse the I/O task; after the token, release the stripe.
	last := u.Undecoded.Add(-1) == 0
	s.Ready <- struct{}{}
	if last {
		r.tasks.Add(-1) // before the memory comes back, which lets emitStripes look
		r.s.x.PutTask(u)
	}
}

// work decodes and assembles until the run ends. Batches come first, because they free stripes. After each task it
// yields the processor, so that with few processors the goroutine that waits for the result runs before the next task:
// a batch that is released at once leaves its memory, still in the CPU caches, to the next batch.
func (r *run) work() {
	for {
		select {
		case d := <-r.assemble:
			r.task(func() { r.assembleBatch(d) })
		default:
			select {
			case d := <-r.assemble:
				r.task(func() { r.assembleBatch(d) })
			case t := <-r.decode:
				r.task(func() { r.decodeTask(t) })
			case <-r.done:
				return
			}
		}
		runtime.Gosched()
	}
}

// task runs f, which does not block. The pools limit the number of tasks of all their scanners.
func (r *run) task(f func()) {
	r.s.x.Tokens <- struct{}{}
	defer func() { <-r.s.x.Tokens }()
	f()
}

// decodeTask runs a decode task. After the last one of a stripe, the stripe is ready.
func (r *run) decodeTask(t execution.DecodeTask) {
	s, u := t.Stripe, t.Stripe.Task
	if i, err := r.s.x.Decode(t); err != nil {
		s.Fail(i, err)
	}
	if s.Undecoded.Add(-1) == 0 {
		r.decoded(u, s)
	}
}

// assembleBatch assembles the batch of a draft.
func (r *run) assembleBatch(d *batch.Draft) {
	r.s.makeBatch(d)
	r.assembling.Add(-1)
	r.poke()
	d.Done <- struct{}{}
}
