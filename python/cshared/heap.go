package main

import (
	"runtime"
	"runtime/debug"
)

// headroom counts as heap in use, but nothing touches it: it is address space that takes no memory. The garbage
// collector runs when the heap is twice what was in use after its last run (GOGC=100), or 4 MiB. So a process that
// opens a table and reads its first rows collected garbage several times meanwhile, which took a quarter of the
// processor's time. With headroom there may be as many bytes of garbage more before it runs.
var headroom []byte

const (
	headroomBytes = 16 << 20
	// firstBytes is how much of the heap, from its beginning, has huge pages. Without them, and without garbage to use
	// again, the first reads of a process take 4 KiB after 4 KiB of memory from the system, which takes as long as the
	// collector did.
	firstBytes = 12 << 20
)

func init() {
	percent := debug.SetGCPercent(-1)
	first := make([]byte, firstBytes)
	useHugePages(first)
	headroom = make([]byte, headroomBytes)
	debug.SetGCPercent(percent)
	runtime.GC() // first is free: what is allocated next lies there
}
