//go:build unix

package simdtest

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Fence is memory between two pages that may be neither read nor written.
type Fence struct{ memory []byte }

// NewFence returns a Fence with room for size bytes, until the end of the test.
func NewFence(t testing.TB, size int) *Fence {
	t.Helper()
	page := unix.Getpagesize()
	size = (size + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	for _, end := range [][]byte{all[:page], all[page+size:]} {
		if err := unix.Mprotect(end, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return &Fence{all[page : page+size]}
}

// Place returns a copy of values, with no capacity beyond them, that ends where the memory ends, or with low begins
// where it begins. What the Fence held before is lost. T has no pointers.
func Place[T any](f *Fence, values []T, low bool) []T {
	size := len(values) * int(unsafe.Sizeof(*new(T)))
	at := 0
	if !low {
		at = len(f.memory) - size
	}
	room := f.memory[at : at+size] // panics where there is too little
	if size == 0 {
		return make([]T, 0)
	}
	out := unsafe.Slice((*T)(unsafe.Pointer(&room[0])), len(values))
	copy(out, values)
	return out
}
