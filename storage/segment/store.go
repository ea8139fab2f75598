package segment

import (
	"cmp"
	"context"
	"sync"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/lru"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// openKeyBytes bounds, about, the memory of the key tables that a Store keeps open.
const openKeyBytes = 64 << 20

// A Store opens and writes segments, and keeps key tables open. Safe for concurrent use.
type Store struct {
	Blobs  object.Store
	Limits format.Limits // what stored metadata may claim
	// MinKeyRows is how many rows a segment has at least to get a key table.
	MinKeyRows uint64

	mu   sync.Mutex
	keys *lru.Cache[names.ID, *keyTable] // open key tables; guarded by mu
}

// NewStore returns a store of segments over blobs. minKeyRows of 0 is the default.
func NewStore(blobs object.Store, limits format.Limits, minKeyRows uint64) *Store {
	return &Store{
		Blobs: blobs, Limits: limits, MinKeyRows: cmp.Or(minKeyRows, defaultKeyRows), keys: lru.New[names.ID,
			*keyTable](openKeyBytes, nil),
	}
}

// Close drops the open key tables.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.Clear()
}

// Discard removes the objects of a segment that was finished and that no commit will add. Never call it for a segment
// that was committed.
func (s *Store) Discard(ctx context.Context, d catalog.SegmentDescriptor) error {
	segment, err := names.ParseID(d.ID)
	if err != nil {
		return err
	}
	var names []string
	for info, err := range s.Blobs.List(ctx, segment.Dir(), "") {
		if err != nil {
			return err
		}
		names = append(names, info.Name)
	}
	return object.DeleteAll(ctx, s.Blobs, names)
}
