package ingest

// chunkShare is how large a source shall make its chunks when so many are read at once.
func chunkShare(memory int64, readers int) int64 {
	return min(max(memory/int64(16*readers), 64<<10), 8<<20)
}

// pageShare is what the open pages of one source may hold when so many are read at once.
func pageShare(memory int64, readers int) int64 { return max(memory/int64(16*readers), 1<<20) }
