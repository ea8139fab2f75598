package spill

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestMemoryLimitIsRestored: the runtime's limit is the sum of what runs, and in the end what it was.
func TestMemoryLimitIsRestored(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	first := HoldMemory(1 << 30)
	second := HoldMemory(1 << 20)
	if got := debug.SetMemoryLimit(-1); got != 1<<30+1<<20 {
		t.Fatalf("limit %d", got)
	}
	first()
	if got := debug.SetMemoryLimit(-1); got != minLimit {
		t.Fatalf("limit %d", got)
	}
	second()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Fatalf("limit %d", got)
	}
}
