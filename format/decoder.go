package format

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/format/encoding"
	"github.com/dsistore/dsistore/format/vector"
)

// A StripeDecoder decodes stripes. It holds scratch memory, so that decoding into the same columns again allocates
// nothing. Not safe for concurrent use.
type StripeDecoder struct {
	limits Limits
	codec  encoding.Decoder

	// The stripe being decoded: its number, its chunks by kind (nil: absent) and their offsets in the file.
	stripe  int
	chunks  [streamKinds + 1][]byte
	offsets [streamKinds + 1]uint64

	dictionary *Dictionary // set by Use

	runs    []int32
	codes   []int32
	own     []int64 // values of the stripe that are not in the dictionary
	changes vector.Bitmap
	compact []int32 // offsets of the present slots

	// Scratch memory of DecodeRows.
	selection Selection
	positions []int32         // of the runs of the selected rows, then of their present slots among all present
	presence  vector.Bitmap   // of all slots
	ranks     []int32         // present slots before each word of presence
	spans     []encoding.Span // values to decode; never nil, which would mean all
	ownAt     []int32         // positions among the decoded values of the stripe's own values
	ownSpans  []encoding.Span // of the stripe's own values to decode
	data      []byte          // of all strings

	// Memory of fields of a Column that are nil in the last stripe. (nil has a meaning in these fields.)
	spareInverse []int32
	spareLengths []int32
	sparePresent vector.Bitmap
}

// NewStripeDecoder returns a StripeDecoder that returns an error for stripes beyond limits.
func NewStripeDecoder(limits Limits) *StripeDecoder {
	return &StripeDecoder{limits: limits.withDefaults()}
}

// DecodeStripe decodes stripe i of m from src, its m.Stripes[i].Length bytes, into dst, whose memory is reused. If it
// returns no error, dst is a valid Column, and shares no memory with src. If the file has a dictionary, Use must have
// been called with it. If the feature is in a group, inverse is the group's decoded stripe, and dst borrows its Inverse
// until the next decoding into either; otherwise inverse is ignored.
//
// Errors about the bytes match ErrCorrupt or ErrUnsupported. Their offset counts from the start of the feature file;
// the caller adds the object with Locate. After an error dst is empty.
func (d *StripeDecoder) DecodeStripe(dst *vector.Column, m *FileMeta, i int, src []byte, inverse *vector.Column) error {
	return d.end(dst, m, d.decode(dst, m, i, src, inverse))
}

func (d *StripeDecoder) decode(dst *vector.Column, m *FileMeta, i int, src []byte, inverse *vector.Column) error {
	s, err := d.begin(m, i, src)
	if err != nil {
		return err
	}
	empty(dst, m.Type, int(s.Rows), int(s.Slots))
	if m.Group != 0 {
		if err := d.borrowInverse(dst, s, inverse); err != nil {
			return err
		}
	} else if err := d.decodeInverse(dst, s); err != nil {
		return err
	}
	if err := d.decodePresence(dst, s); err != nil {
		return err
	}
	switch {
	case m.Type.Kind == vector.Inverse:
		d.dropLengths(dst)
		return nil
	case m.Type.IsList():
		strings, err := d.decodeRanges(dst, s)
		if err != nil {
			return err
		}
		return d.decodeElements(dst, m, s, int(s.Elements), nil, strings)
	}
	d.dropLengths(dst)
	return d.decodeFixed(dst, m, s, int(s.Elements), nil)
}

// empty removes the values of the last stripe from dst, and keeps its memory.
func empty(dst *vector.Column, t vector.Type, rows, slots int) {
	if dst.InverseBorrowed {
		dst.Inverse, dst.InverseBorrowed = nil, false
	}
	dst.Type, dst.Rows, dst.Slots, dst.Monotone = t, rows, slots, false
	dst.Offsets, dst.Ints, dst.Floats, dst.Doubles = dst.Offsets[:0], dst.Ints[:0], dst.Floats[:0], dst.Doubles[:0]
	dst.Data, dst.ScoreFloats, dst.ScoreDoubles = dst.Data[:0], dst.ScoreFloats[:0], dst.ScoreDoubles[:0]
}

