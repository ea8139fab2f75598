package execution

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
)

// The pools of the last MaxClosedPools closed readers are kept for reuseWithin, each with at most these eighths of
// Options.MemoryBudget.
const (
	reuseWithin    = time.Minute
	MaxClosedPools = 2

	reusedBatches = 3
	reusedColumns = 3 // decoded
	reusedBuffers = 2 // of stored ranges
)

// closedPools are the pools of closed readers with Options.Reuse, for the next reader of the same features and options.
// New memory costs page faults and is cleared twice, by the system and by the runtime. This takes a third of the time
// of an epoch of a small table. Safe for concurrent use.
type closedPools struct {
	keep time.Duration

	mu  sync.Mutex
	all []*closedPool // in the order of closing; guarded by mu
}

type closedPool struct {
	pools *Pools
	timer *time.Timer
}

// reused are the closed pools of the process.
var reused = closedPools{keep: reuseWithin}

// poolsKey is the options that pools depend on.
type poolsKey struct {
	batches batch.Options
	workers int
	memory  int64
	limits  format.Limits
	columns int // features that are read
}

// fits reports whether p can be used for a plan: it has the same features, transforms and batch options. The rows and
// the snapshot of the plan do not matter.
func (p *Pools) fits(key *poolsKey, plan *plan.Plan) bool {
	a := p.Batches.Plan()
	return p.key == *key && slices.Equal(a.Features, plan.Features) && reflect.DeepEqual(form(a), form(plan))
}

// form returns p without Features and without the fields that select rows. A new field of Plan counts unless it is
// cleared here.
func form(p *plan.Plan) plan.Plan {
	f := *p
	f.Features, f.Table, f.Snapshot, f.Partition, f.Filter, f.Downsample, f.SampleList = nil, "", 0, "", "", "", ""
	f.Branch, f.Overlays, f.BranchList = "", nil, catalog.Pin{}
	return f
}

// take returns pools that fit, or nil.
func (x *closedPools) take(key *poolsKey, plan *plan.Plan) *Pools {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, c := range slices.Backward(x.all) { // the last closed one is most likely to be in the CPU caches
		if c.pools.fits(key, plan) {
			x.all = slices.Delete(x.all, i, i+1)
			c.timer.Stop()
			return c.pools
		}
	}
	return nil
}

// put keeps the pools of a closed reader. Batches that the caller still holds are released to them.
func (x *closedPools) put(p *Pools) {
	eighth := p.key.memory / 8
	p.Trim(reusedBatches*eighth, reusedColumns*eighth, reusedBuffers*eighth)
	c := &closedPool{pools: p}
	x.mu.Lock()
	defer x.mu.Unlock()
	c.timer = time.AfterFunc(x.keep, func() { x.drop(c) })
	x.all = append(x.all, c)
	if len(x.all) > MaxClosedPools {
		old := x.all[0]
		x.all = slices.Delete(x.all, 0, 1)
		old.timer.Stop()
		old.pools.Batches.Close()
	}
}

// ReleaseReused frees the pools of closed readers.
func ReleaseReused() { reused.clear() }

// ClosedPools returns the pools of closed readers, in the order of closing.
func ClosedPools() []*Pools {
	reused.mu.Lock()
	defer reused.mu.Unlock()
	var out []*Pools
	for _, c := range reused.all {
		out = append(out, c.pools)
	}
	return out
}

func (x *closedPools) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.all {
		c.timer.Stop()
		c.pools.Batches.Close()
	}
	x.all = nil
}

// drop frees pools when their time is over, unless they were taken.
func (x *closedPools) drop(c *closedPool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.all, c); i >= 0 {
		x.all = slices.Delete(x.all, i, i+1)
		c.pools.Batches.Close()
	}
}

// Trim frees idle memory until about so many bytes of batches, decoded columns and buffers are left. It also removes
// references to the segments that were read. The pools must not be used meanwhile.
func (p *Pools) Trim(batches, columns, buffers int64) {
	for _, x := range p.scratches.Idle() {
		x.decoder.Use(nil)
	}
	p.Batches.Trim(batches)
	p.trimColumns(columns)
	p.buffers.Trim(buffers)
}

// Held is the idle memory of pools, beside that of batches.
type Held struct {
	Columns                  int // decoded
	ColumnBytes, BufferBytes int64
}

// Held returns the idle memory. The pools must not be used meanwhile.
func (p *Pools) Held() Held {
	h := Held{BufferBytes: p.buffers.Held()}
	for i := range p.columns {
		for _, d := range p.columns[i].Idle() {
			h.Columns++
			h.ColumnBytes += d.Bytes()
		}
	}
	return h
}

// trimColumns frees idle columns until the others have about so many bytes, starting with the features that have most
// columns.
func (p *Pools) trimColumns(most int64) {
	all := []*memory.FreeList[ioplan.Decoded]{&p.inverses}
	for i := range p.columns {
		all = append(all, &p.columns[i])
	}
	deepest, bytes := 0, int64(0)
	for _, c := range all {
		deepest = max(deepest, len(c.Idle()))
		for _, d := range c.Idle() {
			bytes += d.Bytes()
		}
	}
	for ; deepest > 0 && bytes > most; deepest-- {
		for _, c := range all {
			if idle := c.Idle(); len(idle) == deepest && bytes > most {
				bytes -= idle[deepest-1].Bytes()
				c.Truncate(deepest - 1)
			}
		}
	}
}

// isComparable reports whether allocators of a's type can be compared by ==.
func isComparable(a memory.Allocator) bool { return reflect.TypeOf(a).Comparable() }
