package cache

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/internal/lru"
)

// Selections keep which rows of segments filters select, those that were used last, within a bound on bytes. Segments
// are immutable, and so is what a filter selects of one: nothing that is kept ever gets old. Safe for concurrent use.
type Selections struct {
	max int64

	mu   sync.Mutex
	kept *lru.Cache[Key, *roaring.Bitmap] // nil bitmap: every row; guarded by mu
}

// A Key names a segment, a filter with the features that it reads, and the layers over the segment that these come
// from.
type Key struct{ Segment, Index, Filter, Layers string }

// NewSelections returns Selections that keep about so many bytes.
func NewSelections(maxBytes int64) *Selections {
	return &Selections{max: maxBytes, kept: lru.New[Key, *roaring.Bitmap](maxBytes, nil)}
}

// Shared are those of layouts that do not say otherwise.
var Shared = NewSelections(64 << 20)

// selectionOverhead is about what an entry takes beside its bitmap and its texts.
const selectionOverhead = 256

// Get returns what a filter selects of a segment, nil for every row; ok: it is known.
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

// Put keeps what a filter selects of a segment. Nobody writes to rows afterwards.
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
	if _, ok := s.kept.Get(key); !ok { // else two made it
		s.kept.Put(key, rows, size)
	}
}
