package main

import (
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The collector waits for the headroom, which takes no memory.
func TestHeadroom(t *testing.T) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if size := uint64(len(headroom)); m.NextGC < size {
		t.Errorf("the next collection begins at %d bytes", m.NextGC)
	}
	page := unix.Getpagesize()
	pages := headroom[-uintptr(unsafe.Pointer(&headroom[0]))&uintptr(page-1):]
	pages = pages[:len(pages)/page*page]
	resident := make([]byte, len(pages)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&pages[0])), uintptr(len(pages)),
		uintptr(unsafe.Pointer(&resident[0]))); errno != 0 {
		t.Fatal(errno)
	}
	if i := slices.IndexFunc(resident, func(x byte) bool { return x&1 != 0 }); i >= 0 {
		t.Errorf("page %d of %d is in memory", i, len(resident))
	}
}
