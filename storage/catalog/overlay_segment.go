package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Layer is what an overlay has for one segment: a segment of its own, whose feature files are the overlay's features
// for the same rows in the same stripes. Table.NewOverlaySegment writes one.
type OverlaySegment struct {
	Overlay string
	Segment string // id of the segment that it lies over
	// Data is the segment with the overlay's features. Its partition, rows and stripes are those of Segment.
	Data SegmentDescriptor
	// All: every row is covered. Else Covered has those that are; what Data holds in the others means nothing.
	All     bool
	Covered bitmap.Ref
	// Since is the snapshot that set the layer. Commit sets it.
	Since uint64
}

// appendLayer appends the value of a layer's entry; overlay and segment are its key.
//
//	since | its segment's descriptor, a string | 01: all rows are covered
//	                                           | 00, then the set of those that are
func AppendOverlaySegment(dst []byte, l OverlaySegment) []byte {
	dst = binary.AppendUvarint(dst, l.Since)
	dst = wire.AppendString(dst, AppendDescriptor(nil, l.Data))
	if l.All {
		return append(dst, 1)
	}
	return bitmap.AppendRef(append(dst, 0), l.Covered)
}

// decodeLayer decodes what appendLayer wrote; the reason is empty when it is right. The row bitmap borrows b.
func DecodeOverlaySegment(overlay string, segment names.ID, b []byte, place string) (OverlaySegment, string) {
	d := wire.Decoder{Rest: b}
	l := OverlaySegment{Overlay: overlay, Segment: segment.String(), Since: d.Uvarint()}
	data := d.Bytes()
	if d.Reason == "" {
		var reason string
		if l.Data, reason = DecodeDescriptor(data); reason != "" {
			d.Fail(reason)
		}
	}
	switch all := d.Byte(); all {
	case 1:
		l.All = true
		d.End()
	case 0:
		l.Covered = bitmap.DecodeRef(&d, l.Since, l.Data.Rows, place)
	default:
		d.Fail("coverage is neither 0 nor 1")
	}
	if d.Reason != "" {
		return OverlaySegment{}, fmt.Sprintf("layer over segment %s: %s", segment, d.Reason)
	}
	return l, ""
}

// parseLayer decodes an entry of the listing. The overlay's name is not in it.
func ParseOverlaySegment(key, value []byte, place string) (OverlaySegment, string) {
	if len(key) != 5+16 || key[0] != OverlaySegmentSpace {
		return OverlaySegment{}, "layer key is malformed"
	}
	segment, ok := SegmentOf(key, key[:5])
	if !ok {
		return OverlaySegment{}, "layer key is malformed"
	}
	return DecodeOverlaySegment("", segment, value, place)
}

// misfit says what of a layer is not as the segment under it; empty: nothing.
func (l *OverlaySegment) Mismatch(base SegmentDescriptor) string {
	if l.Data.Rows != base.Rows || !l.Data.Partition.Equal(base.Partition) {
		return fmt.Sprintf("layer of overlay %s has %d rows of partition %q: segment %s has %d of %q",
			l.Overlay, l.Data.Rows, l.Data.Partition, base.ID, base.Rows, base.Partition)
	}
	return ""
}
