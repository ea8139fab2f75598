package reader

import (
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/object"
)

// firstFetch is how many stored bytes the first I/O task of an epoch has where requests are slow, so that the first
// batch comes early. Each later task may have fetchGrowth times the bytes of all before it.
const (
	firstFetch  = 8 << 20
	fetchGrowth = 3
)

// A fetchPlan has the sizes of an epoch's I/O tasks. On a disk they are small: what is read is decoded while it is in
// the processor's caches. Where each request takes long and costs something, they grow, because a stripe of a feature
// is a fraction of a request: many stripes of it make one request, and fewer gaps between features are read.
type fetchPlan struct {
	sizes ioplan.FetchSizes
	read  int64 // bytes of the tasks so far
}

func (l *Layout) newFetchPlan(o *Options) fetchPlan {
	f := fetchPlan{sizes: o.sizes()}
	if object.HighLatency(l.blobs) {
		f.sizes.Apart, f.sizes.Share = true, l.fetchShare(o)
		f.sizes.Task = min(f.sizes.Share/2, 64<<20)
	}
	return f
}

// newBudgets returns the budgets of I/O tasks and of decoded stripes. Where fetches are apart each has its own, so that
// the next tasks are fetched while the stripes of one wait for memory.
func (l *Layout) newBudgets(o *Options) (fetched, decoded *memory.Budget) {
	if !l.newFetchPlan(o).sizes.Apart {
		one := memory.NewBudget(o.MemoryBudget)
		return one, one
	}
	share := l.fetchShare(o)
	return memory.NewBudget(share), memory.NewBudget(o.MemoryBudget - share)
}

// fetchShare returns the bytes of memory for I/O tasks, where fetches are apart: a half, or a quarter in a shuffle,
// whose buffers are many stripes in memory at once.
func (l *Layout) fetchShare(o *Options) int64 {
	if l.plan.Shuffle.Unit != plan.UnitNone {
		return o.MemoryBudget / 4
	}
	return o.MemoryBudget / 2
}

// next returns the sizes of the next I/O task.
func (f *fetchPlan) next() ioplan.FetchSizes {
	s := f.sizes
	if s.Apart {
		s.Task = min(s.Task, max(firstFetch, fetchGrowth*f.read))
	}
	return s
}

// planned says that u is the next one.
func (f *fetchPlan) planned(u *ioplan.IOTask) { f.read += int64(u.Stored) }
