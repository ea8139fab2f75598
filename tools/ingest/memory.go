package ingest

import (
	"runtime/debug"
	"sync"

	"github.com/dsistore/dsistore/storage"
)

// The collector lets garbage grow to the size of what lives. An ingest that must stay within its memory lowers the
// runtime's soft limit while it runs, so that garbage goes earlier when memory is nearly full.
var memoryLimit struct {
	// mu guards the fields below.
	mu    sync.Mutex
	asked int64 // by the ingests that run now
	runs  int
	saved int64 // the limit before the first of them
}

// holdMemoryLimit lowers the soft limit to what all running ingests may hold, unless it is lower already. The returned
// function undoes it.
func holdMemoryLimit(bytes int64) (release func()) {
	l := &memoryLimit
	change := func(bytes int64, runs int) {
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

// The shares of Options.Memory; doc.go says of what.
func bufferShare(memory int64) int64 { return memory / 2 }
func writeShare(memory int64) int64  { return max(memory/4, 1) }

// segmentOptions bounds the feature files that wait for their place in a pack: an eighth of memory.
func segmentOptions(memory int64) storage.SegmentOptions {
	return storage.SegmentOptions{
		HoldBytes:       min(max(memory/8, 1<<20), 128<<20),
		StandAloneBytes: min(max(memory/64, 1<<20), 16<<20),
	}
}

// chunkShare is how large a source shall make its chunks when so many are read at once.
func chunkShare(memory int64, readers int) int64 {
	return min(max(memory/int64(16*readers), 64<<10), 8<<20)
}

// pageShare is what the open pages of one source may hold when so many are read at once.
func pageShare(memory int64, readers int) int64 { return max(memory/int64(16*readers), 1<<20) }
