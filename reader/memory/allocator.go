package memory

import (
	"errors"
	"sync/atomic"
)

// ErrNoMemory is the error of a batch for which an Allocator has no memory.
var ErrNoMemory = errors.New("out of memory: give smaller batches, or fewer of them (batch size, prefetch)")

// An Allocator provides the memory of batches. Its methods are safe for concurrent use.
type Allocator interface {
	// Allocate returns n > 0 bytes with unspecified contents, aligned to 64 bytes, or nil where there is no memory. The
	// caller owns them until Free.
	Allocate(n int) []byte
	// Free frees a slice that Allocate returned. It is called once for each, with the whole slice.
	Free(b []byte)
}

// Heap leaves memory to the garbage collector. Batches are pooled above it.
type Heap struct{}

func (Heap) Allocate(n int) []byte { return alignedBytes(n) }
func (Heap) Free([]byte)           {}

// A Counted counts the bytes in use of an Allocator.
type Counted struct {
	Allocator
	bytes atomic.Int64
}

func (c *Counted) Allocate(n int) []byte {
	b := c.Allocator.Allocate(n)
	c.bytes.Add(int64(len(b)))
	return b
}

func (c *Counted) Free(b []byte) {
	c.bytes.Add(-int64(len(b)))
	c.Allocator.Free(b)
}

// InUse returns how many bytes were allocated and not freed.
func (c *Counted) InUse() int64 { return c.bytes.Load() }
