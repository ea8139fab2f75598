package ioplan

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/order"
)

// A Stripe is one stripe of a segment on its way to batches: first undecoded, then ready, then used up.
type Stripe struct {
	Task     *IOTask // its stored bytes, until it is decoded
	Segment  *Segment
	Index    int
	FirstRow uint64 // in the plan's own order
	Rows     int    // that are selected
	Stored   int    // rows, selected or not
	// Selected are the rows of the stripe that are selected; nil: all.
	Selected  []int32
	Selection []int32 // the memory of Selected
	// RowSelected: the selected rows alone are decoded.
	RowSelected bool
	// Gathered: the columns have the selected rows alone. Those of a stripe that is not row-selected were decoded
	// whole.
	Gathered bool
	// Buffer is what the stripe is a part of when the plan shuffles. It is read whole, and EndsBuffer says that this is
	// its last stripe.
	Buffer     *order.Buffer
	EndsBuffer bool
	// Sessions are the positions at which sessions start, and the end, where they are asked for.
	Sessions []int32
	Taken    int64 // from the budget, for the decoded columns

	Columns  []*Decoded // one per feature of the plan; nil: null in every row
	Inverses []*Decoded // of the groups, which the columns of their features may share

	Undecoded atomic.Int32  // tasks not yet done
	Ready     chan struct{} // holds one token once everything is decoded, or err is set
	Users     atomic.Int32  // batches not yet made of it, and the goroutine that cuts batches

	mu    sync.Mutex
	Err   error // of the first item in order that went wrong; guarded by mu until ready
	errAt int   // which item; guarded by mu
}

// Fail records that item i could not be had. Of several, the first in order counts, so that the error does not depend
// on the timing of threads.
func (s *Stripe) Fail(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Err == nil || i < s.errAt {
		s.Err, s.errAt = err, i
	}
}

// KeepInverse gives the stripe an inverse that its columns borrow.
func (s *Stripe) KeepInverse(inverse *Decoded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Inverses = append(s.Inverses, inverse)
}

// FindSessions sets the positions where the sessions of the stripe start, and its end: wherever the session key, nil if
// the segment has none, differs from that of the selected row before or is null.
func (s *Stripe) FindSessions(key *vector.Column) {
	s.Sessions = append(s.Sessions[:0], 0)
	before := s.DecodedAt(0)
	for position := 1; position < s.Rows; position++ {
		row := s.DecodedAt(position)
		differs := true
		switch {
		case key == nil || key.IsNull(row):
		case key.Inverse != nil && key.Inverse[row] == key.Inverse[before]:
			differs = false
		case vector.RowsEqual(key, before, key, row):
			differs = false
		}
		if before = row; differs {
			s.Sessions = append(s.Sessions, int32(position))
		}
	}
	s.Sessions = append(s.Sessions, int32(s.Rows))
}

// RowsAreSlots reports whether each row of a column of s is a slot of its own.
func (s *Stripe) RowsAreSlots(c *vector.Column) bool {
	return c.Inverse == nil || s.Gathered && len(s.Selected) > 0 && len(c.Inverse) > 0 &&
		&c.Inverse[0] == &s.Selected[0]
}
