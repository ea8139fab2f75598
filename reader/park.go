package reader

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
)

// What a parking place keeps, and how long: the pools closed last, and of each at the most these eighths of Options.MemoryBudget.
const (
	parkedFor     = time.Minute
	parkedPools   = 2
	parkedBatches = 3
	parkedColumns = 3 // decoded
	parkedBuffers = 2 // of stored ranges
)

// A parking holds the pools of closed scanners with Options.Reuse for a while: the next scanner of the same features and options
// goes on with their memory, where a fresh one would ask the system for pages, which clears them, and the runtime to clear them
// once more. That is a third of the time that an epoch of a small table takes. Safe for concurrent use.
type parking struct {
	keep time.Duration

	mu     sync.Mutex
	parked []*parkedPool // in the order of closing; guarded by mu
}

type parkedPool struct {
	pools *pools
	timer *time.Timer
}

// parkingPlace is the process's.
var parkingPlace = parking{keep: parkedFor}

// poolsKey is the options that pools depend on.
type poolsKey struct {
	batches batch.Options
	workers int
	memory  int64
	limits  format.Limits
	columns int // features that are read
}

// fits reports whether what p holds serves a plan: it has the same features, transformed alike, in batches of the same form. Which rows of which
// snapshot it reads does not matter.
func (p *pools) fits(key *poolsKey, plan *plan.Plan) bool {
	a := p.stock.Plan()
	return p.key == *key && slices.Equal(a.Features, plan.Features) && reflect.DeepEqual(form(a), form(plan))
}

// form returns p without its Features and without what says which rows it reads: a field that is not named here counts.
func form(p *plan.Plan) plan.Plan {
	f := *p
	f.Features, f.Table, f.Snapshot, f.Partition, f.Filter, f.Downsample, f.SampleList = nil, "", 0, "", "", "", ""
	f.Branch, f.Overlays, f.BranchList = "", nil, storage.Pin{}
	return f
}

// take returns pools that fit, or nil.
func (x *parking) take(key *poolsKey, plan *plan.Plan) *pools {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, c := range slices.Backward(x.parked) { // what was closed last is likeliest to be in the caches
		if c.pools.fits(key, plan) {
			x.parked = slices.Delete(x.parked, i, i+1)
			c.timer.Stop()
			return c.pools
		}
	}
	return nil
}

// leave keeps the pools of a closed scanner. Batches that the caller still has come back to them.
func (x *parking) leave(p *pools) {
	p.trim()
	c := &parkedPool{pools: p}
	x.mu.Lock()
	defer x.mu.Unlock()
	c.timer = time.AfterFunc(x.keep, func() { x.drop(c) })
	x.parked = append(x.parked, c)
	if len(x.parked) > parkedPools {
		old := x.parked[0]
		x.parked = slices.Delete(x.parked, 0, 1)
		old.timer.Stop()
		old.pools.stock.Close()
	}
}

// ReleaseReused frees what closed scanners with Options.Reuse left, without waiting for its minute to pass, and gives back their leases.
func ReleaseReused() {
	parkingPlace.clear()
	lease.ReleaseKept()
}

func (x *parking) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.parked {
		c.timer.Stop()
		c.pools.stock.Close()
	}
	x.parked = nil
}

// drop gives up pools whose time is over, unless they were taken.
func (x *parking) drop(c *parkedPool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.parked, c); i >= 0 {
		x.parked = slices.Delete(x.parked, i, i+1)
		c.pools.stock.Close()
	}
}

// trim gives up what is too much to keep, and what refers to the segments that were read.
func (p *pools) trim() {
	for _, d := range p.decoders.idle { // no scanner uses the pools
		d.Use(nil)
	}
	eighth := p.key.memory / 8
	p.stock.Trim(parkedBatches * eighth)
	p.trimColumns(parkedColumns * eighth)
	p.buffers.Trim(parkedBuffers * eighth)
}

// trimColumns drops idle columns, of the features that have most of them first, until the others have about so many bytes at most.
func (p *pools) trimColumns(most int64) {
	all := append([]*freeList[load.Decoded]{&p.inverses}, make([]*freeList[load.Decoded], len(p.columns))...)
	deepest := len(p.inverses.idle)
	var bytes int64
	for i := range p.columns {
		all[i+1] = &p.columns[i]
		deepest = max(deepest, len(p.columns[i].idle))
	}
	for _, c := range all {
		for _, d := range c.idle {
			bytes += d.Bytes()
		}
	}
	for ; deepest > 0 && bytes > most; deepest-- {
		for _, c := range all {
			if len(c.idle) == deepest && bytes > most {
				bytes -= c.idle[deepest-1].Bytes()
				c.idle = slices.Delete(c.idle, deepest-1, deepest)
			}
		}
	}
}

// mayPark reports whether allocators of a's type can be told apart.
func mayPark(a memory.Allocator) bool { return reflect.TypeOf(a).Comparable() }
