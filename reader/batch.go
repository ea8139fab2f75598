package reader

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
)

// A Batch holds consecutive rows of the order of an epoch. The caller owns it from the Next that returned it until Release;
// after Release none of its slices may be read. It may cross goroutines, one at a time.
type Batch struct {
	// Index is the batch's place in the order of the plan, or of the split that is read.
	Index uint64
	// FirstRow is the place of the batch's first row in the order of the epoch, in which the rows of a batch follow each
	// other. Where the plan shuffles, those that come from one shuffle buffer are put in the order of the table.
	FirstRow uint64
	Rows     int
	// Columns has an entry a feature of the plan: columns of the plan's types. With OutputTensors, entries are nil for the
	// features that Tensors holds, and the others are plain. With OutputColumns they are plain where the plan's Dedup is
	// DedupKJT; else those that have an inverse in a stripe of the batch hold the slots that the batch uses, and features
	// that share an inverse in each of those stripes have one Inverse here; with DedupWindowed lists may be windows. The
	// caller must not write to them.
	Columns []*vector.Column
	// Tensors is nil unless the plan's Output is OutputTensors.
	Tensors *Tensors
	// SlotRows are the rows of the features that may share slots, added up, and Slots the slots that they have here: all
	// features but partition keys with OutputColumns, the lists of Tensors with OutputTensors.
	SlotRows, Slots uint64
	// Info is empty without Options.Info.
	Info Info

	pool  *batchPool
	held  atomic.Bool // by the caller
	kept  bool        // it does not count among those that the pool made
	exact []exactColumn
	// pieces are next to each other for a stripe, ascend in its rows and do not touch.
	pieces []piece
	maker  groupMaker
	memory []memory.AnyBuffer // all that the allocator gives memory to
}

// A piece is the rows of one stripe that a batch takes.
type piece struct {
	stripe *load.Stripe
	lo, hi int // of the stripe's rows
	at     int // row of the batch where they go
}

// Release gives the batch back to its Scanner. It must be called exactly once; a second call panics.
func (b *Batch) Release() {
	if !b.held.Swap(false) {
		panic("reader: a batch is released twice") // which one is not known: it may be in the making again
	}
	b.pool.put(b)
}

// make fills b from its pieces.
func (b *Batch) make(l *batchLayout) error {
	features := uint64(len(l.groupings.features))
	b.SlotRows = features * uint64(b.Rows)
	b.Slots = b.SlotRows
	if l.plan.Dedup != plan.DedupKJT || l.info {
		b.maker.pick(b, l)
	}
	if l.info {
		b.fillInfo(l)
	}
	if l.plan.Dedup != plan.DedupKJT {
		b.Slots = b.maker.slots(b)
		if b.Tensors == nil {
			return b.maker.fillColumns(b, l)
		}
	}
	for i := range b.exact {
		if err := b.exact[i].fill(b, l); err != nil {
			return err
		}
	}
	if b.Tensors == nil {
		return nil
	}
	if err := b.Tensors.fillMatrices(b, l); err != nil {
		return err
	}
	return b.maker.fillTensors(b.Tensors, b, l)
}

// batchLayout says what goes where in every batch of a scan. It is immutable.
type batchLayout struct {
	plan      *plan.Plan
	allocator memory.Allocator
	presence  bool
	round     bool // integers that float32 does not hold
	info      bool // batches have an Info
	sessions  bool // and it counts sessions

	exact      []int32 // places of the features that become exact columns
	dense      []int32
	labels     []int32
	embeddings []int32
	sparse     []int32
	weighted   []int32
	floats     []int32

	exactOf   []int32 // by place in the plan, the place in exact
	groupings *groupings
}

func newBatchLayout(p *plan.Plan, opts *Options) *batchLayout {
	l := &batchLayout{plan: p, allocator: opts.Allocator, presence: opts.Presence, round: opts.RoundIntegers, info: opts.Info}
	for i := range p.Features {
		f := &p.Features[i]
		to := &l.exact
		if p.Output == plan.OutputTensors && !f.Role.IsKey() && !p.IsExact(i) {
			switch t := f.Type; {
			case t.Kind == vector.Dense:
				to = &l.dense
				if plan.IsLabel(f.Role) {
					to = &l.labels
				}
			case plan.IsLabel(f.Role):
			case t.Kind == vector.Embedding:
				to = &l.embeddings
			case t.Kind == vector.Weighted:
				to = &l.weighted
			case t.Kind == vector.Sparse && t.Elem.IsInteger():
				to = &l.sparse
			case t.Kind == vector.Sparse:
				to = &l.floats
			}
		}
		*to = append(*to, int32(i))
	}
	for _, places := range []*[]int32{&l.sparse, &l.weighted, &l.floats} {
		*places = p.ExpandedLast(*places)
	}
	l.exactOf = make([]int32, len(p.Features))
	for i, f := range l.exact {
		l.exactOf[f] = int32(i)
	}
	l.groupings = newGroupings(l)
	return l
}

