package encoding

// An arena hands out scratch slices, last out first back, and reaches a size at which it allocates no more.
type arena[T any] struct {
	buf  []T
	used int
}

// grab returns n elements of scratch, whatever they hold, never nil. They are good until release of a mark taken
// before.
func (a *arena[T]) grab(n int) []T {
	if a.used+n > len(a.buf) || a.buf == nil {
		// Slices grabbed before keep the old memory alive for as long as they are in use.
		a.buf = make([]T, max(2*len(a.buf), a.used+n, 256))
	}
	s := a.buf[a.used : a.used+n : a.used+n]
	a.used += n
	return s
}

// mark returns what release takes to give back everything grabbed after it.
func (a *arena[T]) mark() int     { return a.used }
func (a *arena[T]) release(m int) { a.used = m }
