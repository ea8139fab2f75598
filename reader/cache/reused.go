package cache

import "sync/atomic"

// ReuseStats count how often readers of this process found cached things. The counters only grow.
type ReuseStats struct {
	// SelectionHits and SelectionMisses count look-ups in Selections, one for each segment and filter.
	SelectionHits, SelectionMisses uint64
	// MemoryHits are readers with Options.Reuse that got the memory of a closed reader, MemoryMisses the others.
	MemoryHits, MemoryMisses uint64
}

var reused struct {
	selectionHits, selectionMisses atomic.Uint64
	memoryHits, memoryMisses       atomic.Uint64
}

// CountMemory counts a reader with Options.Reuse. hit: it got the memory of a closed reader.
func CountMemory(hit bool) {
	if hit {
		reused.memoryHits.Add(1)
	} else {
		reused.memoryMisses.Add(1)
	}
}

// Reused returns the counters of all readers of the process.
func Reused() ReuseStats {
	return ReuseStats{
		SelectionHits: reused.selectionHits.Load(), SelectionMisses: reused.selectionMisses.Load(),
		MemoryHits: reused.memoryHits.Load(), MemoryMisses: reused.memoryMisses.Load(),
	}
}