// newBatch returns an empty batch with a place for everything.
func (l *batchLayout) newBatch(pool *batchPool) *Batch {
	b := &Batch{
		pool:    pool,
		Columns: make([]*vector.Column, len(l.plan.Features)), exact: make([]exactColumn, len(l.exact)),
	}
	for i, f := range l.exact {
		b.exact[i].feature = f
		if plan.IsPartitionKey(l.plan.Features[f]) {
			b.exact[i].partitionKey = l.plan.Features[f].Name
		}
		b.exact[i].alone = plan.IsPartitionKey(l.plan.Features[f]) || plan.IsWeight(l.plan.Features[f])
		b.exact[i].column.Type = l.plan.Features[f].Type
		b.Columns[f] = &b.exact[i].column
	}
	if l.plan.Output == plan.OutputTensors {
		b.Tensors = newTensors(l)
	}
	b.memory = b.buffers()
	return b
}

// buffers returns what the allocator gives memory to.
func (b *Batch) buffers() []memory.AnyBuffer {
	all := []memory.AnyBuffer{&b.maker.inverse}
	for i := range b.exact {
		all = append(all, b.exact[i].buffers()...)
	}
	if b.Tensors != nil {
		all = append(all, b.Tensors.buffers()...)
	}
	return all
}

// free gives the batch's memory back to the allocator.
func (b *Batch) free(a memory.Allocator) {
	for _, x := range b.memory {
		x.Free(a)
	}
}

func (b *Batch) poison() {
	for _, x := range b.memory {
		x.Poison()
	}
}

// A draft says what a batch takes, from when it is cut until Next gives it. It has no memory of a batch before a worker makes
// it: batches that wait for their turn share that of those which come and go, what was released last being used first.
type draft struct {
	index, firstRow uint64
	rows            int
	pieces          []piece
	batch           *Batch        // nil until it is made
	err             error         // why it could not be
	done            chan struct{} // holds one token once batch or err is set
}

// A batchStock holds the batches of scanners that share their memory: made when first needed, and kept for the next use.
type batchStock struct {
	layout *batchLayout
	memory *memory.Counted // the layout's
	max    int             // of made: what comes back beyond it is freed
	keep   bool            // batches that the caller has do not count

	mu     sync.Mutex
	made   int      // guarded by mu
	idle   []*Batch // guarded by mu
	drafts []*draft // idle; guarded by mu
	closed bool     // guarded by mu: what is put is freed
}

// keptIdle is how many batches that the caller kept are taken back beyond those that may be made: as many as one usually holds,
// so that their memory is used again when others were made meanwhile.
const keptIdle = 2

func newBatchStock(l *batchLayout, opts *Options) *batchStock {
	s := &batchStock{layout: l, memory: &memory.Counted{Allocator: l.allocator}, max: opts.MaxBatches, keep: opts.KeepBatches}
	l.allocator = s.memory
	if s.keep {
		s.max += keptIdle
	}
	return s
}

// close frees the idle batches now and the others when they are put.
func (s *batchStock) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, b := range s.idle {
		b.free(s.layout.allocator)
	}
	s.idle = nil
}

// A batchPool says how many batches of the stock one Scanner has. One goroutine drafts, any take and put.
type batchPool struct {
	stock *batchStock
	wake  chan struct{} // holds one token after may was raised
	gated bool          // may is raised by grant alone

	may int // batches may yet be drafted; guarded by stock.mu
}

func newBatchPool(s *batchStock, n int) *batchPool {
	return &batchPool{stock: s, may: n, wake: make(chan struct{}, 1)}
}

// gate makes p wait for a grant before each batch.
func (p *batchPool) gate() {
	p.stock.mu.Lock()
	defer p.stock.mu.Unlock()
	p.gated, p.may = true, 0
}

// grant lets p have one batch more.
func (p *batchPool) grant() {
	p.stock.mu.Lock()
	defer p.stock.mu.Unlock()
	p.raise()
}

// raise is grant under stock.mu.
func (p *batchPool) raise() {
	p.may++
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// draft waits until the pool may have a batch. It returns nil when done closes first.
func (p *batchPool) draft(done <-chan struct{}) *draft {
	for {
		if d := p.tryDraft(); d != nil {
			return d
		}
		select {
		case <-p.wake:
		case <-done:
			return nil
		}
	}
}

func (p *batchPool) tryDraft() *draft {
	s := p.stock
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
	return &draft{done: make(chan struct{}, 1)}
}

// take returns the batch that a draft becomes.
func (p *batchPool) take() *Batch {
	s := p.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := len(s.idle) - 1; k >= 0 {
		b := s.idle[k]
		s.idle = s.idle[:k]
		b.pool = p
		return b
	}
	s.made++
	return s.layout.newBatch(p)
}

// give marks the batch of a draft as the caller's, and returns it.
func (p *batchPool) give(d *draft) *Batch {
	b := d.batch
	b.held.Store(true)
	s := p.stock
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
func (s *batchStock) keepDraft(d *draft) {
	clear(d.pieces)
	d.pieces, d.batch, d.err, d.rows = d.pieces[:0], nil, nil, 0
	select {
	case <-d.done:
	default:
	}
	s.drafts = append(s.drafts, d)
}

// drop takes back a draft that nobody will ask for, and what was made of it.
func (p *batchPool) drop(d *draft) {
	b := d.batch
	s := p.stock
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
func (p *batchPool) put(b *Batch) {
	if memory.Invariants {
		b.poison()
	}
	b.Rows = 0
	clear(b.pieces)
	b.pieces = b.pieces[:0]
	s := p.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := b.kept
	if !kept && !p.gated {
		p.raise()
	}
	switch {
	case s.closed || kept && s.made >= s.max:
		b.free(s.layout.allocator)
		return
	case kept:
		s.made++
	}
	b.kept = false
	s.idle = append(s.idle, b)
}
