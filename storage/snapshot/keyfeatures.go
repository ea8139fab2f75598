package snapshot

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// NotedKeyFeatures returns the entry, nil where there is none that holds. Its cost is one look-up.
func (s *Snapshot) NotedKeyFeatures(ctx context.Context) (*catalog.KeyFeatures, error) {
	if s.Manifest.Info.Features == 0 {
		return &catalog.KeyFeatures{}, nil
	}
	values, err := s.GetSchema(ctx, catalog.KeyFeaturesKey())
	if err != nil || values[0] == nil {
		return nil, err
	}
	k, reason := catalog.DecodeKeyFeatures(values[0])
	if reason != "" {
		return nil, s.CorruptSchema(reason)
	}
	if k.Of != s.Manifest.Info.Features {
		return nil, nil
	}
	return &k, nil
}

// KeyFeatures returns the session, request, user and time keys of the schema, in name order. Its cost is two look-ups;
// in a snapshot of a writer that did not note them it is the schema's.
func (s *Snapshot) KeyFeatures(ctx context.Context) ([]catalog.Feature, error) {
	k, err := s.NotedKeyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	if k == nil {
		all, err := s.Features(ctx)
		return slices.DeleteFunc(all, func(f catalog.Feature) bool { return !f.Role.IsKey() }), err
	}
	var names []string
	for _, f := range k.Keys {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	found, err := s.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	var out []catalog.Feature
	for i, f := range found {
		if f == nil || !slices.Contains(k.Keys, catalog.KeyFeature{Role: f.Role, Name: f.Name}) {
			return nil, s.CorruptSchema(fmt.Sprintf("key features: %.100q is not what it is said to be", names[i]))
		}
		out = append(out, *f)
	}
	return out, nil
}

// KeyRows is Store.KeyRows of package segment, and every row where an overlay that is part of the table replaces the
// feature.
func (s *Snapshot) KeyRows(ctx context.Context, f catalog.Feature, hashes []uint64,
	segments []catalog.SegmentDescriptor) ([]*roaring.Bitmap, error) {
	if !slices.ContainsFunc(segments, func(d catalog.SegmentDescriptor) bool { return d.KeysSize > 0 }) {
		return make([]*roaring.Bitmap, len(segments)), nil
	}
	if hashes = segment.SortHashes(hashes); !segment.ReadsKeyTables(segments, hashes) {
		return make([]*roaring.Bitmap, len(segments)), nil
	}
	overlays, err := s.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range overlays {
		if o.Merged > 0 && slices.ContainsFunc(o.Features, func(x catalog.Feature) bool { return x.ID == f.ID }) {
			return make([]*roaring.Bitmap, len(segments)), nil
		}
	}
	return s.Log.Store.Segments.KeyRows(ctx, f.ID, hashes, segments)
}

// KeysOf returns the names of the features with the role of a key, in order.
func (s *Snapshot) KeysOf(ctx context.Context, role catalog.Role) ([]string, error) {
	keys, err := s.KeyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range keys {
		if f.Role == role {
			names = append(names, f.Name)
		}
	}
	return names, nil
}
