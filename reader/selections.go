package reader

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/internal/lru"
)

// Selections keep which rows of segments filters select, those that were used last, within a bound on bytes. Segments are immutable, and so
// is what a filter selects of one: nothing that is kept ever gets old. Safe for concurrent use.
type Selections struct {
	max int64

	mu   sync.Mutex
	kept *lru.Cache[selectionKey, *roaring.Bitmap] // nil bitmap: every row; guarded by mu
}

// A selectionKey names a segment, a filter with the features that it reads, and the layers over the segment that these come from.
type selectionKey struct{ segment, index, filter, layers string }

// NewSelections returns Selections that keep about so many bytes.
func NewSelections(maxBytes int64) *Selections {
	return &Selections{max: maxBytes, kept: lru.New[selectionKey, *roaring.Bitmap](maxBytes, nil)}
}

// sharedSelections are those of layouts that do not say otherwise.
var sharedSelections = NewSelections(64 << 20)

// selectionOverhead is about what an entry takes beside its bitmap and its texts.
const selectionOverhead = 256

func (s *Selections) get(key selectionKey) (rows *roaring.Bitmap, ok bool) {
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

// put keeps what a filter selects of a segment. Nobody writes to rows afterwards.
func (s *Selections) put(key selectionKey, rows *roaring.Bitmap) {
	size := int64(selectionOverhead + len(key.segment) + len(key.index) + len(key.filter) + len(key.layers))
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
