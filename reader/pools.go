package reader

import (
	"sync"

	"github.com/dsistore/dsistore/format"
)

// pools keep the memory of scanners of one plan for its next use, and bound their work. Safe for concurrent use.
type pools struct {
	stock    *batchStock
	columns  []columnPool
	inverses columnPool
	zeros    zeroInverse
	buffers  bytePool
	tasks    chan struct{} // holds a token for each task that a worker is at
	key      poolsKey
	reuse    bool // they are parked in the end

	mu       sync.Mutex
	units    []*unit                 // idle; guarded by mu
	stripes  []*stripe               // idle; guarded by mu
	decoders []*format.StripeDecoder // idle; guarded by mu
}

// newPools returns pools for scanners that have the options' memory, batches and workers in sum: parked ones, where they fit.
func (l *Layout) newPools(opts *Options) *pools {
	key := poolsKey{
		allocator: opts.Allocator, presence: opts.Presence, info: opts.Info, keep: opts.KeepBatches, round: opts.RoundIntegers, workers: opts.Workers,
		batches: opts.MaxBatches, memory: opts.MemoryBudget, limits: opts.Limits, columns: len(l.features),
		sessions: opts.Info && l.sessionKey >= 0,
	}
	reuse := opts.Reuse && mayPark(opts.Allocator)
	if reuse {
		if p := parkingPlace.take(&key, l.plan); p != nil {
			reused.memoryHits.Add(1)
			return p
		}
		reused.memoryMisses.Add(1)
	}
	layout := newBatchLayout(l.plan, opts)
	layout.sessions = key.sessions
	return &pools{
		stock:   newBatchStock(layout, opts),
		columns: make([]columnPool, len(l.features)),
		buffers: bytePool{max: opts.MemoryBudget / 2},
		tasks:   make(chan struct{}, opts.Workers),
		key:     key,
		reuse:   reuse,
	}
}

// close frees what is idle now and the rest when it comes back, or parks it. No scanner uses the pools any more.
func (p *pools) close() {
	if p.reuse {
		parkingPlace.leave(p)
	} else {
		p.stock.close()
	}
}
