package bitmap

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// A Ref names a row bitmap, a set of rows of one segment: those deleted, those of a sample list, those that a layer
// covers. Rows are numbered from 0 in the segment, deleted ones too. The set itself is a Roaring bitmap, within the
// listing where it is small and an object of its own where it is not; Store.Read gets it. The zero Ref is the empty
// set.
type Ref struct {
	// Count is how many rows the set has.
	Count uint64
	// Since is the snapshot that set it: segment, what the set is for, and Since tell sets apart, for caches. 0: it was
	// not committed.
	Since uint64

	rows   uint64 // of the segment
	inline []byte // the portable form; nil: an object has it, or the set is empty
	object names.ID
	size   uint64 // of the object
	sum    uint64 // its xxhash64
	place  string // the object to name in an error about inline
}

// IsEmpty reports whether the set has no rows.
func (r Ref) IsEmpty() bool { return r.Count == 0 }

// MaxInline is how large the stored form of a set gets, in bytes, before it is an object of its own.
const MaxInline = 4096

// The forms of a set in an entry. The numbers are written to disk.
const (
	inlineRows = 1
	objectRows = 2
)

// A Store reads and writes row bitmaps. Safe for concurrent use.
type Store struct {
	Blobs object.Store
	// InlineBytes is how large the stored form of a set gets before it is an object of its own: at most MaxInline.
	InlineBytes int
}

// Put makes the set of the given rows of a segment, which has segmentRows, for a commit. A large set is written,
// durably, as an object. gc removes the object after its grace period if no commit names it; Discard removes it at
// once. rows is not kept.
func (s *Store) Put(ctx context.Context, segment string, segmentRows uint64, rows *roaring.Bitmap) (Ref, error) {
	if err := ctx.Err(); err != nil {
		return Ref{}, err
	}
	if rows.IsEmpty() {
		return Ref{rows: segmentRows}, nil
	}
	if segmentRows > MaxRows {
		return Ref{}, fmt.Errorf("set of rows of segment %s: it has %d: want at most %d", segment, segmentRows,
			uint64(MaxRows))
	}
	if last := uint64(rows.Maximum()); last >= segmentRows {
		return Ref{}, fmt.Errorf("row %d of segment %s: it has %d", last, segment, segmentRows)
	}
	b, err := Append(nil, rows)
	if err != nil {
		return Ref{}, err
	}
	out := Ref{Count: rows.GetCardinality(), rows: segmentRows, place: "set of rows"}
	if len(b) <= s.InlineBytes {
		out.inline = b
		return out, nil
	}
	of, err := names.ParseID(segment)
	if err != nil {
		return Ref{}, err
	}
	out.object, out.size, out.sum = names.NewID(of.Table()), uint64(len(b)), xxhash.Sum64(b)
	return out, s.Blobs.PutIfAbsent(ctx, out.object.RowsName(), b)
}

// Discard removes the object of a set that no commit will name. Never call it for a set that was committed.
func (s *Store) Discard(ctx context.Context, r Ref) error {
	if r.size == 0 {
		return nil
	}
	return s.Blobs.Delete(ctx, r.object.RowsName())
}

// Read returns the rows of a set: one read of the set's size if it is an object, none if it is not. The bitmap is the
// caller's. Errors match format.ErrCorrupt if the stored set is damaged.
func (s *Store) Read(ctx context.Context, r Ref) (*roaring.Bitmap, error) {
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
			if err := object.CheckEnd(ctx, s.Blobs, place, r.size); err != nil {
				return nil, wire.Missing(place, err)
			}
		}
		b = make([]byte, r.size)
		if err := s.Blobs.ReadAt(ctx, place, b, 0); err != nil {
			return nil, wire.Missing(place, err)
		}
		if xxhash.Sum64(b) != r.sum {
			return nil, wire.Corrupt(place, "checksum mismatch")
		}
	}
	out, reason := Decode(b, r.Count, r.rows)
	if reason != "" {
		return nil, wire.Corrupt(place, reason)
	}
	return out, nil
}

// Object returns the object that holds the set, and its size; ok is false if the set is empty or inline.
func (r Ref) Object() (object names.ID, size uint64, ok bool) {
	return r.object, r.size, r.size > 0
}

// WithRows returns the set as one of a segment of so many rows.
func (r Ref) WithRows(rows uint64) Ref { r.rows = rows; return r }

// Fits returns an error when the set is of a segment of another number of rows.
func (r Ref) Fits(segment string, rows uint64) error {
	if r.Count > rows || r.Count > 0 && r.rows != rows {
		return fmt.Errorf("set of %d rows of a segment of %d: segment %s has %d", r.Count, r.rows, segment, rows)
	}
	return nil
}

// AppendRef appends a set as an entry holds it:
//
//	rows in it | 01 | portable form          within the entry
//	rows in it | 02 | id (16) | size | xxhash64 (8 LE)   an object
//	0                                        the empty set
func AppendRef(dst []byte, r Ref) []byte {
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

// DecodeRef decodes a set to the end of d. rows are those of its segment. The form within the entry is borrowed, and
// looked at when it is read.
func DecodeRef(d *wire.Decoder, since, rows uint64, place string) Ref {
	r := Ref{Count: d.Max(min(rows, MaxRows), "rows of a set"), Since: since, rows: rows, place: place}
	if r.Count == 0 {
		d.End()
		return Ref{Since: since, rows: rows}
	}
	if rows > MaxRows {
		d.Fail(fmt.Sprintf("set of rows of a segment of %d: want at most %d", rows, uint64(MaxRows)))
	}
	switch form := d.Byte(); {
	case form == inlineRows:
		if r.inline = d.Take(uint64(len(d.Rest))); len(r.inline) > MaxInline || len(r.inline) == 0 {
			d.Fail(fmt.Sprintf("set of rows of %d bytes within its entry: want 1 to %d", len(r.inline), MaxInline))
		}
	case form == objectRows:
		copy(r.object[:], d.Take(16))
		r.size = d.Max(MaxBytes(rows), "size of a set of rows")
		r.sum = d.U64()
		if r.size == 0 || r.object == (names.ID{}) {
			d.Fail("set of rows without an object")
		}
	default:
		d.Fail("set of rows of an unknown form")
	}
	d.End()
	if d.Reason != "" {
		return Ref{}
	}
	return r
}

// AppendEntry appends the value of the entry of a segment's deleted rows, or of its rows in a sample list:
//
//	since | the set
func AppendEntry(dst []byte, r Ref) []byte {
	return AppendRef(binary.AppendUvarint(dst, r.Since), r)
}

// DecodeEntry decodes what AppendEntry wrote. The set borrows b.
func DecodeEntry(b []byte, rows uint64, place string) (Ref, string) {
	d := wire.Decoder{Rest: b}
	since := d.Uvarint()
	r := DecodeRef(&d, since, rows, place)
	return r, d.Reason
}
