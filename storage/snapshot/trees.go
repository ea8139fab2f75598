package snapshot

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/wire"
)

// GetListing returns the values of keys of the listing, nil where there is none.
func (s *Snapshot) GetListing(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	return s.Log.Store.Trees.Get(ctx, s.Manifest.Listing, keys...)
}

// GetSchema returns the values of keys of the schema, nil where there is none.
func (s *Snapshot) GetSchema(ctx context.Context, keys ...[]byte) ([][]byte, error) {
	return s.Log.Store.Trees.Get(ctx, s.Manifest.Schema, keys...)
}

// CorruptListing says what is wrong with an entry of the listing.
func (s *Snapshot) CorruptListing(reason string) error {
	return wire.Corrupt(s.TreeName(s.Manifest.Listing), reason)
}

// CorruptSchema says what is wrong with an entry of the schema.
func (s *Snapshot) CorruptSchema(reason string) error {
	return wire.Corrupt(s.TreeName(s.Manifest.Schema), reason)
}

// EachIn calls visit for every entry of a space of the listing. What visit returns, unless it is empty, is wrong with
// it.
func (s *Snapshot) EachIn(ctx context.Context, space byte, visit func(key, value []byte) (reason string)) error {
	lower, upper := catalog.SpaceBounds(space)
	return s.EachBetween(ctx, lower, upper, visit)
}

// EachBetween is EachIn for the keys from lower on and below upper.
func (s *Snapshot) EachBetween(ctx context.Context, lower, upper []byte,
	visit func(key, value []byte) (reason string)) error {
	return s.each(ctx, s.Manifest.Listing, lower, upper, visit)
}

// each is EachBetween for either tree.
func (s *Snapshot) each(ctx context.Context, t lsm.Tree, lower, upper []byte,
	visit func(key, value []byte) (reason string)) error {
	it := s.Log.Store.Trees.Iter(ctx, t, upper)
	for ok := it.Seek(ctx, lower); ok; ok = it.Next(ctx) {
		if reason := visit(it.Key, it.Value); reason != "" {
			return wire.Corrupt(s.TreeName(t), reason)
		}
	}
	return it.Err
}
