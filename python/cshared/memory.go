package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static void *dsi_aligned(size_t n) {
	void *p = NULL;
	return posix_memalign(&p, 64, n) == 0 ? p : NULL;
}

static void *dsi_map(size_t n) {
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}
*/
import "C"

import (
	"math/bits"
	"sync"
	"unsafe"
)

const (
	// mapped is from how many bytes on a block is a mapping of its own, which goes back to the system when it is freed.
	// In the heap such blocks, which threads take and give back in any order, leave gaps that are never filled: glibc
	// maps large blocks too, but no longer once it has seen some freed, and a process that reads one epoch after the
	// other would hold several times what its batches take.
	mapped = 128 << 10

	// kept bounds the bytes of free mappings that wait for the next loader, which then finds pages instead of asking
	// for zeroed ones.
	kept = 64 << 20
)

// cMemory is C's heap, and mappings.
type cMemory struct{}

var mappings struct {
	mu    sync.Mutex
	free  map[int][]unsafe.Pointer // by size; guarded by mu
	bytes int                      // of free; guarded by mu
}

// mapping returns the bytes of the mapping that holds n: an eighth more than n at the most, so that blocks of about the
// same size serve each other. What is not written of it takes no memory.
func mapping(n int) int {
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) / step * step
}

func (cMemory) Allocate(n int) []byte {
	var p unsafe.Pointer
	if n < mapped {
		p = C.dsi_aligned(C.size_t(n))
	} else if p = takeMapping(mapping(n)); p == nil {
		p = C.dsi_map(C.size_t(mapping(n)))
	}
	if p == nil {
		panic("out of memory")
	}
	return unsafe.Slice((*byte)(p), n)
}

func (cMemory) Free(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < mapped {
		C.free(p)
	} else if size := mapping(len(b)); !keepMapping(p, size) {
		C.munmap(p, C.size_t(size))
	}
}

// takeMapping returns a free mapping, or nil.
func takeMapping(size int) unsafe.Pointer {
	m := &mappings
	m.mu.Lock()
	defer m.mu.Unlock()
	free := m.free[size]
	if len(free) == 0 {
		return nil
	}
	last := len(free) - 1
	p := free[last]
	m.free[size] = free[:last]
	m.bytes -= size
	return p
}

// keepMapping keeps a mapping that is no longer used, unless enough are.
func keepMapping(p unsafe.Pointer, size int) bool {
	m := &mappings
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes+size > kept {
		return false
	}
	if m.free == nil {
		m.free = map[int][]unsafe.Pointer{}
	}
	m.free[size] = append(m.free[size], p)
	m.bytes += size
	return true
}
