package snapshot

import (
	"context"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage/names"
)

// Turns are whose turn it is to commit to a table, as one handle sees it: PROTOCOL.md, "Turns". They save lost races,
// and nothing depends on them. A commit holds them from Log.Turns to End, so that the commits of one handle do not race
// each other.
type Turns struct {
	t      *Log
	writer [writerBytes]byte // begins the ids of the handle's commits; zero before the first
	last   uint64            // the snapshot that was seen last
	seen   time.Time         // when that was
	trip   time.Duration     // how long a request takes
	// order are the writers that commit, the next one first.
	order [][writerBytes]byte
	skip  int // of a writer that is not in order: how many snapshots of others it waits for
}

const (
	writerBytes = 8
	// maxTurns bounds how many writers are told apart.
	maxTurns = 16
	// patience is how many requests long one waits for the snapshot of another: it has to see the one before, and to
	// put its own.
	patience = 3
	// maxTrip is the longest that a request takes, as a rule.
	maxTrip = 500 * time.Millisecond
)

// Turns returns the turns of the handle when no other commit has them any more.
func (t *Log) Turns(ctx context.Context) (*Turns, error) {
	t.mu.Lock()
	if t.turns == nil {
		t.turns = make(chan *Turns, 1)
		t.turns <- &Turns{t: t}
	}
	turns := t.turns
	t.mu.Unlock()
	select {
	case r := <-turns:
		r.skip = 0
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// End gives the turns back.
func (r *Turns) End() { r.t.turns <- r }

// CommitID returns a new id for a commit of the handle.
func (r *Turns) CommitID() names.ID {
	i := names.RandomID()
	if r.writer == ([writerBytes]byte{}) {
		copy(r.writer[:], i[:])
	}
	copy(i[:], r.writer[:])
	return i
}

// patience is how long one waits for the snapshot of another.
func (r *Turns) patience() time.Duration { return patience * r.trip }

// Contended reports whether several have just committed, s last: then the next snapshots are worth asking for by their
// numbers.
func (r *Turns) Contended(s *Snapshot) bool {
	return s.Manifest.Info.Number == r.last && len(r.order) > 1 && time.Since(r.seen) <= maxTurns*r.patience()
}

// See notes snapshots that follow each other.
func (r *Turns) See(some ...*Snapshot) {
	for _, s := range some {
		n := s.Manifest.Info.Number
		if n == r.last {
			continue
		}
		if n != r.last+1 || time.Since(r.seen) > maxTurns*r.patience() {
			r.order = nil
		}
		r.last, r.seen = n, time.Now()
		r.skip = max(r.skip-1, 0)
		w := [writerBytes]byte(s.Manifest.Commit[:])
		// Those before it have not taken their turn: nobody waits for them again.
		if i := slices.Index(r.order, w); i >= 0 {
			r.order = slices.Delete(r.order, 0, i+1)
		}
		if len(r.order) == maxTurns {
			r.order = slices.Delete(r.order, 0, 1)
		}
		r.order = append(r.order, w)
	}
}

// Forget drops what is known of the other writers.
func (r *Turns) Forget() { r.order = nil }

// Lost notes that the commit with the id, the try number of which is from 1 on, found its number taken.
func (r *Turns) Lost(id names.ID, try int) {
	r.skip = int(id[writerBytes]) % (1 << min(try, 3))
}

// rank is how many others come first.
func (r *Turns) rank() int {
	if i := slices.Index(r.order, r.writer); i >= 0 {
		return i
	}
	return r.skip
}

// Took notes how long a request took. One that was late counts for little, or not at all.
func (r *Turns) Took(d time.Duration) {
	if d > maxTrip {
		return
	}
	if r.trip == 0 {
		r.trip = d
	}
	r.trip = min((r.trip+d)/2, 2*r.trip)
}

// Next returns 0 when it is the handle's turn to put the snapshot after the last one seen, else how many snapshots of
// others come before it, at most. Then it has waited as long as they take at least.
func (r *Turns) Next(ctx context.Context) (others int, err error) {
	others = r.rank()
	left := time.Until(r.seen.Add(time.Duration(others) * r.patience()))
	if others == 0 || left <= 0 {
		return 0, nil
	}
	timer := time.NewTimer(max(min(time.Duration(others-1)*r.trip, left-r.trip), 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return others, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
