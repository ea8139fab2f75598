package reader

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
)

// A Batch holds consecutive rows of the order of an epoch. The caller owns it from the Next that returned it until Release;
// after Release none of its slices may be read. It may cross goroutines, one at a time.
type Batch struct {
	// Index is the batch's place in the order of the plan, or of the split that is read.
	Index uint64
	// FirstRow is the place of the batch's first row in the order of the epoch, in which the rows of a batch follow each
	// other. Where the plan shuffles, those that come from one window of stripes are put in the order of the table.
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
	done   chan struct{} // holds one token once the batch is made
	err    error         // why it could not be
}

// A piece is the rows of one stripe that a batch takes.
type piece struct {
	stripe *stripe
	lo, hi int // of the stripe's rows
	at     int // row of the batch where they go
}

// Release gives the batch back to its Scanner. It must be called exactly once; a second call panics.
func (b *Batch) Release() {
	if !b.held.Swap(false) {
		panic(fmt.Sprintf("reader: batch %d is released twice", b.Index))
	}
	b.pool.put(b)
}

// make fills b from its pieces.
func (b *Batch) make(l *batchLayout) error {
	features := uint64(len(l.groupings.features))
	b.SlotRows = features * uint64(b.Rows)
	b.Slots = b.SlotRows
	if l.plan.Dedup != DedupKJT || l.info {
		b.maker.pick(b, l)
	}
	if l.info {
		b.fillInfo(l)
	}
	if l.plan.Dedup != DedupKJT {
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
	b.Tensors.fillMatrices(b, l)
	if l.plan.Dedup != DedupKJT {
		return b.maker.fillTensors(b.Tensors, b, l)
	}
	return b.Tensors.fillLists(b, l)
}

// batchLayout says what goes where in every batch of a scan. It is immutable.
type batchLayout struct {
	plan      *Plan
	allocator Allocator
	presence  bool
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

func newBatchLayout(p *Plan, opts *Options) *batchLayout {
	l := &batchLayout{plan: p, allocator: opts.Allocator, presence: opts.Presence, info: opts.Info}
	for i := range p.Features {
		f := &p.Features[i]
		to := &l.exact
		if p.Output == OutputTensors && !f.Role.IsKey() {
			switch t := f.Type; {
			case t.Kind == vector.Dense:
				to = &l.dense
				if isLabel(f.Role) {
					to = &l.labels
				}
			case isLabel(f.Role):
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
		pool: pool, done: make(chan struct{}, 1),
		Columns: make([]*vector.Column, len(l.plan.Features)), exact: make([]exactColumn, len(l.exact)),
	}
	for i, f := range l.exact {
		b.exact[i].feature = f
		if IsPartitionKey(l.plan.Features[f]) {
			b.exact[i].partitionKey = l.plan.Features[f].Name
		}
		b.exact[i].column.Type = l.plan.Features[f].Type
		b.Columns[f] = &b.exact[i].column
	}
	if l.plan.Output == OutputTensors {
		b.Tensors = newTensors(l)
	}
	return b
}

// free gives the batch's memory back to the allocator.
func (b *Batch) free(a Allocator) {
	for i := range b.exact {
		b.exact[i].free(a)
	}
	if b.Tensors != nil {
		b.Tensors.free(a)
	}
	b.maker.inverse.free(a)
}

func (b *Batch) poison() {
	for i := range b.exact {
		b.exact[i].poison()
	}
	if b.Tensors != nil {
		b.Tensors.poison()
	}
	b.maker.inverse.poison()
}

// A batchPool holds the batches of one Scanner: at most max, made when first needed. With keep, those that the caller has
// do not count. One goroutine gets, any put.
type batchPool struct {
	layout *batchLayout
	max    int
	keep   bool
	wake   chan struct{} // holds one token after a put

	mu     sync.Mutex
	made   int      // guarded by mu
	idle   []*Batch // guarded by mu
	closed bool     // guarded by mu: what is put is freed
}

func newBatchPool(l *batchLayout, n int, keep bool) *batchPool {
	return &batchPool{layout: l, max: n, keep: keep, wake: make(chan struct{}, 1)}
}

// give marks a batch as the caller's.
func (p *batchPool) give(b *Batch) {
	b.held.Store(true)
	if !p.keep {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b.kept = true
	p.made--
	p.poke()
}

// poke makes get look again.
func (p *batchPool) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// get waits for a batch that nobody holds. It returns nil when done closes first.
func (p *batchPool) get(done <-chan struct{}) *Batch {
	for {
		p.mu.Lock()
		if k := len(p.idle) - 1; k >= 0 {
			b := p.idle[k]
			p.idle = p.idle[:k]
			p.mu.Unlock()
			return b
		}
		if p.made < p.max {
			p.made++
			p.mu.Unlock()
			return p.layout.newBatch(p)
		}
		p.mu.Unlock()
		select {
		case <-p.wake:
		case <-done:
			return nil
		}
	}
}

// put takes back a batch that get returned.
func (p *batchPool) put(b *Batch) {
	if invariants {
		b.poison()
	}
	b.err = nil
	b.Rows = 0
	clear(b.pieces)
	b.pieces = b.pieces[:0]
	select {
	case <-b.done:
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || b.kept && p.made == p.max {
		b.free(p.layout.allocator)
		return
	}
	if b.kept {
		b.kept = false
		p.made++
	}
	p.idle = append(p.idle, b)
	p.poke()
}

// close frees the idle batches now and the others when they are put.
func (p *batchPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, b := range p.idle {
		b.free(p.layout.allocator)
	}
	p.idle = nil
}
