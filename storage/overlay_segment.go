package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Layer is what an overlay has for one segment: a segment of its own, whose feature files are the overlay's features for the
// same rows in the same stripes. Table.NewOverlaySegment writes one.
type OverlaySegment struct {
	Overlay string
	Segment string // id of the segment that it lies over
	// Data is the segment with the overlay's features. Its partition, rows and stripes are those of Segment.
	Data catalog.SegmentDescriptor
	// All: every row is covered. Else Covered has those that are; what Data holds in the others means nothing.
	All     bool
	Covered RowBitmap
	// Since is the snapshot that set the layer. Commit sets it.
	Since uint64
}

// appendLayer appends the value of a layer's entry; overlay and segment are its key.
//
//	since | its segment's descriptor, a string | 01: all rows are covered
//	                                           | 00, then the set of those that are
func appendOverlaySegment(dst []byte, l OverlaySegment) []byte {
	dst = binary.AppendUvarint(dst, l.Since)
	dst = wire.AppendString(dst, catalog.AppendDescriptor(nil, l.Data))
	if l.All {
		return append(dst, 1)
	}
	return appendRowBitmap(append(dst, 0), l.Covered)
}

// decodeLayer decodes what appendLayer wrote; the reason is empty when it is right. The set of rows borrows b.
func decodeOverlaySegment(overlay string, segment names.ID, b []byte, place string) (OverlaySegment, string) {
	d := wire.Decoder{Rest: b}
	l := OverlaySegment{Overlay: overlay, Segment: segment.String(), Since: d.Uvarint()}
	data := d.Bytes()
	if d.Reason == "" {
		var reason string
		if l.Data, reason = catalog.DecodeDescriptor(data); reason != "" {
			d.Fail(reason)
		}
	}
	switch all := d.Byte(); all {
	case 1:
		l.All = true
		d.End()
	case 0:
		l.Covered = decodeRowBitmap(&d, l.Since, l.Data.Rows, place)
	default:
		d.Fail("coverage is neither 0 nor 1")
	}
	if d.Reason != "" {
		return OverlaySegment{}, fmt.Sprintf("layer over segment %s: %s", segment, d.Reason)
	}
	return l, ""
}

// parseLayer decodes an entry of the listing. The overlay's name is not in it.
func parseOverlaySegment(key, value []byte, place string) (OverlaySegment, string) {
	if len(key) != 5+16 || key[0] != catalog.OverlaySegmentSpace {
		return OverlaySegment{}, "layer key is malformed"
	}
	segment, ok := catalog.SegmentOf(key, key[:5])
	if !ok {
		return OverlaySegment{}, "layer key is malformed"
	}
	return decodeOverlaySegment("", segment, value, place)
}

// Layers returns what the overlays have for segments of the snapshot: out[i][j] is the layer of overlays[j] over segments[i],
// nil where it has none. Its cost follows from what is asked for, not from what the table has.
func (s *Snapshot) OverlaySegments(ctx context.Context, overlays []catalog.Overlay, segments ...catalog.SegmentDescriptor) ([][]*OverlaySegment, error) {
	out := make([][]*OverlaySegment, len(segments))
	for i := range out {
		out[i] = make([]*OverlaySegment, len(overlays))
	}
	if s.m.overlays == 0 {
		return out, nil
	}
	for j, o := range overlays {
		values, err := s.perSegment(ctx, catalog.OverlaySegmentPrefix(o.Number), segments)
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
			l, reason := decodeOverlaySegment(o.Name, segment, v, s.treeName(s.m.listing))
			if reason == "" {
				reason = l.mismatch(segments[i])
			}
			if reason != "" {
				return nil, wire.Corrupt(s.treeName(s.m.listing), reason)
			}
			out[i][j] = &l
		}
	}
	return out, nil
}

// misfit says what of a layer is not as the segment under it; empty: nothing.
func (l *OverlaySegment) mismatch(base catalog.SegmentDescriptor) string {
	if l.Data.Rows != base.Rows || !l.Data.Partition.Equal(base.Partition) {
		return fmt.Sprintf("layer of overlay %s has %d rows of partition %q: segment %s has %d of %q",
			l.Overlay, l.Data.Rows, l.Data.Partition, base.ID, base.Rows, base.Partition)
	}
	return ""
}

// EachOverlaySegment calls visit for every layer of an overlay, in the order of segment ids, until visit returns an error.
func (s *Snapshot) EachOverlaySegment(ctx context.Context, o catalog.Overlay, visit func(OverlaySegment) error) error {
	if s.m.overlays == 0 {
		return nil
	}
	prefix := catalog.OverlaySegmentPrefix(o.Number)
	var stop error
	err := s.between(ctx, prefix, catalog.PrefixEnd(prefix), func(key, value []byte) string {
		if stop != nil {
			return ""
		}
		segment, ok := catalog.SegmentOf(key, prefix)
		if !ok {
			return "layer key is malformed"
		}
		l, reason := decodeOverlaySegment(o.Name, segment, append([]byte(nil), value...), s.treeName(s.m.listing))
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

// scanShare: when more than one of so many of a snapshot's segments are asked about, their space is walked, and not each
// looked up.
const scanShare = 16

// perSegment returns the entries of prefix and each segment's id, nil where there is none. What it returns is the caller's.
func (s *Snapshot) perSegment(ctx context.Context, prefix []byte, segments []catalog.SegmentDescriptor) ([][]byte, error) {
	keys := make([][]byte, len(segments))
	for i, d := range segments {
		segment, err := names.ParseID(d.ID)
		if err != nil {
			return nil, err
		}
		keys[i] = append(prefix[:len(prefix):len(prefix)], segment[:]...)
	}
	if uint64(len(segments)) <= s.m.info.Segments/scanShare || len(segments) < scanShare {
		return s.t.s.trees.Get(ctx, s.m.listing, keys...)
	}
	at := make(map[string][]int, len(keys))
	for i, k := range keys {
		at[string(k)] = append(at[string(k)], i)
	}
	out := make([][]byte, len(segments))
	err := s.between(ctx, prefix, catalog.PrefixEnd(prefix), func(key, value []byte) string {
		for _, i := range at[string(key)] {
			out[i] = append(make([]byte, 0, len(value)), value...)
		}
		return ""
	})
	return out, err
}

// NewSegment starts a segment of the partition whose stripes have the given rows. It needs no coordination, but the first segment of a
// table gives the table its id. ctx is that of the whole segment: it must not end before Finish or Abort has returned.
func (t *Table) NewSegment(ctx context.Context, p catalog.Partition, stripeRows []uint32, opts SegmentOptions) (*SegmentWriter, error) {
	if err := errors.Join(ctx.Err(), p.Validate(), opts.Validate()); err != nil {
		return nil, err // before the table gets its id
	}
	table, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	return t.s.segments.NewWriter(ctx, table, p, stripeRows, opts)
}

// NewOverlaySegment starts the segment of a layer over base, with base's partition and stripes. The files of its features are added, and
// it is finished, like any segment's, under ctx; Finish gives Layer.Data.
func (t *Table) NewOverlaySegment(ctx context.Context, base catalog.SegmentDescriptor, opts SegmentOptions) (*SegmentWriter, error) {
	g, err := t.s.segments.Open(ctx, base)
	if err != nil {
		return nil, fmt.Errorf("layer over segment %s: %w", base.ID, err)
	}
	defer g.Close()
	return t.NewSegment(ctx, base.Partition, g.StripeRows(), opts)
}
