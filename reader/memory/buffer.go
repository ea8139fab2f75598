package memory

// A number is what a buffer may hold.
type number interface {
	int32 | int64 | uint64 | float32 | float64 | byte
}

// A Buffer is a slice of numbers in an Allocator's memory that is used again and again.
type Buffer[T number] struct {
	raw  []byte
	view []T // all of raw
}

// Resize returns n elements of undefined content. What the buffer held is lost. Owned by the buffer.
func (b *Buffer[T]) Resize(a Allocator, n int) []T {
	if n <= len(b.view) {
		return b.view[:n]
	}
	b.Free(a)
	size := n * sizeOf[T]()
	size += size / 8
	b.raw = a.Allocate((size + 63) &^ 63)
	b.view = viewOf[T](b.raw)
	return b.view[:n]
}

// First returns the first n elements of what Resize returned last. Owned by the buffer.
func (b *Buffer[T]) First(n int) []T { return b.view[:n:n] }

// Free gives the memory back.
func (b *Buffer[T]) Free(a Allocator) {
	if b.raw != nil {
		a.Free(b.raw)
	}
	b.raw, b.view = nil, nil
}

// Poison overwrites released memory in builds with the tag invariants, so that a read after the release shows.
func (b *Buffer[T]) Poison() {
	if Invariants {
		for i := range b.raw {
			b.raw[i] = 0xDB
		}
	}
}

// AnyBuffer is a buffer of whatever numbers.
type AnyBuffer interface {
	Free(Allocator)
	Poison()
}
