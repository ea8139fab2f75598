package memory

import (
	"math/bits"
	"slices"
	"sync"
)

// A BytePool keeps buffers by size class, so that ranges of similar length reuse them. Safe for concurrent use.
type BytePool struct {
	mu   sync.Mutex
	idle int64         // bytes of idle buffers; guarded by mu
	Max  int64         // limit of idle
	free [256][][]byte // free[c] have capacity classSize(c); guarded by mu
}

// classSize returns the size of a class. There are four classes for each doubling, from 4 KiB on, so that a buffer is
// at most a quarter larger than its range.
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

// Get returns n bytes with unspecified contents.
func (p *BytePool) Get(n int) []byte {
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

// Put keeps b, which Get returned, for reuse, unless idle buffers would exceed Max.
func (p *BytePool) Put(b []byte) {
	size := cap(b)
	class := classOf(size)
	if class >= len(p.free) || size != classSize(class) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle+int64(size) <= p.Max {
		p.idle += int64(size)
		p.free[class] = append(p.free[class], b[:0])
	}
}

// Trim frees the largest buffers until the others have at most so many bytes.
func (p *BytePool) Trim(most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := len(p.free) - 1; class >= 0; class-- {
		for list := &p.free[class]; len(*list) > 0 && p.idle > most; *list = slices.Delete(*list, 0, 1) {
			p.idle -= int64(cap((*list)[0]))
		}
	}
}

// Held returns how many bytes idle buffers have.
func (p *BytePool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle
}
