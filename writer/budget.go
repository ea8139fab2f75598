package writer

import (
	"context"
	"sync"
)

// A memoryBudget is memory that what is under way shares. Unlike a semaphore it lets who has come late take what is
// left past one who waits for more: helpers of what is under way, which end before it does.
type memoryBudget struct {
	mu      sync.Mutex
	left    int64
	changed chan struct{} // closed, and another one made, when some comes back
}

func newMemoryBudget(bytes int64) *memoryBudget {
	return &memoryBudget{left: bytes, changed: make(chan struct{})}
}

// acquire takes bytes, which are no more than the whole budget, as soon as so many are left.
func (b *memoryBudget) acquire(ctx context.Context, bytes int64) error {
	for {
		b.mu.Lock()
		took := b.take(bytes)
		changed := b.changed
		b.mu.Unlock()
		if took {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryAcquire takes bytes if so many are left.
func (b *memoryBudget) tryAcquire(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(bytes)
}

// take is called with mu held.
func (b *memoryBudget) take(bytes int64) bool {
	if bytes > b.left {
		return false
	}
	b.left -= bytes
	return true
}

func (b *memoryBudget) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	close(b.changed)
	b.changed = make(chan struct{})
}