// end empties dst after an error, and removes the references to the stripe's bytes, which are borrowed for the call.
func (d *StripeDecoder) end(dst *vector.Column, m *FileMeta, err error) error {
	if err != nil {
		dst.Type = m.Type
		dst.Reset()
	}
	clear(d.chunks[:])
	return err
}

// borrowInverse gives dst the inverse of its group.
func (d *StripeDecoder) borrowInverse(dst *vector.Column, s *StripeMeta, inverse *vector.Column) error {
	if inverse == nil {
		return fmt.Errorf("stripe %d: the feature is in a dedup group: decode the group's inverse first and pass it",
			d.stripe)
	}
	if inverse.Rows != dst.Rows || inverse.Slots != dst.Slots {
		return &CorruptError{Stripe: d.stripe, Offset: int64(s.Offset),
			Reason: fmt.Sprintf("%d rows of %d slots, but the group has %d rows of %d slots",
				dst.Rows, dst.Slots, inverse.Rows, inverse.Slots)}
	}
	d.dropInverse(dst)
	if inverse.Inverse != nil {
		dst.Inverse, dst.Monotone, dst.InverseBorrowed = inverse.Inverse, inverse.Monotone, true
	}
	return nil
}

func (d *StripeDecoder) decodePresence(dst *vector.Column, s *StripeMeta) error {
	if s.Present == s.Slots {
		if cap(dst.Present) > cap(d.sparePresent) {
			d.sparePresent = dst.Present
		}
		dst.Present = nil
		return nil
	}
	if dst.Present == nil {
		dst.Present, d.sparePresent = d.sparePresent, nil
	}
	dst.Present = vector.Resize(dst.Present, vector.BitmapWords(dst.Slots))
	if s.Present == 0 {
		clear(dst.Present)
		return nil
	}
	return d.presenceBits(dst.Present, s)
}

// presenceBits decodes the presence of the stripe's slots. Some slots are present and some are null.
func (d *StripeDecoder) presenceBits(bits vector.Bitmap, s *StripeMeta) error {
	if err := d.codec.Bits(bits, int(s.Slots), d.chunks[Presence]); err != nil {
		return d.fail(Presence, err)
	}
	if n := bits.Count(); n != int(s.Present) {
		return d.fail(Presence, fmt.Errorf("%d present slots, want %d", n, s.Present))
	}
	return nil
}

// decodeRanges decodes Offsets, and Lengths if there are partial duplicates. It returns the offsets of the strings of
// the values stream, which decoding strings needs.
func (d *StripeDecoder) decodeRanges(dst *vector.Column, s *StripeMeta) (strings []int32, err error) {
	if d.chunks[Starts] != nil {
		return d.decodeStarts(dst, s)
	}
	d.dropLengths(dst)
	dst.Offsets = vector.Resize(dst.Offsets, dst.Slots+1)
	if s.Present == 0 {
		clear(dst.Offsets)
		return nil, nil
	}
	dst.Offsets[0] = 0
	offsets := dst.Offsets
	if s.Present != s.Slots {
		d.compact = vector.Resize(d.compact, int(s.Present)+1)
		offsets = d.compact
	}
	if err := d.decodeEnds(offsets, s); err != nil {
		return nil, err
	}
	if s.Present != s.Slots {
		k := 0
		for i := range dst.Slots {
			k += int(dst.Present[i>>6] >> (i & 63) & 1)
			dst.Offsets[i+1] = offsets[k]
		}
	}
	return offsets, nil
}

