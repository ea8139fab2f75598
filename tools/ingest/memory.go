package ingest

import "github.com/dsistore/dsistore/storage"

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
