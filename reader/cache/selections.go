package cache

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/internal/lru"
)

// Selections is an LRU cache of the rows of segments that filters select, limited in bytes. Segments are immutable, so
// entries never become stale. Safe for concurrent use.
type Selections struct {
	max int64

	mu   sync.Mutex
	kept *lru.Cache[Key, *roaring.Bitmap] // nil bitmap: every row; guarded by mu
}

// A Key identifies a segment, a filter with the features that it reads, and the layers over the segment that have these
// features.
type Key struct{ Segment, Index, Filter, Layers string }

// NewSelections returns Selections that hold about maxBytes.
func NewSelections(maxBytes int64) *Selections {
	return &Selections{max: maxBytes, kept: lru.New[Key, *roaring.Bitmap](maxBytes, nil)}
}

// Shared is the default of all layouts of the process.
var Shared = NewSelections(64 << 20)

// selectionOverhead is the approximate memory of an entry without its bitmap and strings.
const selectionOverhead = 256

// Get returns the rows that a filter selects of a segment, nil for every row; ok: they are in the cache. Borrowed: do
// not write.
func (s *Selections) Get(key Key) (rows *roaring.Bitmap, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, ok = s.kept.Get(key)
	if ok {
		reused.selectionHits.Add(1)
	} else {
		reused.selectionMisses.Add(1)
	}
	return rows, ok
}

// Put adds the rows that a filter selects of a segment, nil for every row. rows must not be changed afterwards.
func (s *Selections) Put(key Key, rows *roaring.Bitmap) {
	size := int64(selectionOverhead + len(key.Segment) + len(key.Index) + len(key.Filter) + len(key.Layers))
	if rows != nil {
		size += int64(rows.GetSizeInBytes())
	}
	if size > s.max {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.kept.Get(key); !ok { // else another goroutine has put it
		s.kept.Put(key, rows, size)
	}
}
