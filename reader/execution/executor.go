package execution

import (
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// A Source is what an Executor reads: the features of a plan, in the objects of a store.
type Source struct {
	Plan  *plan.Plan
	Blobs object.Store
	// Features are the features to read, with their stored types: the plan's, then perhaps the session key.
	Features []catalog.Feature
	// Transforms has an element for each of Features, nil if it has no transforms.
	Transforms []*transform.Program
	SessionKey int32   // its position in Features, or -1
	Weight     float32 // of weighted rows
	// RowSelectRatio: if fewer than one in so many rows of a stripe are selected, only those are decoded. In a run of
	// selected rows only the first counts fully, see decodesRows.
	RowSelectRatio int
	// GatheredRun: selected rows in runs of at least so many rows on average are not gathered.
	GatheredRun int
}

// Default values of Source. Decoding a whole stripe takes as long as decoding about one row in 30 (go run
// ./bench/filter --select 0.03). Copying runs of rows is faster than gathering them.
const (
	DefaultRowSelectRatio = 32
	DefaultGatheredRun    = 32
)

// Options say how to read.
type Options struct {
	MemoryBudget int64
	Workers      int
	Requests     int // in flight
	Limits       format.Limits
	Batches      batch.Options
	Reuse        bool // keep the pools of closed readers
}

// An Executor fetches and decodes stripes of a source. It reuses memory of its Pools.
type Executor struct {
	*Pools
	// Fetched limits the bytes of I/O tasks and of dictionaries, Budget those of decoded stripes. Unless the tasks'
	// sizes are apart, both are one.
	Fetched, Budget *memory.Budget
	Stats           *metering.Counters
	// Sessions: find the sessions of stripes when they are decoded.
	Sessions bool

	src   *Source
	opts  Options
	reads chan struct{} // holds a token for each object that Load is reading
}

// New returns an Executor of src that uses the pools.
func New(src *Source, opts Options, p *Pools, stats *metering.Counters) *Executor {
	budget := memory.NewBudget(opts.MemoryBudget)
	return &Executor{
		Pools: p, src: src, opts: opts, Fetched: budget, Budget: budget, Stats: stats,
		reads: make(chan struct{}, opts.Requests),
	}
}

// Stripe returns stripe i of u, with all stored rows. With u nil it returns a stripe to carry an error. ReleaseStripe
// frees it.
func (x *Executor) Stripe(u *ioplan.IOTask, i int) *ioplan.Stripe {
	s := x.stripes.Get()
	s.Users.Store(1)
	s.Selected, s.RowSelected, s.Gathered = nil, false, false
	if u == nil {
		s.Rows = 0
		return s
	}
	g := u.Segment
	s.Task, s.Segment, s.Index, s.FirstRow, s.Stored = u, g, i, g.Starts[i], g.StoredRows(i)
	s.Rows = s.Stored
	return s
}

// Select restricts a stripe, which is not decoded yet, to its selected rows. It decides how they will be decoded.
func (x *Executor) Select(s *ioplan.Stripe) {
	g, i := s.Segment, s.Index
	if s.Rows = int(g.Starts[i+1] - g.Starts[i]); s.Rows == s.Stored {
		return
	}
	s.Selection = g.AppendSelected(s.Selection[:0], i)
	runs := runsOf(s.Selection)
	s.Selected = s.Selection
	s.RowSelected = x.decodesRows(s.Rows, runs, s.Stored) && !g.Shares(i, s.Rows)
	s.Gathered = s.RowSelected || x.src.gathers(s.Rows, runs)
}

// followingRow is the cost of decoding a selected row that follows another one without the rest of the stripe. The unit
// is the cost of a row in a stripe that is decoded whole.
const followingRow = 2

// decodesRows reports whether to decode only the selected rows of a stripe: so many, in so many runs. This loses the
// slots that rows share, so it returns false if batches need slots. See Segment.Shares for the values that they share.
func (x *Executor) decodesRows(rows, runs, stored int) bool {
	ratio := x.src.RowSelectRatio
	return runs*ratio+(rows-runs)*min(ratio, followingRow) < stored &&
		x.src.Plan.Dedup == plan.DedupKJT && !x.opts.Batches.Info && !x.opts.Batches.KeepSlots
}

// ReleaseStripe is called by each user of a stripe when it is done with it. The last call returns the stripe to the
// pools.
func (x *Executor) ReleaseStripe(s *ioplan.Stripe) {
	if s.Users.Add(-1) > 0 {
		return
	}
	for i, c := range s.Columns {
		if c != nil {
			x.columns[i].Put(c)
			s.Columns[i] = nil
		}
	}
	for i, c := range s.Inverses {
		x.inverses.Put(c)
		s.Inverses[i] = nil
	}
	s.Inverses = s.Inverses[:0]
	x.Budget.Give(s.Taken)
	s.Taken, s.Task, s.Segment, s.Buffer, s.Err = 0, nil, nil, nil, nil
	x.stripes.Put(s)
}

// PlanTask returns an I/O task with stripes of g: from on, as many before limit as fit sizes. PutTask frees it.
func (x *Executor) PlanTask(g *ioplan.Segment, from, limit int, sizes ioplan.FetchSizes) *ioplan.IOTask {
	u := x.tasks.Get()
	u.Plan(g, from, limit, sizes)
	g.Dictionaries.Enter()
	return u
}

// PutTask returns an I/O task and its buffers to the pools. Its bytes must not be used any more.
func (x *Executor) PutTask(u *ioplan.IOTask) {
	for i := range u.Ranges {
		if u.Ranges[i].Bytes != nil {
			x.buffers.Put(u.Ranges[i].Bytes)
			u.Ranges[i].Bytes = nil
		}
	}
	x.Fetched.Give(u.Taken)
	u.Segment.Dictionaries.Leave(x.Fetched)
	u.Segment, u.Taken = nil, 0
	clear(u.Stripes)
	x.tasks.Put(u)
}
