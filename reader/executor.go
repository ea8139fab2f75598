package reader

import (
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/reader/memory"
)

// An executor fetches and decodes stripes of a layout, into memory that it uses again. It is the one core of all that reads:
//
//	Scanner    whole stripes, or the selected rows of stripes, as a pipeline (run.go); the only batch of a small read (inline)
//	Taker      rows of stripes, or whole stripes to be kept
//	filter     whole stripes of the filter's features
//
//	unit ──load──> bytes and dictionaries ──decodeStripes──> stripes
//
// A run does both steps request by request and task by task, on goroutines of its own. An executor is safe for concurrent use.
type executor struct {
	*pools
	layout   *Layout
	opts     Options
	sessions bool // stripes are asked for their sessions
	budget   *memory.Budget
	stats    *counters
	reads    chan struct{} // holds a token for each object that load is reading
}

// newExecutor returns an executor of l, which has pools of its own where p is nil.
func (l *Layout) newExecutor(opts *Options, p *pools, stats *counters) executor {
	return executor{pools: p, layout: l, opts: *opts, budget: memory.NewBudget(opts.MemoryBudget), stats: stats, reads: make(chan struct{}, opts.Requests)}
}

// stripe returns stripe i of u, whose columns are to have all stored rows; of a nil unit one that stands for an error.
func (x *executor) stripe(u *load.IOTask, i int) *load.Stripe {
	s := x.stripes.get()
	if s == nil {
		s = &load.Stripe{Columns: make([]*load.Decoded, len(x.columns)), Ready: make(chan struct{}, 1)}
	}
	s.Users.Store(1)
	s.Picked, s.Sparse, s.Gathered = nil, false, false
	if u == nil {
		s.Rows = 0
		return s
	}
	g := u.Segment
	s.Task, s.Segment, s.Index, s.FirstRow, s.Stored = u, g, i, g.Starts[i], g.StoredRows(i)
	s.Rows = s.Stored
	return s
}

// releaseStripe is called by each user of a stripe when it is done with it; the last one takes the stripe back.
func (x *executor) releaseStripe(s *load.Stripe) {
	if s.Users.Add(-1) > 0 {
		return
	}
	for i, c := range s.Columns {
		if c != nil {
			x.columns[i].put(c)
			s.Columns[i] = nil
		}
	}
	for i, c := range s.Inverses {
		x.inverses.put(c)
		s.Inverses[i] = nil
	}
	s.Inverses = s.Inverses[:0]
	x.budget.Give(s.Taken)
	s.Taken, s.Task, s.Segment, s.Buffer, s.Err = 0, nil, nil, nil, nil
	x.stripes.put(s)
}

// planUnit returns a unit under way of stripes of g from one on, as many before limit as fit.
func (x *executor) planUnit(g *load.Segment, from, limit int) *load.IOTask {
	u := x.units.get()
	if u == nil {
		u = new(load.IOTask)
	}
	u.Plan(g, from, limit, x.opts.sizes())
	g.Dictionaries.Enter()
	return u
}

// putUnit takes back a unit whose bytes nobody needs any more.
func (x *executor) putUnit(u *load.IOTask) {
	for i := range u.Ranges {
		if u.Ranges[i].Bytes != nil {
			x.buffers.Put(u.Ranges[i].Bytes)
			u.Ranges[i].Bytes = nil
		}
	}
	x.budget.Give(u.Taken)
	u.Segment.Dictionaries.Leave(x.budget)
	u.Segment, u.Taken = nil, 0
	clear(u.Stripes)
	x.units.put(u)
}

func (x *executor) decoder() *format.StripeDecoder {
	if d := x.decoders.get(); d != nil {
		return d
	}
	return format.NewStripeDecoder(x.opts.Limits)
}
