package batch

import (
	"slices"
	"sync"

	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
)

// A Draft says what a batch takes, from when it is cut until Next gives it. It has no memory of a batch before a worker
// makes it: batches that wait for their turn share that of those which come and go, what was released last being used
// first.
type Draft struct {
	Index, FirstRow uint64
	Rows            int
	Pieces          []Piece
	Batch           *Batch        // nil until it is made
	Err             error         // why it could not be
	Done            chan struct{} // holds one token once batch or err is set
}

// A Pool holds the batches of scanners that share their memory: made when first needed, and kept for the next use.
type Pool struct {
	layout *batchLayout
	memory *memory.Counted // the layout's
	max    int             // of made: what comes back beyond it is freed
	keep   bool            // batches that the caller has do not count

	mu     sync.Mutex
	made   int      // guarded by mu
	idle   []*Batch // guarded by mu
	drafts []*Draft // idle; guarded by mu
	block  int      // bytes of the largest block so far; guarded by mu
	closed bool     // guarded by mu: what is put is freed
}

// KeptIdle is how many batches that the caller kept are taken back beyond those that may be made: as many as one
// usually holds, so that their memory is used again when others were made meanwhile.
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

// Close frees the idle batches now and the others when they are put.
func (s *Pool) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, b := range s.idle {
		b.block.free(s.layout.allocator)
	}
	s.idle = nil
}

// Trim frees idle batches, the first of them first, until all have at most so many bytes.
func (s *Pool) Trim(most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.idle) > 0 && s.memory.InUse() > most {
		s.idle[0].block.free(s.layout.allocator)
		s.idle = slices.Delete(s.idle, 0, 1)
		s.made--
	}
}

// Plan returns the plan whose batches these are. Borrowed.
func (s *Pool) Plan() *plan.Plan { return s.layout.plan }

// BlockBytes returns the bytes of the largest block that was made; 0: none was.
func (s *Pool) BlockBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.block
}

// HasSessions reports whether the Info of batches counts sessions.
func (s *Pool) HasSessions() bool { return s.layout.sessions }

// Counts say what a pool holds.
type Counts struct {
	Made, Idle, Max int
	Bytes           int64 // of all that are made
	Closed          bool
}

// Counts returns what the pool holds now.
func (s *Pool) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Counts{Made: s.made, Idle: len(s.idle), Max: s.max, Bytes: s.memory.InUse(), Closed: s.closed}
}

// A Quota says how many batches of the pool one Scanner has. One goroutine drafts, any take and put.
type Quota struct {
	pool  *Pool
	wake  chan struct{} // holds one token after may was raised
	gated bool          // may is raised by Grant alone

	may int // batches may yet be drafted; guarded by pool.mu
}

// NewQuota returns a quota that has at most n batches of the pool.
func NewQuota(s *Pool, n int) *Quota {
	return &Quota{pool: s, may: n, wake: make(chan struct{}, 1)}
}

// Gate makes p wait for a grant before each batch.
func (p *Quota) Gate() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.gated, p.may = true, 0
}

// Grant lets p have one batch more.
func (p *Quota) Grant() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	p.raise()
}

// raise is Grant under pool.mu.
func (p *Quota) raise() {
	p.may++
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

// TryDraft is Draft, but returns nil where the quota would wait.
func (p *Quota) TryDraft() *Draft {
	s := p.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.may == 0 {
		return nil
	}
	p.may--
	if k := len(s.drafts) - 1; k >= 0 {
		d := s.drafts[k]
		s.drafts = s.drafts[:k]
		return d
	}
	return &Draft{Done: make(chan struct{}, 1)}
}

// take returns the batch that a draft becomes.
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

// Make makes the batch of a draft, whose pieces stay; d.err says why it could not be.
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
}

// Give marks the batch of a draft as the caller's, and returns it.
func (p *Quota) Give(d *Draft) *Batch {
	b := d.Batch
	b.held.Store(true)
	s := p.pool
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepDraft(d)
	if s.keep {
		b.kept = true
		s.made--
		if !p.gated {
			p.raise()
		}
	}
	return b
}

// keepDraft keeps a draft for its next use; mu is held.
func (s *Pool) keepDraft(d *Draft) {
	clear(d.Pieces)
	d.Pieces, d.Batch, d.Err, d.Rows = d.Pieces[:0], nil, nil, 0
	select {
	case <-d.Done:
	default:
	}
	s.drafts = append(s.drafts, d)
}

// Drop takes back a draft that nobody will ask for, and what was made of it.
func (p *Quota) Drop(d *Draft) {
	b := d.Batch
	s := p.pool
	s.mu.Lock()
	s.keepDraft(d)
	if b == nil && !p.gated {
		p.raise()
	}
	s.mu.Unlock()
	if b != nil {
		p.put(b)
	}
}

// put takes back a batch that take returned.
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
