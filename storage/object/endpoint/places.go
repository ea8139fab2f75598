package endpoint

import (
	"context"
	"sync"
	"time"
)

const (
	// most is how many requests to a host are under way at once at most.
	most = 256
	// least is how many are, however many are refused.
	least = 1
	// unproved is how many are after a refusal while there were places left: it says little of how many are too many.
	unproved = 8
)

// places limit how many requests are under way at once. Those that wait get a place in the order in which they came.
type places struct {
	mu        sync.Mutex
	taken     int             // guarded by mu
	waiting   []chan struct{} // guarded by mu; one is closed when its place is taken for it
	limit     float64         // guarded by mu
	cutAt     time.Time       // guarded by mu
	throttled int64           // guarded by mu
}

// acquire takes a place, or returns ctx.Err().
func (p *places) acquire(ctx context.Context) error {
	p.mu.Lock()
	if len(p.waiting) == 0 && p.free() {
		p.taken++
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.waiting {
		if w == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return ctx.Err()
		}
	}
	p.taken-- // the place came at the same time
	p.wake()
	return ctx.Err()
}

// tryAcquire takes a place if one is free and nobody waits.
func (p *places) tryAcquire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 || !p.free() {
		return false
	}
	p.taken++
	return true
}

func (p *places) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	p.wake()
}

// free reports whether there is a place; p.mu is held.
func (p *places) free() bool { return p.taken < int(p.limit) }

// wake gives free places to those that wait; p.mu is held.
func (p *places) wake() {
	for len(p.waiting) > 0 && p.free() {
		p.taken++
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}

// cut halves the places, because the service refused a request that was sent at a time. Requests that were under way
// at the last cut say nothing new.
func (p *places) cut(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.throttled++
	if !sent.After(p.cutAt) {
		return
	}
	p.cutAt = time.Now()
	half := max(float64(min(p.taken, int(p.limit)))/2, least)
	if p.free() {
		half = min(max(half, unproved), p.limit)
	}
	p.limit = half
}

// raise is called for each request that the service took. Just after a cut, a round of requests adds a place; t seconds
// after it, 1+t*t.
func (p *places) raise() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit >= most || float64(p.taken) < p.limit/2 {
		return // more were not asked for
	}
	t := time.Since(p.cutAt).Seconds()
	p.limit = min(p.limit+(1+t*t)/p.limit, most)
	p.wake()
}
