package reader

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/order"
	"github.com/dsistore/dsistore/reader/transform"
)

// A stripe is one stripe of a segment on its way to batches: first undecoded, then ready, then used up.
type stripe struct {
	unit     *unit // its stored bytes, until it is decoded
	segment  *segment
	index    int
	firstRow uint64 // in the plan's own order
	rows     int    // that are selected
	stored   int    // rows, selected or not
	// picked are the rows of the stripe that are selected; nil: all.
	picked    []int32
	selection []int32 // the memory of picked
	// sparse: the selected rows alone are decoded.
	sparse bool
	// condensed: the columns have the selected rows alone. Those of a stripe that is not sparse were decoded whole.
	condensed bool
	// buffer is what the stripe is a part of when the plan shuffles. It is read whole, and endsBuffer says that this is its
	// last stripe.
	buffer     *order.Buffer
	endsBuffer bool
	// sessions are the places at which sessions start, and the end, where they are asked for.
	sessions []int32
	taken    int64 // from the budget, for the decoded columns

	columns  []*decoded // one a feature of the plan; nil: null in every row
	inverses []*decoded // of the groups, which the columns of their features may share

	undecoded atomic.Int32  // tasks not yet done
	ready     chan struct{} // holds one token once everything is decoded, or err is set
	users     atomic.Int32  // batches not yet made of it, and the goroutine that cuts batches

	mu    sync.Mutex
	err   error // of the first item in order that went wrong; guarded by mu until ready
	errAt int   // which item; guarded by mu
}

// fail records that item i could not be had. Of several, the first in order counts, so that the error does not depend
// on the timing of threads.
func (s *stripe) fail(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || i < s.errAt {
		s.err, s.errAt = err, i
	}
}

// A decoded is the memory of one decoded stripe of one feature.
type decoded struct {
	column *vector.Column // what to read: &stored, &widened, the column of transformed or &condensed
	stored vector.Column
	// widened holds the values of a feature whose type in the segment is narrower than in the plan.
	widened vector.Column
	// transformed is nil until the feature is first transformed; then column is in it.
	transformed *transform.State
	// condensed has some rows of what column was before: all but its inverse is that one's.
	condensed vector.Column
	ascends   bool // no row of condensed has a slot before that of the row before
	absent    bool // nothing is stored: the column is what transforms make of null, in one slot
}

// widen makes d.column the stored column as type t, which vector.Widen gives of both.
func (d *decoded) widen(t vector.Type) {
	if d.stored.Type == t {
		d.column = &d.stored
		return
	}
	vector.ConvertInto(&d.widened, &d.stored, t)
	d.column = &d.widened
}

// transform makes d.column what p makes of it.
func (d *decoded) transform(p *transform.Program) (err error) {
	d.column, err = d.state().Run(p, d.column)
	return err
}

// missing makes d.column the column of a feature that a segment does not have, after p, which fills null: one slot for all
// rows, whose inverse is zeros, borrowed.
func (d *decoded) missing(p *transform.Program, zeros []int32) (err error) {
	d.ascends, d.absent = true, true
	d.column, err = d.state().Null(p, zeros)
	return err
}

func (d *decoded) state() *transform.State {
	if d.transformed == nil {
		d.transformed = new(transform.State)
	}
	return d.transformed
}

// A zeroInverse is the inverse of columns with one slot. It is safe for concurrent use.
type zeroInverse struct {
	zeros atomic.Pointer[[]int32]
}

// get returns n zeros. Borrowed: nobody writes to them.
func (z *zeroInverse) get(n int) []int32 {
	if p := z.zeros.Load(); p != nil && len(*p) >= n {
		return (*p)[:n:n]
	}
	p := make([]int32, n)
	z.zeros.Store(&p)
	return p
}