func (d *StripeDecoder) decodeStarts(dst *vector.Column, s *StripeMeta) (strings []int32, err error) {
	if dst.Lengths == nil {
		dst.Lengths, d.spareLengths = d.spareLengths, nil
	}
	n := int(s.Present)
	dst.Lengths = vector.Resize(dst.Lengths, dst.Slots)
	dst.Offsets = vector.Resize(dst.Offsets, dst.Slots)
	if err := d.decodeSlices(dst.Lengths[:n], dst.Offsets[:n], s, nil); err != nil {
		return nil, err
	}
	if n != dst.Slots {
		spread(dst.Lengths, dst.Present, dst.Slots, 1)
		spread(dst.Offsets, dst.Present, dst.Slots, 1)
	}
	d.compact = append(d.compact[:0], 0, int32(s.Elements))
	return d.compact, nil
}

// makeInverse gives dst an Inverse of Rows entries with unspecified contents.
func (d *StripeDecoder) makeInverse(dst *vector.Column) {
	if dst.Inverse == nil {
		dst.Inverse, d.spareInverse = d.spareInverse, nil
	}
	dst.Inverse = vector.Resize(dst.Inverse, dst.Rows)
}

func (d *StripeDecoder) dropInverse(dst *vector.Column) {
	if cap(dst.Inverse) > cap(d.spareInverse) {
		d.spareInverse = dst.Inverse
	}
	dst.Inverse = nil
}

func (d *StripeDecoder) dropLengths(dst *vector.Column) {
	if cap(dst.Lengths) > cap(d.spareLengths) {
		d.spareLengths = dst.Lengths
	}
	dst.Lengths = nil
}

// fail returns the streamError of a stream of the stripe being decoded.
func (d *StripeDecoder) fail(kind StreamKind, err error) error {
	return streamError(CorruptError{Stripe: d.stripe, Stream: kind.String(), Offset: int64(d.offsets[kind])}, err)
}

// streamError returns e with err as its reason. It is an UnsupportedError if this version does not know the codec of
// the stream or of a chunk nested in it.
func streamError(e CorruptError, err error) error {
	e.Reason = err.Error()
	if r := (*encoding.ReasonError)(nil); errors.As(err, &r) && r.Unknown != 0 {
		return (*UnsupportedError)(&e)
	}
	return &e
}

// VerifyStripe checks the checksums of stripe i, whose bytes are src, without decoding. Errors match ErrCorrupt; their
// offset counts from the start of the feature file.
func VerifyStripe(m *FileMeta, i int, src []byte) error {
	var chunks [streamKinds + 1][]byte
	var offsets [streamKinds + 1]uint64
	return splitStripe(&chunks, &offsets, m, i, src)
}

// splitStripe verifies every checksum of stripe i and sets chunks and their offsets in the file, by kind.
func splitStripe(chunks *[streamKinds + 1][]byte, offsets *[streamKinds + 1]uint64, m *FileMeta, i int,
	src []byte) error {
	s := &m.Stripes[i]
	if uint64(len(src)) != s.Length {
		return &CorruptError{Stripe: i, Offset: int64(s.Offset),
			Reason: fmt.Sprintf("%d bytes, want %d", len(src), s.Length)}
	}
	at := s.Offset
	context := newStreamContext(m.Salt, i)
	for _, f := range s.Streams {
		if f.Length <= checksumLength || f.Length > uint64(len(src)) {
			return &CorruptError{Stripe: i, Stream: f.Kind.String(), Offset: int64(at),
				Reason: fmt.Sprintf("stream of %d bytes", f.Length)}
		}
		chunk := src[: f.Length-checksumLength : f.Length-checksumLength]
		want := binary.LittleEndian.Uint32(src[len(chunk):])
		if got := context.sum(f.Kind, chunk); got != want {
			return &CorruptError{Stripe: i, Stream: f.Kind.String(), Offset: int64(at),
				Reason: fmt.Sprintf("checksum %08x, want %08x", got, want)}
		}
		chunks[f.Kind], offsets[f.Kind] = chunk, at
		src = src[f.Length:]
		at += f.Length
	}
	if len(src) != 0 {
		return &CorruptError{Stripe: i, Offset: int64(at),
			Reason: fmt.Sprintf("%d bytes after the last stream", len(src))}
	}
	return nil
}
