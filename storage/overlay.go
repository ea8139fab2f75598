package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/wire"
)

// Overlays returns the overlays of the snapshot: those that are merged, the lowest first, and then the others, by number. Its cost is one request
// or two, and none in a snapshot without overlays.
func (s *Snapshot) Overlays(ctx context.Context) ([]catalog.Overlay, error) {
	if s.m.overlays == 0 {
		return nil, nil
	}
	var out []catalog.Overlay
	err := s.space(ctx, catalog.OverlaySpace, func(key, value []byte) string {
		o, reason := catalog.DecodeOverlay(string(key[1:]), value)
		out = append(out, o)
		return reason
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b catalog.Overlay) int {
		// Merged-1: those that are not come last.
		return cmp.Or(cmp.Compare(a.Merged-1, b.Merged-1), cmp.Compare(a.Number, b.Number))
	})
	return out, nil
}

// Overlay returns the overlay of a name; ErrNotFound names the nearest.
func (s *Snapshot) Overlay(ctx context.Context, name string) (catalog.Overlay, error) {
	o, err := s.findOverlay(ctx, name)
	if err != nil || o != nil {
		return deref(o), err
	}
	all, err := s.Overlays(ctx)
	if err != nil {
		return catalog.Overlay{}, err
	}
	var names []string
	for _, o := range all {
		names = append(names, o.Name)
	}
	return catalog.Overlay{}, fmt.Errorf("table %s: overlay %.150q: %w%s", s.t.name, name, ErrNotFound, suggest.Hint(name, names))
}

// findOverlay returns nil where there is no such overlay.
func (s *Snapshot) findOverlay(ctx context.Context, name string) (*catalog.Overlay, error) {
	if s.m.overlays == 0 {
		return nil, nil
	}
	values, err := s.t.s.trees.Get(ctx, s.m.listing, catalog.OverlayKey(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	o, reason := catalog.DecodeOverlay(name, values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.treeName(s.m.listing), reason)
	}
	return &o, nil
}

// deref returns what p points to, the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// space calls visit for every entry of a space of the listing. What visit returns, unless it is empty, is wrong with it.
func (s *Snapshot) space(ctx context.Context, space byte, visit func(key, value []byte) (reason string)) error {
	lower, upper := catalog.SpaceBounds(space)
	return s.between(ctx, lower, upper, visit)
}

// between is space for the keys from lower on and below upper.
func (s *Snapshot) between(ctx context.Context, lower, upper []byte, visit func(key, value []byte) (reason string)) error {
	it := s.t.s.trees.Iter(ctx, s.m.listing, upper)
	for ok := it.Seek(ctx, lower); ok; ok = it.Next(ctx) {
		if reason := visit(it.Key, it.Value); reason != "" {
			return wire.Corrupt(s.treeName(s.m.listing), reason)
		}
	}
	return it.Err
}
