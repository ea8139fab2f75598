package memory

import "sync"

// A FreeList keeps idle values for reuse. The zero value is empty. Safe for concurrent use.
type FreeList[T any] struct {
	New func() *T // nil: new(T)

	mu   sync.Mutex
	idle []*T // guarded by mu
}

// Get returns the value that was put last, or a new one if there is none.
func (l *FreeList[T]) Get() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := len(l.idle) - 1
	if k < 0 {
		if l.New != nil {
			return l.New()
		}
		return new(T)
	}
	v := l.idle[k]
	l.idle[k] = nil
	l.idle = l.idle[:k]
	return v
}

// Put keeps v for a later Get.
func (l *FreeList[T]) Put(v *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, v)
}

// Idle returns the idle values. Borrowed until the next call. The list must not be used concurrently.
func (l *FreeList[T]) Idle() []*T { return l.idle }

// Truncate drops all idle values except the first n. The list must not be used concurrently.
func (l *FreeList[T]) Truncate(n int) {
	clear(l.idle[n:])
	l.idle = l.idle[:n]
}
