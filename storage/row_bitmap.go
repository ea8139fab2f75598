package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// A RowBitmap names a set of rows of one segment: those deleted, those of a sample list, those that a layer covers. Rows are
// numbered from 0 in the segment, deleted ones too. The set itself is a Roaring bitmap, within the listing where it is
// small and an object of its own where it is not; Store.ReadRowBitmap gets it. The zero RowBitmap is the empty set.
type RowBitmap struct {
	// Count is how many rows the set has.
	Count uint64
	// Since is the snapshot that set it: segment, what the set is for, and Since tell sets apart, for caches. 0: it was not
	// committed.
	Since uint64

	rows   uint64 // of the segment
	inline []byte // the portable form; nil: an object has it, or the set is empty
	object names.ID
	size   uint64 // of the object
	sum    uint64 // its xxhash64
	place  string // the object to blame for what inline holds
}

// IsEmpty reports whether the set has no rows.
func (r RowBitmap) IsEmpty() bool { return r.Count == 0 }

// maxInlineBitmap is how large the stored form of a set gets, in bytes, before it is an object of its own.
const maxInlineBitmap = 4096

// The forms of a set in an entry. The numbers are written to disk.
const (
	inlineRows = 1
	objectRows = 2
)

// PutRowBitmap makes the set of the given rows of a segment, for a Change. Where it is large it is written, durably, as an object,
// which gc takes after its grace period if no change names it; DiscardRowBitmap removes it at once. rows is not kept.
func (s *Store) PutRowBitmap(ctx context.Context, segment catalog.SegmentDescriptor, rows *roaring.Bitmap) (RowBitmap, error) {
	return s.putRowBitmap(ctx, segment.ID, segment.Rows, rows, nil)
}

// putRowBitmap is PutRowBitmap; made, when set, is called with the id of an object before it is put.
func (s *Store) putRowBitmap(ctx context.Context, segment string, segmentRows uint64, rows *roaring.Bitmap, made func(names.ID)) (RowBitmap, error) {
	if err := ctx.Err(); err != nil {
		return RowBitmap{}, err
	}
	if rows.IsEmpty() {
		return RowBitmap{rows: segmentRows}, nil
	}
	if segmentRows > bitmap.MaxRows {
		return RowBitmap{}, fmt.Errorf("set of rows of segment %s: it has %d: want at most %d", segment, segmentRows, uint64(bitmap.MaxRows))
	}
	if last := uint64(rows.Maximum()); last >= segmentRows {
		return RowBitmap{}, fmt.Errorf("row %d of segment %s: it has %d", last, segment, segmentRows)
	}
	b, err := bitmap.Append(nil, rows)
	if err != nil {
		return RowBitmap{}, err
	}
	out := RowBitmap{Count: rows.GetCardinality(), rows: segmentRows, place: "set of rows"}
	if len(b) <= s.inlineBitmapBytes {
		out.inline = b
		return out, nil
	}
	of, err := names.ParseID(segment)
	if err != nil {
		return RowBitmap{}, err
	}
	out.object, out.size, out.sum = names.NewID(of.Table()), uint64(len(b)), xxhash.Sum64(b)
	if made != nil {
		made(out.object)
	}
	return out, s.blobs.PutIfAbsent(ctx, out.object.RowsName(), b)
}

// DiscardRowBitmap removes the object of a set that no change will name. It must not be called for one that was committed, ever.
func (s *Store) DiscardRowBitmap(ctx context.Context, r RowBitmap) error {
	if r.size == 0 {
		return nil
	}
	if err := s.blobs.Delete(ctx, r.object.RowsName()); err != nil && !errors.Is(err, object.ErrNotFound) {
		return err
	}
	return nil
}

