package batch

import (
	"slices"
	"sync"

	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
)

// A Draft lists the rows of a batch, from when they are cut until Next returns the batch. It gets a Batch, with memory,
// only when a worker assembles it. So batches that wait for a worker use no memory, and the memory released last is
// reused first.
type Draft struct {
	Index, FirstRow uint64
	Rows            int
	Pieces          []Piece
	Batch           *Batch        // nil until it is assembled
	Err             error         // of assembling it
	Done            chan struct{} // has one token when Batch or Err is set
}

// A Pool holds the batches of scanners that share their memory. Batches are allocated when first needed and reused.
type Pool struct {
	layout *batchLayout
	memory *memory.Counted // the layout's allocator
	max    int             // limit of made: batches that are put beyond it are freed
	keep   bool            // batches that the caller owns do not count

	mu     sync.Mutex // guards the fields below
	made   int        // batches that count
	idle   []*Batch
	drafts []*Draft // idle
	block  int      // bytes of the largest block so far
	closed bool     // batches that are put are freed
}

// KeptIdle is how many batches beyond Options.Batches are kept with Options.Keep when the caller releases them. It is
// the number that a caller usually owns, so that their memory is reused.
const KeptIdle = 2

// NewPool returns a pool of the batches of a plan.
func NewPool(p *plan.Plan, o Options) *Pool {
	l := newBatchLayout(p, &o)
	s := &Pool{layout: l, memory: &memory.Counted{Allocator: l.allocator}, max: o.Batches, keep: o.Keep}
	l.allocator = s.memory
	if s.keep {
		s.max += KeptIdle
	}
	return s
}

// Close frees the idle batches now, and the others when they are released.
func (s *Pool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, b := range s.idle {
		b.block.free(s.layout.allocator)
	}
	s.idle = nil
}

// Trim frees idle batches until all batches have at most so many bytes.
func (s *Pool) Trim(most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 0 && s.memory.InUse() > most {
		s.idle[0].block.free(s.layout.allocator)
		s.idle = slices.Delete(s.idle, 0, 1)
		s.made--
	}
}

// Plan returns the plan of the batches. Borrowed.
func (s *Pool) Plan() *plan.Plan { return s.layout.plan }

// BlockBytes returns the bytes of the largest block so far; 0: there was none.
func (s *Pool) BlockBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.block
}

// HasSessions reports whether the Info of batches counts sessions.
func (s *Pool) HasSessions() bool { return s.layout.sessions }

// Counts are the counts of a pool.
type Counts struct {
	Made, Idle, Max int
	Bytes           int64 // of all batches
	Closed          bool
}

// Counts returns the current counts.
func (s *Pool) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Made: s.made, Idle: len(s.idle), Max: s.max, Bytes: s.memory.InUse(), Closed: s.closed}
}

// A Quota limits how many batches of the pool one Scanner has. One goroutine at a time calls Draft and TryDraft; other
// methods are safe for concurrent use.
type Quota struct {
	pool  *Pool
	wake  chan struct{} // has one token after may was raised
	gated bool          // only Grant raises may
	bytes int64         // limits the batches ahead; 0: nothing does

	may   int // how many batches may be drafted now; guarded by pool.mu
	ahead int // how many are drafted, and not given; guarded by pool.mu
}

// minAhead is how many batches may be ahead whatever their size: one is made while another one waits.
const minAhead = 2

// NewQuota returns a quota that has at most n batches of the pool.
func NewQuota(s *Pool, n int) *Quota {
	return &Quota{pool: s, may: n, wake: make(chan struct{}, 1)}
}

// Limit bounds the batches that are drafted and not given by their bytes, as far as those of the largest batch so far
// say them. Until there is one, and whatever its size, minAhead batches may be ahead.
func (p *Quota) Limit(bytes int64) { p.bytes = bytes }

// Gate makes p need a Grant for each batch.
func (p *Quota) Gate() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.gated, p.may = true, 0
}

// Grant allows p one more batch.
func (p *Quota) Grant() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.raise()
}

// raise is Grant under pool.mu.
func (p *Quota) raise() {
	p.may++
	p.signal()
}

// signal makes Draft look again.
func (p *Quota) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Draft waits until the quota may have a batch. It returns nil when done closes first.
func (p *Quota) Draft(done <-chan struct{}) *Draft {
	for {
		if d := p.TryDraft(); d != nil {
			return d
		}
		select {
		case <-p.wake:
		case <-done:
			return nil
		}
	}
}

// TryDraft is Draft, but returns nil instead of waiting.
func (p *Quota) TryDraft() *Draft {
	s := p.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.may == 0 || p.bytes > 0 && !p.gated && p.ahead >= minAhead &&
		(s.block == 0 || int64(s.block)*int64(p.ahead+1) > p.bytes) {
		return nil
	}
	p.may--
	p.ahead++
	if k := len(s.drafts) - 1; k >= 0 {
		d := s.drafts[k]
		s.drafts = s.drafts[:k]
		return d
	}
	return &Draft{Done: make(chan struct{}, 1)}
}

// take returns an idle or new batch for a draft.
func (p *Quota) take() *Batch {
	s := p.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := len(s.idle) - 1; k >= 0 {
		b := s.idle[k]
		s.idle = s.idle[:k]
		b.quota = p
		return b
	}
	s.made++
	b := s.layout.newBatch(p)
	b.block.expects = s.block
	return b
}

// Make assembles the batch of a draft. It sets d.Batch and d.Err, and leaves d.Pieces.
func (p *Quota) Make(d *Draft) {
	b := p.take()
	b.Index, b.FirstRow, b.Rows = d.Index, d.FirstRow, d.Rows
	b.pieces = d.Pieces
	d.Err = b.make(p.pool.layout)
	b.pieces = nil
	d.Batch = b
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.pool.block = max(p.pool.block, b.block.used)
	p.signal()
}

// Give returns the batch of a draft, and makes the caller its owner.
func (p *Quota) Give(d *Draft) *Batch {
	b := d.Batch
	b.held.Store(true)
	s := p.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepDraft(d)
	p.ahead--
	p.signal()
	if s.keep {
		b.kept = true
		s.made--
		if !p.gated {
			p.raise()
		}
	}
	return b
}

// keepDraft keeps a draft for reuse; mu is held.
func (s *Pool) keepDraft(d *Draft) {
	clear(d.Pieces)
	d.Pieces, d.Batch, d.Err, d.Rows = d.Pieces[:0], nil, nil, 0
	select {
	case <-d.Done:
	default:
	}
	s.drafts = append(s.drafts, d)
}

// Drop frees a draft that is not needed any more, and its batch.
func (p *Quota) Drop(d *Draft) {
	b := d.Batch
	s := p.pool
	s.mu.Lock()
	s.keepDraft(d)
	p.ahead--
	p.signal()
	if b == nil && !p.gated {
		p.raise()
	}
	s.mu.Unlock()
	if b != nil {
		p.put(b)
	}
}

// put returns a batch that take returned to the pool.
func (p *Quota) put(b *Batch) {
	if memory.Invariants {
		b.block.poison()
	}
	b.Rows = 0
	s := p.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := b.kept
	if !kept && !p.gated {
		p.raise()
	}
	switch {
	case s.closed || kept && s.made >= s.max:
		b.block.free(s.layout.allocator)
		return
	case kept:
		s.made++
	}
	b.kept = false
	s.idle = append(s.idle, b)
}
