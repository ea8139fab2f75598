package reader

import (
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/cache"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/reader/memory"
)

// pools keep the memory of scanners of one plan for its next use, and bound their work. Safe for concurrent use.
type pools struct {
	stock    *batch.Stock
	columns  []freeList[load.Decoded] // of each feature
	inverses freeList[load.Decoded]
	zeros    load.ZeroInverse
	buffers  memory.BytePool
	tasks    chan struct{} // holds a token for each task that a worker is at
	key      poolsKey
	reuse    bool // they are parked in the end

	units    freeList[load.IOTask]
	stripes  freeList[load.Stripe]
	decoders freeList[format.StripeDecoder]
}

// newPools returns pools for scanners that have the options' memory, batches and workers in sum: parked ones, where they fit.
func (l *Layout) newPools(opts *Options) *pools {
	key := poolsKey{
		batches: batch.Options{
			Allocator: opts.Allocator, Presence: opts.Presence, Round: opts.RoundIntegers, Info: opts.Info,
			Sessions: opts.Info && l.sessionKey >= 0, Batches: opts.MaxBatches, Keep: opts.KeepBatches,
		},
		workers: opts.Workers, memory: opts.MemoryBudget, limits: opts.Limits, columns: len(l.features),
	}
	reuse := opts.Reuse && mayPark(opts.Allocator)
	if reuse {
		if p := parkingPlace.take(&key, l.plan); p != nil {
			cache.CountMemory(true)
			return p
		}
		cache.CountMemory(false)
	}
	return &pools{
		stock:   batch.NewStock(l.plan, key.batches),
		columns: make([]freeList[load.Decoded], len(l.features)),
		buffers: memory.BytePool{Max: opts.MemoryBudget / 2},
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
		p.stock.Close()
	}
}

// column returns memory for a stripe of a feature.
func (p *pools) column(feature int32) *load.Decoded { return newOr(&p.columns[feature]) }

// inverse returns memory for an inverse.
func (p *pools) inverse() *load.Decoded { return newOr(&p.inverses) }

func newOr(l *freeList[load.Decoded]) *load.Decoded {
	d := l.get()
	if d == nil {
		return new(load.Decoded)
	}
	d.Absent = false
	return d
}

// A freeList keeps idle values for their next use. Safe for concurrent use.
type freeList[T any] struct {
	mu   sync.Mutex
	idle []*T // guarded by mu
}

// get returns the value that was put last, nil where there is none.
func (l *freeList[T]) get() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := len(l.idle) - 1
	if k < 0 {
		return nil
	}
	v := l.idle[k]
	l.idle[k] = nil
	l.idle = l.idle[:k]
	return v
}

func (l *freeList[T]) put(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, v)
}
