package memory

import "sync"

// A Budget hands out bytes to one taker; any number of goroutines give back.
type Budget struct {
	mu   sync.Mutex
	free int64         // guarded by mu
	wake chan struct{} // holds one token after a Poke
}

// NewBudget returns a budget of so many bytes.
func NewBudget(total int64) *Budget {
	return &Budget{free: total, wake: make(chan struct{}, 1)}
}

// Take waits until n bytes are free, or until starved says that nothing can come back before they are given: then it
// overdraws. It takes nothing and returns false when done closes first. Whatever makes starved true calls Poke.
func (b *Budget) Take(done <-chan struct{}, n int64, starved func() bool) bool {
	for {
		b.mu.Lock()
		if b.free >= n || starved() {
			b.free -= n
			b.mu.Unlock()
			return true
		}
		b.mu.Unlock()
		select {
		case <-b.wake:
		case <-done:
			return false
		}
	}
}

// Available returns how many bytes are free; below 0 when the budget is overdrawn.
func (b *Budget) Available() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

// Give returns n bytes.
func (b *Budget) Give(n int64) {
	b.mu.Lock()
	b.free += n
	b.mu.Unlock()
	b.Poke()
}

// Poke makes Take look again.
func (b *Budget) Poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
