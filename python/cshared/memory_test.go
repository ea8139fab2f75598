//go:build cgo

package main

import (
	"testing"
	"unsafe"
)

func TestMemoryIsWholeAndComesBack(t *testing.T) {
	c := cMemory{new(freeMappings)}
	address := func(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
	for _, n := range []int{1, 63, 4096, mapped - 1, mapped, mapped + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 33 << 20} {
		b := c.Allocate(n)
		if len(b) != n || address(b)%64 != 0 {
			t.Fatalf("%d bytes: %d at %#x", n, len(b), address(b))
		}
		for i := range b {
			b[i] = 0xA5
		}
		if n >= mapped && (mapping(n) < n || mapping(n) > n+n/8) {
			t.Errorf("%d bytes in a mapping of %d", n, mapping(n))
		}
		at := address(b)
		c.Free(b)
		again := c.Allocate(n)
		if n >= mapped && address(again) != at {
			t.Errorf("%d bytes: a free mapping was not used", n)
		}
		c.Free(again)
	}
}

func TestFreeMappingsAreBounded(t *testing.T) {
	mappings := new(freeMappings)
	c := cMemory{mappings}
	var blocks [][]byte
	for range 40 {
		blocks = append(blocks, c.Allocate(4<<20))
	}
	for _, b := range blocks {
		c.Free(b)
	}
	if mappings.bytes > kept {
		t.Errorf("%d bytes are free, want at most %d", mappings.bytes, kept)
	}
	total := 0
	for size, free := range mappings.free {
		total += size * len(free)
	}
	if total != mappings.bytes {
		t.Errorf("%d bytes are free, %d counted", total, mappings.bytes)
	}
}
