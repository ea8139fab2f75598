package endpoint

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A host is what all clients of a process know of a service's host.
type host struct {
	places   places
	times    times
	budget   budget
	repeated atomic.Int64 // reads that were sent again
}

var hosts sync.Map // *host by host and port: as many as a process has buckets

func hostOf(name string) *host {
	if h, ok := hosts.Load(name); ok {
		return h.(*host)
	}
	h, _ := hosts.LoadOrStore(name, &host{places: places{limit: most}})
	return h.(*host)
}

// Counts says what became of the requests to a host.
type Counts struct {
	Repeated  int64 // reads that were sent again because their answers were late
	Throttled int64 // answers 429 and 503
	Limit     int   // how many requests may be under way now
}

// CountsOf returns the counts of a host and port, of all clients of the process.
func CountsOf(name string) Counts {
	h := hostOf(name)
	h.places.mu.Lock()
	defer h.places.mu.Unlock()
	return Counts{Repeated: h.repeated.Load(), Throttled: h.places.throttled, Limit: int(h.places.limit)}
}

const (
	// remembered is of how many answers the times are known.
	remembered = 256
	// known is from how many times on a read may be late.
	known = 32
	// refreshed is after how many times the bounds are found anew.
	refreshed = 16
)

// times are those that the last answers to reads took to begin.
type times struct {
	mu     sync.Mutex
	last   [remembered]time.Duration // guarded by mu
	n      int                       // guarded by mu: so many were added
	bound  time.Duration             // guarded by mu
	sorted []time.Duration           // guarded by mu: scratch
}

// add adds how long an answer took, or how long it was waited for.
func (t *times) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[t.n%remembered] = d
	if t.n++; t.n < known || t.n%refreshed != 0 {
		return
	}
	t.sorted = append(t.sorted[:0], t.last[:min(t.n, remembered)]...)
	slices.Sort(t.sorted)
	t.bound = max(t.sorted[len(t.sorted)*95/100], 2*t.sorted[len(t.sorted)/2])
}

// late returns after which time an answer is late; ok is false while too little is known.
func (t *times) late() (bound time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bound, t.bound > 0
}

const (
	// share is how many requests may be sent again of each one that is sent.
	share = 0.02
	// saved is how many may be sent again at once, after so many that were not.
	saved = 10
)

// A budget says how many requests may be sent again.
type budget struct {
	mu   sync.Mutex
	left float64 // guarded by mu
}

// earn is called for each request.
func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.left+share, saved)
}

// spend reports whether a request may be sent again, and counts it.
func (b *budget) spend() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// give takes a spend back.
func (b *budget) give() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left++
}
