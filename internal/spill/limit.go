package spill

import (
	"runtime/debug"
	"sync"
)

// The collector lets garbage grow to the size of what lives. Work that must stay within its memory lowers the runtime's
// soft limit while it runs, so that garbage goes earlier when memory is nearly full.
var memoryLimit struct {
	// mu guards the fields below.
	mu    sync.Mutex
	asked int64 // by what runs now
	runs  int
	saved int64 // the limit before the first of them
}

// HoldMemory lowers the soft limit to what all who called it may hold, unless it is lower already. The returned
// function undoes it.
func HoldMemory(bytes int64) (release func()) {
	change := func(bytes int64, runs int) {
		l := &memoryLimit
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.runs == 0 {
			l.saved = debug.SetMemoryLimit(-1)
		}
		l.asked += bytes
		l.runs += runs
		limit := l.saved
		if l.runs > 0 {
			limit = min(l.saved, max(l.asked, minLimit))
		}
		debug.SetMemoryLimit(limit)
	}
	change(bytes, 1)
	return func() { change(-bytes, -1) }
}

// minLimit: below it the collector would run all the time for little.
const minLimit = 64 << 20
