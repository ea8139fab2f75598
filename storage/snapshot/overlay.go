package snapshot

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

// OverlaySegments returns what the overlays have for segments of the snapshot: out[i][j] is the layer of overlays[j]
// over segments[i], nil where it has none. Its cost follows from what is asked for, not from what the table has.
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
				return nil, s.CorruptListing(reason)
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
