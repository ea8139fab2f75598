package storage

import (
	"testing"

	"github.com/dsistore/dsistore/storage/object"
)

// TestRunCacheStats: a run that was opened is found the next time, and a Store that has just begun has none.
func TestRunCacheStats(t *testing.T) {
	mem := object.NewMemory()
	tab := newTable(t, mem)
	tab.s.core.Trees.MemtableBytes = 1 // every commit makes runs
	commitFeatures(t, tab, feature("a", int64Type), feature("b", int64Type))
	fresh := newTable(t, mem)
	s, err := fresh.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if hits, misses := fresh.s.RunCacheStats(); hits+misses != 0 {
		t.Errorf("%d and %d of a store that was asked for nothing", hits, misses)
	}
	for i := range uint64(3) {
		if _, err := s.Lookup(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if hits, misses := fresh.s.RunCacheStats(); misses != 1 || hits != i {
			t.Errorf("look-up %d: %d found, %d opened", i+1, hits, misses)
		}
	}
}
