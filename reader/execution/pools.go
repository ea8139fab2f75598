package execution

import (
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/cache"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
)

// Pools keep memory of the readers of one plan for reuse, and limit their concurrent tasks. Safe for concurrent use.
type Pools struct {
	Batches *batch.Pool
	Tokens  chan struct{} // semaphore: a token for each running task

	columns   []memory.FreeList[ioplan.Decoded] // of each feature
	inverses  memory.FreeList[ioplan.Decoded]
	zeros     ioplan.ZeroInverse
	buffers   memory.BytePool
	tasks     memory.FreeList[ioplan.IOTask]
	stripes   memory.FreeList[ioplan.Stripe]
	scratches memory.FreeList[scratch]

	key   poolsKey
	reuse bool // Close keeps them for the next reader
}

// scratch is the memory with which one goroutine decodes.
type scratch struct {
	decoder *format.StripeDecoder
	group   format.Selection // the selected rows in the group of an item
	merge   merge
}

// NewPools returns pools for readers of src that together have the memory, batches and workers of opts. With
// Options.Reuse it returns the pools of a closed reader if they fit.
func NewPools(src *Source, opts *Options) *Pools {
	key := poolsKey{
		batches: opts.Batches, workers: opts.Workers, memory: opts.MemoryBudget, limits: opts.Limits,
		columns: len(src.Features),
	}
	reuse := opts.Reuse && isComparable(opts.Batches.Allocator)
	if reuse {
		p := reused.take(&key, src.Plan)
		cache.CountMemory(p != nil)
		if p != nil {
			return p
		}
	}
	p := &Pools{
		Batches: batch.NewPool(src.Plan, key.batches),
		Tokens:  make(chan struct{}, opts.Workers),
		columns: make([]memory.FreeList[ioplan.Decoded], len(src.Features)),
		buffers: memory.BytePool{Max: opts.MemoryBudget / 2},
		key:     key,
		reuse:   reuse,
	}
	p.stripes.New = func() *ioplan.Stripe {
		return &ioplan.Stripe{Columns: make([]*ioplan.Decoded, len(p.columns)), Ready: make(chan struct{}, 1)}
	}
	p.scratches.New = func() *scratch { return &scratch{decoder: format.NewStripeDecoder(key.limits)} }
	return p
}

// Close frees idle memory now and the rest when it is returned or, with reuse, keeps both for the next reader. The
// pools must not be used afterwards.
func (p *Pools) Close() {
	if p.reuse {
		reused.put(p)
	} else {
		p.Batches.Close()
	}
}

// column returns memory for a stripe of a feature.
func (p *Pools) column(feature int32) *ioplan.Decoded { return decoded(&p.columns[feature]) }

// inverse returns memory for an inverse.
func (p *Pools) inverse() *ioplan.Decoded { return decoded(&p.inverses) }

func decoded(l *memory.FreeList[ioplan.Decoded]) *ioplan.Decoded {
	d := l.Get()
	d.Absent = false
	return d
}
