package reader

import (
	"github.com/dsistore/dsistore/format"
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
func (x *executor) stripe(u *unit, i int) *stripe {
	s := x.stripes.get()
	if s == nil {
		s = &stripe{columns: make([]*decoded, len(x.columns)), ready: make(chan struct{}, 1)}
	}
	s.users.Store(1)
	s.picked, s.sparse, s.condensed = nil, false, false
	if u == nil {
		s.rows = 0
		return s
	}
	g := u.segment
	s.unit, s.segment, s.index, s.firstRow, s.stored = u, g, i, g.starts[i], g.storedRows(i)
	s.rows = s.stored
	return s
}

// releaseStripe is called by each user of a stripe when it is done with it; the last one takes the stripe back.
func (x *executor) releaseStripe(s *stripe) {
	if s.users.Add(-1) > 0 {
		return
	}
	for i, c := range s.columns {
		if c != nil {
			x.columns[i].put(c)
			s.columns[i] = nil
		}
	}
	for i, c := range s.inverses {
		x.inverses.put(c)
		s.inverses[i] = nil
	}
	s.inverses = s.inverses[:0]
	x.budget.Give(s.taken)
	s.taken, s.unit, s.segment, s.buffer, s.err = 0, nil, nil, nil, nil
	x.stripes.put(s)
}

// planUnit returns a unit under way of stripes of g from one on, as many before limit as fit.
func (x *executor) planUnit(g *segment, from, limit int) *unit {
	u := x.units.get()
	if u == nil {
		u = new(unit)
	}
	u.plan(g, from, limit, &x.opts)
	g.dictionaries.enter()
	return u
}

// putUnit takes back a unit whose bytes nobody needs any more.
func (x *executor) putUnit(u *unit) {
	for i := range u.ranges {
		if u.ranges[i].buf != nil {
			x.buffers.Put(u.ranges[i].buf)
			u.ranges[i].buf = nil
		}
	}
	x.budget.Give(u.taken)
	u.segment.dictionaries.leave(x.budget)
	u.segment, u.taken = nil, 0
	clear(u.stripes)
	x.units.put(u)
}

func (x *executor) decoder() *format.StripeDecoder {
	if d := x.decoders.get(); d != nil {
		return d
	}
	return format.NewStripeDecoder(x.opts.Limits)
}
