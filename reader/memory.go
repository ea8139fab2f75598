package reader

import (
	"math/bits"
	"sync"
)

// An Allocator provides the memory that batches are made of. Its methods are safe for concurrent use.
type Allocator interface {
	// Allocate returns n > 0 bytes, aligned to 64; their content is undefined.
	Allocate(n int) []byte
	// Free takes back a slice that Allocate returned, whole, once.
	Free(b []byte)
}

// heapAllocator leaves memory to the garbage collector. Batches are pooled above it.
type heapAllocator struct{}

func (heapAllocator) Allocate(n int) []byte { return alignedBytes(n) }
func (heapAllocator) Free([]byte)           {}

// A number is what a buffer may hold.
type number interface {
	int32 | int64 | uint64 | float32 | float64 | byte
}

// A buffer is a slice of numbers in an Allocator's memory that is used again and again.
type buffer[T number] struct {
	raw  []byte
	view []T // all of raw
}

// resize returns n elements of undefined content. What the buffer held is lost. Owned by the buffer.
func (b *buffer[T]) resize(a Allocator, n int) []T {
	if n <= len(b.view) {
		return b.view[:n]
	}
	b.free(a)
	size := n * sizeOf[T]()
	size += size / 8
	b.raw = a.Allocate((size + 63) &^ 63)
	b.view = viewOf[T](b.raw)
	return b.view[:n]
}

// free gives the memory back.
func (b *buffer[T]) free(a Allocator) {
	if b.raw != nil {
		a.Free(b.raw)
	}
	b.raw, b.view = nil, nil
}

// poison overwrites released memory in builds with the tag invariants, so that whoever still reads it notices.
func (b *buffer[T]) poison() {
	if invariants {
		for i := range b.raw {
			b.raw[i] = 0xDB
		}
	}
}

// anyBuffer is a buffer of whatever numbers.
type anyBuffer interface {
	free(Allocator)
	poison()
}

// A budget hands out bytes to one taker; any number of goroutines give back.
type budget struct {
	mu   sync.Mutex
	free int64         // guarded by mu
	wake chan struct{} // holds one token after a poke
}

func newBudget(total int64) *budget {
	return &budget{free: total, wake: make(chan struct{}, 1)}
}

// take waits until n bytes are free, or until starved says that nothing can come back before they are given: then it
// overdraws. It takes nothing and returns false when done closes first. Whatever makes starved true calls poke.
func (b *budget) take(done <-chan struct{}, n int64, starved func() bool) bool {
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

// give returns n bytes.
func (b *budget) give(n int64) {
	b.mu.Lock()
	b.free += n
	b.mu.Unlock()
	b.poke()
}

// poke makes take look again.
func (b *budget) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// A bytePool keeps the buffers of ranges by size class, so that ranges of like length use each other's memory again.
type bytePool struct {
	mu   sync.Mutex
	idle int64         // bytes kept; guarded by mu
	max  int64         // of idle
	free [256][][]byte // free[c] have capacity classSize(c); guarded by mu
}

// Size classes: four to each doubling, from 4 KiB on, so that a buffer is at most a quarter larger than its range.
//
//	4 KiB  5 KiB  6 KiB  7 KiB  8 KiB  10 KiB  12 KiB ...
func classSize(class int) int { return (4 + class&3) << (10 + class>>2) }

// classOf returns the first class whose buffers hold n bytes.
func classOf(n int) int {
	if n <= classSize(0) {
		return 0
	}
	doubling := bits.Len(uint(n-1)) - 13 // 4 KiB << doubling < n <= twice that
	step := 1 << (10 + doubling)
	return doubling<<2 + (n-1)/step - 3
}

// get returns n bytes of undefined content.
func (p *bytePool) get(n int) []byte {
	class := classOf(n)
	if class >= len(p.free) {
		return make([]byte, n)
	}
	p.mu.Lock()
	list := &p.free[class]
	if k := len(*list) - 1; k >= 0 {
		b := (*list)[k]
		*list = (*list)[:k]
		p.idle -= int64(cap(b))
		p.mu.Unlock()
		return b[:n]
	}
	p.mu.Unlock()
	return make([]byte, n, classSize(class))
}

// put keeps b for later gets, unless enough is kept.
func (p *bytePool) put(b []byte) {
	size := cap(b)
	class := classOf(size)
	if class >= len(p.free) || size != classSize(class) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle+int64(size) <= p.max {
		p.idle += int64(size)
		p.free[class] = append(p.free[class], b[:0])
	}
}
