package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

// What locks pages for a device: CUDA's functions, which Python finds.
static int (*dsi_set_device)(int);
static int (*dsi_register)(void *, size_t, unsigned);
static int (*dsi_unregister)(void *);
static int dsi_device;

static void dsi_keep_locks(void *set_device, void *reg, void *unregister, int device) {
	dsi_set_device = (int (*)(int))set_device;
	dsi_register = (int (*)(void *, size_t, unsigned))reg;
	dsi_unregister = (int (*)(void *))unregister;
	dsi_device = device;
}

// Without dsi_set_device a thread's calls would be for device 0, and make a context there in every process. The thread
// keeps the device: it must be one of Go's (see onThread).
static int dsi_lock(void *p, size_t n) {
	enum { portable = 1 };
	return dsi_set_device(dsi_device) == 0 && dsi_register(p, n, portable) == 0;
}

static void dsi_unlock(void *p) {
	if (dsi_set_device(dsi_device) == 0) {
		dsi_unregister(p);
	}
}

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
type cMemory struct{ mappings *freeMappings }

// freeMappings are mappings that are not used.
type freeMappings struct {
	// locked: pages are locked for a device, as long as they are mapped. A mapping that the device refuses is not.
	locked bool

	mu      sync.Mutex
	free    map[int][]unsafe.Pointer // by size; guarded by mu
	bytes   int                      // of free; guarded by mu
	refused map[unsafe.Pointer]bool  // that are not locked; guarded by mu
}

// useLocks says with which functions, of CUDA, pages are locked.
func useLocks(setDevice, register, unregister unsafe.Pointer, device int) {
	C.dsi_keep_locks(setDevice, register, unregister, C.int(device))
}

// mapping returns the bytes of the mapping that holds n: an eighth more than n at the most, so that blocks of about the
// same size serve each other. What is not written of it takes no memory.
func mapping(n int) int {
	step := 1 << (bits.Len(uint(n-1)) - 4)
	return (n + step - 1) / step * step
}

func (c cMemory) Allocate(n int) []byte {
	var p unsafe.Pointer
	if n < mapped {
		p = C.dsi_aligned(C.size_t(n))
	} else if p = c.mappings.take(mapping(n)); p == nil {
		p = c.mappings.make(mapping(n))
	}
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), n)
}

func (c cMemory) Free(b []byte) {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b) < mapped {
		C.free(p)
	} else if size := mapping(len(b)); !c.mappings.keep(p, size) {
		c.mappings.drop(p, size)
	}
}

// onThread runs f on a thread of Go's. The caller may be on one of Python's, where the current device of CUDA is the
// program's and must not change.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// make returns a new mapping, or nil. Where it holds whole huge pages, a batch that is written to it for the first time
// does not wait for the system at every 4 KiB.
func (m *freeMappings) make(size int) unsafe.Pointer {
	p := C.dsi_map(C.size_t(size))
	if p == nil {
		return nil
	}
	useHugePages(unsafe.Slice((*byte)(p), size))
	if !m.locked {
		return p
	}
	locked := false
	onThread(func() { locked = C.dsi_lock(p, C.size_t(size)) != 0 })
	if !locked {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.refused == nil {
			m.refused = map[unsafe.Pointer]bool{}
		}
		m.refused[p] = true
	}
	return p
}

// drop gives a mapping back to the system.
func (m *freeMappings) drop(p unsafe.Pointer, size int) {
	if m.locked {
		m.mu.Lock()
		refused := m.refused[p]
		delete(m.refused, p)
		m.mu.Unlock()
		if !refused {
			onThread(func() { C.dsi_unlock(p) })
		}
	}
	C.munmap(p, C.size_t(size))
}

// take returns a free mapping, or nil.
func (m *freeMappings) take(size int) unsafe.Pointer {
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

// keep keeps a mapping that is no longer used, unless enough are.
func (m *freeMappings) keep(p unsafe.Pointer, size int) bool {
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
