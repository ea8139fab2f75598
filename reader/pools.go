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

	mu       sync.Mutex
	units    []*unit                 // idle; guarded by mu
	stripes  []*stripe               // idle; guarded by mu
	decoders []*format.StripeDecoder // idle; guarded by mu
}

// newPools returns pools for scanners that have the options' memory, batches and workers in sum.
func (l *Layout) newPools(opts *Options) *pools {
	layout := newBatchLayout(l.plan, opts)
	layout.sessions = opts.Info && l.sessionKey >= 0
	return &pools{
		stock:   newBatchStock(layout, opts),
		columns: make([]columnPool, len(l.features)),
		buffers: bytePool{max: opts.MemoryBudget / 2},
		tasks:   make(chan struct{}, opts.Workers),
	}
}
