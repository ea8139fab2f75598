package writer

import (
	"context"
	"sync"
)

// A memoryBudget limits the memory of concurrent workers, in bytes. It is not fair, unlike semaphore.Weighted: a small
// request succeeds while a larger one waits. The small ones come from helpers of running workers (segmentJob.spread),
// which end first, so the larger request still gets its turn. It is safe for concurrent use.
type memoryBudget struct {
	mu      sync.Mutex    // guards the fields below
	left    int64         // bytes
	changed chan struct{} // closed and replaced by each release
}

func newMemoryBudget(bytes int64) *memoryBudget {
	return &memoryBudget{left: bytes, changed: make(chan struct{})}
}

// acquire waits until so many bytes are left and takes them. More bytes than the whole budget would wait until ctx
// ends.
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

// tryAcquire takes the bytes and returns true, or returns false at once when fewer are left.
func (b *memoryBudget) tryAcquire(bytes int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(bytes)
}

// take is tryAcquire with mu held.
func (b *memoryBudget) take(bytes int64) bool {
	if bytes > b.left {
		return false
	}
	b.left -= bytes
	return true
}

// release returns bytes that were acquired.
func (b *memoryBudget) release(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += bytes
	close(b.changed)
	b.changed = make(chan struct{})
}
