package ioplan

import (
	"sync"
	"sync/atomic"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/order"
)

// A Stripe is one stripe of a segment. It is decoded, then ready, then released when all its batches are assembled.
type Stripe struct {
	Task     *IOTask // has its stored bytes, until it is decoded
	Segment  *Segment
	Index    int
	FirstRow uint64 // in the plan's own order
	Rows     int    // selected rows
	Stored   int    // rows, selected or not
	// Selected are the selected rows of the stripe; nil: all.
	Selected  []int32
	Selection []int32 // the memory of Selected
	// RowSelected: only the selected rows are decoded.
	RowSelected bool
	// Gathered: the columns have only the selected rows. If RowSelected is not set, they were decoded whole before.
	Gathered bool
	// Buffer is the shuffle buffer of the stripe; nil: the plan does not shuffle. EndsBuffer: it is the buffer's last
	// stripe.
	Buffer     *order.Buffer
	EndsBuffer bool
	// Sessions are the positions at which sessions start, then Rows; only if they are needed.
	Sessions []int32
	Taken    int64 // bytes taken from the budget for the decoded columns

	Columns  []*Decoded // by feature; nil: null in every row
	Inverses []*Decoded // of groups; Columns borrow them

	Undecoded atomic.Int32  // decode tasks that are not done
	Ready     chan struct{} // has one token when everything is decoded, or Err is set
	Users     atomic.Int32  // batches with rows of it that are not assembled, and the batcher

	mu    sync.Mutex
	Err   error // of the first item in order that failed; guarded by mu until ready
	errAt int   // which item; guarded by mu
}

// Fail records the error of item i. Of several errors it keeps that of the first item, so that the result does not
// depend on timing.
func (s *Stripe) Fail(i int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Err == nil || i < s.errAt {
		s.Err, s.errAt = err, i
	}
}

// KeepInverse makes the stripe the owner of an inverse that its columns borrow.
func (s *Stripe) KeepInverse(inverse *Decoded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Inverses = append(s.Inverses, inverse)
}

// FindSessions sets Sessions. A session starts wherever the session key is null or differs from that of the selected
// row before. key nil: the segment has no session key, so it is null.
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
