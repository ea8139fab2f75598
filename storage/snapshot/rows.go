package snapshot

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

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
		return s.GetListing(ctx, keys...)
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
			return nil, s.CorruptListing(fmt.Sprintf("%s of segment %s: %s", what,
				segments[i].ID, reason))
		}
	}
	return out, nil
}

// ListedRows returns the rows of segments of the snapshot that are in a sample list, in order; deleted ones may be
// among them. A list that does not exist has none: SampleList tells. Its cost follows from what is asked for.
func (s *Snapshot) ListedRows(ctx context.Context, list string,
	segments ...catalog.SegmentDescriptor) ([]bitmap.Ref, error) {
	if s.Manifest.Lists == 0 {
		return make([]bitmap.Ref, len(segments)), nil
	}
	return s.rowBitmaps(ctx, catalog.ListRowsPrefix(list), "rows of sample list "+list, segments)
}
