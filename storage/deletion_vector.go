package storage

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/wire"
)

// A DeletionVector has rows of a segment that a commit deletes. Readers of its snapshot, and of later ones, do not see them.
type DeletionVector struct {
	Segment string    // id
	Rows    RowBitmap // of Store.PutRowBitmap
}

// appendSet appends the value of the entry of a segment's deleted rows, or rows of a sample list:
//
//	since | the set
func appendSet(dst []byte, r RowBitmap) []byte {
	return appendRowBitmap(binary.AppendUvarint(dst, r.Since), r)
}

// decodeSet decodes a set of rows that the number of the snapshot precedes. The set borrows b.
func decodeSet(b []byte, rows uint64, place string) (RowBitmap, string) {
	d := wire.Decoder{Rest: b}
	since := d.Uvarint()
	r := decodeRowBitmap(&d, since, rows, place)
	return r, d.Reason
}

// DeletedRows returns the deleted rows of segments of the snapshot, in order. Its cost follows from what is asked for, and is
// none in a snapshot without deletes.
func (s *Snapshot) DeletionVectors(ctx context.Context, segments ...catalog.SegmentDescriptor) ([]RowBitmap, error) {
	if s.m.info.DeletedRows == 0 {
		return make([]RowBitmap, len(segments)), nil
	}
	return s.rowBitmaps(ctx, []byte{catalog.DeletesSpace}, "deleted rows", segments)
}

// rowSets returns the sets under prefix of the segments, empty where there is none.
func (s *Snapshot) rowBitmaps(ctx context.Context, prefix []byte, what string, segments []catalog.SegmentDescriptor) ([]RowBitmap, error) {
	values, err := s.perSegment(ctx, prefix, segments)
	if err != nil {
		return nil, err
	}
	out := make([]RowBitmap, len(segments))
	for i, v := range values {
		if v == nil {
			continue
		}
		var reason string
		if out[i], reason = decodeSet(v, segments[i].Rows, s.treeName(s.m.listing)); reason != "" {
			return nil, wire.Corrupt(s.treeName(s.m.listing), fmt.Sprintf("%s of segment %s: %s", what, segments[i].ID, reason))
		}
	}
	return out, nil
}
