package cache

import "sync/atomic"

// ReuseStats say how often what this process keeps in memory for readers to come served one of them. Counters only
// grow.
type ReuseStats struct {
	// SelectionHits are segments of which it was known what a filter selects, SelectionMisses those of which it had to
	// be found out (Selections).
	SelectionHits, SelectionMisses uint64
	// MemoryHits are readers with Options.Reuse that went on with the memory of one before, MemoryMisses those for
	// which there was none that fits.
	MemoryHits, MemoryMisses uint64
}

var reused struct {
	selectionHits, selectionMisses atomic.Uint64
	memoryHits, memoryMisses       atomic.Uint64
}

// CountMemory counts a reader with Options.Reuse; hit: it goes on with the memory of one before.
func CountMemory(hit bool) {
	if hit {
		reused.memoryHits.Add(1)
	} else {
		reused.memoryMisses.Add(1)
	}
}

// Reused returns what was reused so far, of all readers of the process.
func Reused() ReuseStats {
	return ReuseStats{
		SelectionHits: reused.selectionHits.Load(), SelectionMisses: reused.selectionMisses.Load(),
		MemoryHits: reused.memoryHits.Load(), MemoryMisses: reused.memoryMisses.Load(),
	}
}
