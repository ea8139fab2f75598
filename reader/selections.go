package reader

import (
	"container/list"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// Selections keep which rows of segments filters select, those that were used last, within a bound on bytes. Segments are immutable, and so
// is what a filter selects of one: nothing that is kept ever gets old. Safe for concurrent use.
type Selections struct {
	max int64

	mu    sync.Mutex
	size  int64                          // guarded by mu
	byKey map[selectionKey]*list.Element // guarded by mu
	used  *list.List                     // of keptSelection, the last one used in front; guarded by mu
}

// A selectionKey names a segment, a filter with the features that it reads, and the layers over the segment that these come from.
type selectionKey struct{ segment, index, filter, layers string }

type keptSelection struct {
	key  selectionKey
	rows *roaring.Bitmap // nil: every row
	size int64
}

// NewSelections returns Selections that keep about so many bytes.
func NewSelections(maxBytes int64) *Selections {
	return &Selections{max: maxBytes, byKey: map[selectionKey]*list.Element{}, used: list.New()}
}

// sharedSelections are those of layouts that do not say otherwise.
var sharedSelections = NewSelections(64 << 20)

// selectionOverhead is about what an entry takes beside its bitmap and its texts.
const selectionOverhead = 256

func (s *Selections) get(key selectionKey) (rows *roaring.Bitmap, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[key]
	if e == nil {
		reused.selectionMisses.Add(1)
		return nil, false
	}
	reused.selectionHits.Add(1)
	s.used.MoveToFront(e)
	return e.Value.(*keptSelection).rows, true
}

// put keeps what a filter selects of a segment. Nobody writes to rows afterwards.
func (s *Selections) put(key selectionKey, rows *roaring.Bitmap) {
	x := &keptSelection{key: key, rows: rows, size: int64(selectionOverhead + len(key.segment) + len(key.index) + len(key.filter) + len(key.layers))}
	if rows != nil {
		x.size += int64(rows.GetSizeInBytes())
	}
	if x.size > s.max {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[key] != nil { // two made it
		return
	}
	s.byKey[key] = s.used.PushFront(x)
	s.size += x.size
	for s.size > s.max {
		e := s.used.Back()
		old := s.used.Remove(e).(*keptSelection)
		delete(s.byKey, old.key)
		s.size -= old.size
	}
}
