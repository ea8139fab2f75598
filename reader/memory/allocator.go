package memory

import "sync/atomic"

// An Allocator provides the memory of batches. Its methods are safe for concurrent use.
type Allocator interface {
	// Allocate returns n > 0 bytes with unspecified contents, aligned to 64 bytes. The caller owns them until Free.
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
	c.bytes.Add(int64(n))
	return c.Allocator.Allocate(n)
}

func (c *Counted) Free(b []byte) {
	c.bytes.Add(-int64(len(b)))
	c.Allocator.Free(b)
}

// InUse returns how many bytes were allocated and not freed.
func (c *Counted) InUse() int64 { return c.bytes.Load() }
