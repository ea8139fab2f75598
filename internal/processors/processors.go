// Package processors says how many goroutines work in parallel where nobody has said it.
//
// A thread of another language that calls Go needs one of Go's processors (GOMAXPROCS) for as long as the call takes,
// and keeps it for a while after: the runtime takes it back when it notices. Where all processors are at work, the
// thread waits for one, and where it has just called, a worker does. So a library in another program's process has one
// more than there are for its workers.
package processors

import (
	"os"
	"runtime"
	"sync/atomic"
)

var reserved atomic.Int32 // of GOMAXPROCS, for callers

// ReserveForCallers adds a processor for threads that are not Go's, unless there is but one, or the environment says
// how many there are. It is called once, before there is anything to do.
func ReserveForCallers() {
	if n := runtime.GOMAXPROCS(0); n > 1 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
		reserved.Store(1)
	}
}

// Workers returns the number of goroutines that all processors are busy with, without those for callers.
func Workers() int { return runtime.GOMAXPROCS(0) - int(reserved.Load()) }
