package memory

import "sync"

// A Budget limits bytes in memory. One goroutine takes; any number of goroutines give.
type Budget struct {
	mu   sync.Mutex
	free int64         // bytes; guarded by mu
	wake chan struct{} // has one token after a Poke
}

// NewBudget returns a budget of so many bytes.
func NewBudget(total int64) *Budget {
	return &Budget{free: total, wake: make(chan struct{}, 1)}
}

// Take waits until n bytes are free, and takes them. If starved returns true, no bytes can be given before these are
// taken; then Take exceeds the budget. The caller must call Poke when starved becomes true. Take returns false without
// taking if done closes first.
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

// Available returns how many bytes are free; below 0 if the budget is exceeded.
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

// Poke makes Take check again.
func (b *Budget) Poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
