package engine

import (
	"errors"
	"sync"
)

// handles are what Python has open of one kind, by number. The zero value has nothing open. It is safe for concurrent
// use.
type handles[T any] struct {
	mu   sync.Mutex
	last int64       // number given; guarded by mu
	open map[int64]T // guarded by mu
}

var errNoHandle = errors.New("engine: it is closed")

// add returns the number of v, which no other had before.
func (h *handles[T]) add(v T) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[int64]T{}
	}
	h.last++
	h.open[h.last] = v
	return h.last
}

func (h *handles[T]) get(number int64) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.open[number]
	if !ok {
		return v, errNoHandle
	}
	return v, nil
}

// take returns what has a number, which is closed from then on.
func (h *handles[T]) take(number int64) (T, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, ok := h.open[number]
	if !ok {
		return v, errNoHandle
	}
	delete(h.open, number)
	return v, nil
}

func (h *handles[T]) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}
