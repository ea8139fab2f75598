package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// Overlays returns the overlays of the snapshot: those that are merged, the lowest first, and then the others, by
// number. Its cost is one request or two, and none in a snapshot without overlays.
func (s *Snapshot) Overlays(ctx context.Context) ([]catalog.Overlay, error) {
	if s.Manifest.Overlays == 0 {
		return nil, nil
	}
	var out []catalog.Overlay
	err := s.EachIn(ctx, catalog.OverlaySpace, func(key, value []byte) string {
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
	o, err := s.FindOverlay(ctx, name)
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
	return catalog.Overlay{}, fmt.Errorf("table %s: overlay %.150q: %w%s", s.Log.Table, name, catalog.ErrNotFound,
		suggest.Hint(name, names))
}

// FindOverlay returns nil where there is no such overlay.
func (s *Snapshot) FindOverlay(ctx context.Context, name string) (*catalog.Overlay, error) {
	if s.Manifest.Overlays == 0 {
		return nil, nil
	}
	values, err := s.Log.Store.Trees.Get(ctx, s.Manifest.Listing, catalog.OverlayKey(name))
	if err != nil || values[0] == nil {
		return nil, err
	}
	o, reason := catalog.DecodeOverlay(name, values[0])
	if reason != "" {
		return nil, wire.Corrupt(s.TreeName(s.Manifest.Listing), reason)
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

// EachIn calls visit for every entry of a space of the listing. What visit returns, unless it is empty, is wrong with
// it.
func (s *Snapshot) EachIn(ctx context.Context, space byte, visit func(key, value []byte) (reason string)) error {
	lower, upper := catalog.SpaceBounds(space)
	return s.EachBetween(ctx, lower, upper, visit)
}

// EachBetween is space for the keys from lower on and below upper.
func (s *Snapshot) EachBetween(ctx context.Context, lower, upper []byte, visit func(key,
	value []byte) (reason string)) error {
	it := s.Log.Store.Trees.Iter(ctx, s.Manifest.Listing, upper)
	for ok := it.Seek(ctx, lower); ok; ok = it.Next(ctx) {
		if reason := visit(it.Key, it.Value); reason != "" {
			return wire.Corrupt(s.TreeName(s.Manifest.Listing), reason)
		}
	}
	return it.Err
}

// Layers returns what the overlays have for segments of the snapshot: out[i][j] is the layer of overlays[j] over
// segments[i], nil where it has none. Its cost follows from what is asked for, not from what the table has.
func (s *Snapshot) OverlaySegments(ctx context.Context, overlays []catalog.Overlay,
	segments ...catalog.SegmentDescriptor) ([][]*catalog.OverlaySegment, error) {
	out := make([][]*catalog.OverlaySegment, len(segments))
	for i := range out {
		out[i] = make([]*catalog.OverlaySegment, len(overlays))
	}
	if s.Manifest.Overlays == 0 {
		return out, nil
	}
	for j, o := range overlays {
		values, err := s.PerSegment(ctx, catalog.OverlaySegmentPrefix(o.Number), segments)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if v == nil {
				continue
			}
			segment, err := names.ParseID(segments[i].ID)
			if err != nil {
				return nil, err
			}
			l, reason := catalog.DecodeOverlaySegment(o.Name, segment, v, s.TreeName(s.Manifest.Listing))
			if reason == "" {
				reason = l.Mismatch(segments[i])
			}
			if reason != "" {
				return nil, wire.Corrupt(s.TreeName(s.Manifest.Listing), reason)
			}
			out[i][j] = &l
		}
	}
	return out, nil
}

// EachOverlaySegment calls visit for every layer of an overlay, in the order of segment ids, until visit returns an
// error.
func (s *Snapshot) EachOverlaySegment(ctx context.Context, o catalog.Overlay,
	visit func(catalog.OverlaySegment) error) error {
	if s.Manifest.Overlays == 0 {
		return nil
	}
	prefix := catalog.OverlaySegmentPrefix(o.Number)
	var stop error
	err := s.EachBetween(ctx, prefix, catalog.PrefixEnd(prefix), func(key, value []byte) string {
		if stop != nil {
			return ""
		}
		segment, ok := catalog.SegmentOf(key, prefix)
		if !ok {
			return "layer key is malformed"
		}
		l, reason := catalog.DecodeOverlaySegment(o.Name, segment, append([]byte(nil), value...),
			s.TreeName(s.Manifest.Listing))
		if reason == "" {
			stop = visit(l)
		}
		return reason
	})
	if stop != nil {
		return stop
	}
	return err
}

// scanShare: when more than one of so many of a snapshot's segments are asked about, their space is walked, and not
// each looked up.
const scanShare = 16

// PerSegment returns the entries of prefix and each segment's id, nil where there is none. What it returns is the
// caller's.
func (s *Snapshot) PerSegment(ctx context.Context, prefix []byte,
	segments []catalog.SegmentDescriptor) ([][]byte, error) {
	keys := make([][]byte, len(segments))
	for i, d := range segments {
		segment, err := names.ParseID(d.ID)
		if err != nil {
			return nil, err
		}
		keys[i] = append(prefix[:len(prefix):len(prefix)], segment[:]...)
	}
	if uint64(len(segments)) <= s.Manifest.Info.Segments/scanShare || len(segments) < scanShare {
		return s.Log.Store.Trees.Get(ctx, s.Manifest.Listing, keys...)
	}
	at := make(map[string][]int, len(keys))
	for i, k := range keys {
		at[string(k)] = append(at[string(k)], i)
	}
	out := make([][]byte, len(segments))
	err := s.EachBetween(ctx, prefix, catalog.PrefixEnd(prefix), func(key, value []byte) string {
		for _, i := range at[string(key)] {
			out[i] = append(make([]byte, 0, len(value)), value...)
		}
		return ""
	})
	return out, err
}

// DeletionVectors returns the deleted rows of segments of the snapshot, in order. Its cost follows from what is asked
// for, and is none in a snapshot without deletes.
func (s *Snapshot) DeletionVectors(ctx context.Context, segments ...catalog.SegmentDescriptor) ([]bitmap.Ref, error) {
	if s.Manifest.Info.DeletedRows == 0 {
		return make([]bitmap.Ref, len(segments)), nil
	}
	return s.rowBitmaps(ctx, []byte{catalog.DeletesSpace}, "deleted rows", segments)
}

// rowBitmaps returns the sets under prefix of the segments, empty where there is none.
func (s *Snapshot) rowBitmaps(ctx context.Context, prefix []byte, what string,
	segments []catalog.SegmentDescriptor) ([]bitmap.Ref, error) {
	values, err := s.PerSegment(ctx, prefix, segments)
	if err != nil {
		return nil, err
	}
	out := make([]bitmap.Ref, len(segments))
	for i, v := range values {
		if v == nil {
			continue
		}
		var reason string
		if out[i], reason = bitmap.DecodeEntry(v, segments[i].Rows, s.TreeName(s.Manifest.Listing)); reason != "" {
			return nil, wire.Corrupt(s.TreeName(s.Manifest.Listing), fmt.Sprintf("%s of segment %s: %s", what,
				segments[i].ID, reason))
		}
	}
	return out, nil
}