// ReadRowBitmap returns the rows of a set: one read of at most the set's size where it is an object, none where it is not. The
// bitmap is the caller's. Errors match format.ErrCorrupt where the stored set is damaged.
func (s *Store) ReadRowBitmap(ctx context.Context, r RowBitmap) (*roaring.Bitmap, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.Count == 0 {
		return roaring.New(), nil
	}
	b, place := r.inline, r.place
	if r.size > 0 {
		place = r.object.RowsName()
		if r.size > object.LargeRead {
			if err := object.CheckEnd(ctx, s.blobs, place, r.size); err != nil {
				return nil, wire.Missing(place, err)
			}
		}
		b = make([]byte, r.size)
		if err := s.blobs.ReadAt(ctx, place, b, 0); err != nil {
			return nil, wire.Missing(place, err)
		}
		if xxhash.Sum64(b) != r.sum {
			return nil, wire.Corrupt(place, "checksum mismatch")
		}
	}
	out, reason := bitmap.Decode(b, r.Count, r.rows)
	if reason != "" {
		return nil, wire.Corrupt(place, reason)
	}
	return out, nil
}

// checkRows makes sure that the object of a set, if it has one, is there, and that no gc has condemned it.
func (s *Store) checkRowBitmap(ctx context.Context, r RowBitmap) error {
	if r.size == 0 {
		return nil
	}
	name := r.object.RowsName()
	there := false
	for info, err := range s.blobs.List(ctx, r.object.Dir(), "") {
		switch {
		case err != nil:
			return err
		case r.object.IsCondemned(info.Name):
			return condemned(r.object)
		case info.Name == name && uint64(info.Size) != r.size:
			return wire.Corrupt(name, fmt.Sprintf("%d bytes: want %d", info.Size, r.size))
		}
		there = there || info.Name == name
	}
	if !there {
		return fmt.Errorf("%w: %s", object.ErrNotFound, name)
	}
	return nil
}

// fits returns an error when the set is of a segment of another number of rows.
func (r RowBitmap) fits(segment string, rows uint64) error {
	if r.Count > rows || r.Count > 0 && r.rows != rows {
		return fmt.Errorf("set of %d rows of a segment of %d: segment %s has %d", r.Count, r.rows, segment, rows)
	}
	return nil
}

// appendRows appends a set as an entry holds it:
//
//	rows in it | 01 | portable form          within the entry
//	rows in it | 02 | id (16) | size | xxhash64 (8 LE)   an object
//	0                                        the empty set
func appendRowBitmap(dst []byte, r RowBitmap) []byte {
	dst = binary.AppendUvarint(dst, r.Count)
	switch {
	case r.Count == 0:
	case r.size == 0:
		dst = append(append(dst, inlineRows), r.inline...)
	default:
		dst = append(append(dst, objectRows), r.object[:]...)
		dst = binary.AppendUvarint(dst, r.size)
		dst = binary.LittleEndian.AppendUint64(dst, r.sum)
	}
	return dst
}

// decodeRows decodes a set to the end of d. rows are those of its segment. The form within the entry is borrowed, and looked at
// when it is read.
func decodeRowBitmap(d *wire.Decoder, since, rows uint64, place string) RowBitmap {
	r := RowBitmap{Count: d.Max(min(rows, bitmap.MaxRows), "rows of a set"), Since: since, rows: rows, place: place}
	if r.Count == 0 {
		d.End()
		return RowBitmap{Since: since, rows: rows}
	}
	if rows > bitmap.MaxRows {
		d.Fail(fmt.Sprintf("set of rows of a segment of %d: want at most %d", rows, uint64(bitmap.MaxRows)))
	}
	switch form := d.Byte(); {
	case form == inlineRows:
		if r.inline = d.Take(uint64(len(d.Rest))); len(r.inline) > maxInlineBitmap || len(r.inline) == 0 {
			d.Fail(fmt.Sprintf("set of rows of %d bytes within its entry: want 1 to %d", len(r.inline), maxInlineBitmap))
		}
	case form == objectRows:
		copy(r.object[:], d.Take(16))
		r.size = d.Max(bitmap.MaxBytes(rows), "size of a set of rows")
		r.sum = d.U64()
		if r.size == 0 || r.object == (names.ID{}) {
			d.Fail("set of rows without an object")
		}
	default:
		d.Fail("set of rows of an unknown form")
	}
	d.End()
	if d.Reason != "" {
		return RowBitmap{}
	}
	return r
}
