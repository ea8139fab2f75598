package encoding

import (
	"encoding/binary"

	"github.com/klauspost/compress/zstd"
)

// Zstd (id 8): an ints chunk, compressed.
//
//	+-------+--------------------------+---------------------------------+
//	| 8 (1) | size of the chunk inside | one zstd frame (RFC 8878): the  |
//	|       | (uvarint)                | chunk of the same n ints        |
//	+-------+--------------------------+---------------------------------+
//
// The size is at most 64 + 9*n, which no useful chunk exceeds, so n limits the decompressed size.
//
// With id 22 the frame holds n * width bytes, the floats as in plain:
//
//	+--------+-----------------+
//	| 22 (1) | one zstd frame  |
//	+--------+-----------------+
const (
	IDZstd      ID = 8
	IDFloatZstd ID = 22
)

const (
	nsZstdByte = 1.2 // a decompressed byte
	// zstdMargin is the share of the size that zstd must save to be used.
	zstdMargin = 0.10
)

func init() {
	registerInts(&intCodec{
		codec: codec{IDZstd, "zstd", describeZstd},
		turn:  90, deepest: 2, fewest: 512, offer: offerZstd, encode: encodeZstd, below: 1 - zstdMargin,
		decode: decodeZstd, seeks: seekFew,
	})
	registerFloats(&floatCodec{
		codec: codec{id: IDFloatZstd, name: "zstd"},
		turn:  70, deepest: maxDepth - 1, fewest: 128, offer: offerFloatZstd, encode: encodeFloatZstd,
		below:  1 - zstdMargin,
		floats: decodeFloatZstd(&floatFamily), doubles: decodeFloatZstd(&doubleFamily), seeks: seekFew,
	})
}

// offerZstd compresses a sample in the plain form, and offers zstd if it saves zstdMargin.
func offerZstd(e *encoder, c *intChoice) {
	if c.copied >= 0.5 {
		return
	}
	mark, bmark := e.ints.mark(), e.bytes.mark()
	defer e.ints.release(mark)
	defer e.bytes.release(bmark)
	sample := sampleInts(&e.ints, c.vals, 4, 1024)
	width := plainWidth(c.stats.min, c.stats.max)
	raw := appendPlain(e.bytes.grab(chunkRoom(len(sample)))[:0], sample, width)
	packed := e.compress(e.bytes.grab(len(raw) + 64)[:0], raw)
	bytes := float64(len(packed)) * c.n / float64(len(sample))
	if bytes < (1-zstdMargin)*c.bytes {
		c.offer(IDZstd, bytes, c.n*(nsPlain+nsZstdByte*float64(width)))
	}
}

func offerFloatZstd(e *encoder, c *floatChoice) {
	if c.copied >= 0.5 {
		return
	}
	mark, bmark := e.ints.mark(), e.bytes.mark()
	defer e.ints.release(mark)
	defer e.bytes.release(bmark)
	long := sampleInts(&e.ints, c.vals.raw, 4, 1024)
	scale := c.n / float64(len(long))
	plain := appendFloatBytes(e.bytes.grab(len(long) * c.vals.width)[:0], long, c.vals.width)
	bytes := scale * float64(len(e.compress(e.bytes.grab(len(plain) + 64)[:0], plain)))
	if bytes < (1-zstdMargin)*c.bytes {
		c.offer(IDFloatZstd, bytes, c.n*(nsPlain+nsZstdByte*float64(c.vals.width)))
	}
}

func encodeZstd(e *encoder, dst []byte, _ *memory, vals []int64, s *intStats, _ int) ([]byte, bool) {
	mark := e.bytes.mark()
	defer e.bytes.release(mark)
	inner := appendPlain(e.bytes.grab(chunkRoom(len(vals)))[:0], vals, plainWidth(s.min, s.max))
	dst = binary.AppendUvarint(append(dst, byte(IDZstd)), uint64(len(inner)))
	return e.compress(dst, inner), true
}

func encodeFloatZstd(e *encoder, dst []byte, _ *memory, v *floatValues, _ int) ([]byte, bool) {
	mark := e.bytes.mark()
	defer e.bytes.release(mark)
	plain := appendFloatBytes(e.bytes.grab(len(v.raw) * v.width)[:0], v.raw, v.width)
	return e.compress(append(dst, byte(IDFloatZstd)), plain), true
}

// zstdLimit returns the largest decompressed size of a chunk of n ints.
func zstdLimit(n int) int { return 64 + 9*n }

// newZstdEncoder returns an encoder without goroutines. It always uses entropy coding for literals: by default the
// library stores data without matches raw, although the bytes of most of our streams of codes are skewed.
func newZstdEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithEncoderLevel(level), zstd.WithAllLitEntropyCompression(true),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // only for options that contradict each other
	}
	return w
}

// newZstdDecoder returns a decoder without goroutines that writes no more than its destination has room for.
func newZstdDecoder() *zstd.Decoder {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(1<<31))
	if err != nil {
		panic(err) // only for options that contradict each other
	}
	return r
}

// isOneFrame reports whether b is one frame and nothing more: the library would also take more frames, frames to be
// skipped and no frame at all. It goes from block head to block head; what lies between is the library's to judge.
//
//	+--------+--------------------------------------------+-----+-----------------------+
//	| header | block: last (1 bit), type (2), size (21),  | ... | checksum (4), if the  |
//	|        | then size bytes, or 1 of type 1            |     | header says so        |
//	+--------+--------------------------------------------+-----+-----------------------+
func isOneFrame(b []byte) bool {
	var h zstd.Header
	if h.Decode(b) != nil || h.Skippable {
		return false
	}
	rest := b[h.HeaderSize:]
	for last := false; !last; {
		if len(rest) < 3 {
			return false
		}
		head := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
		size := head >> 3
		if head>>1&3 == 1 {
			size = 1
		}
		last = head&1 == 1
		if rest = rest[3:]; len(rest) < size {
			return false
		}
		rest = rest[size:]
	}
	if h.HasCheckSum {
		return len(rest) == 4
	}
	return len(rest) == 0
}

// inflate fills dst exactly from one frame.
func (d *Decoder) inflate(dst, frame []byte) error {
	if !isOneFrame(frame) {
		return errZstd
	}
	if d.zstd == nil {
		d.zstd = newZstdDecoder()
	}
	got, err := d.zstd.DecodeAll(frame, dst[:0:len(dst)])
	if err != nil {
		return errZstd
	}
	if len(got) != len(dst) || len(dst) > 0 && &got[0] != &dst[0] {
		return errZstdSize
	}
	return nil
}

// compress appends raw as a frame to dst.
func (e *encoder) compress(dst, raw []byte) []byte {
	if e.profile.NsPerByte() >= hardNs {
		if e.hard == nil {
			e.hard = newZstdEncoder(zstd.SpeedBestCompression)
		}
		return e.hard.EncodeAll(raw, dst)
	}
	if e.zstd == nil {
		e.zstd = newZstdEncoder(zstd.SpeedDefault)
	}
	return e.zstd.EncodeAll(raw, dst)
}

func decodeZstd(d *Decoder, dst []int64, n int, spans []Span, p []byte, depth int) error {
	size, frame, err := takeUvarint(p)
	if err != nil {
		return err
	}
	if size > uint64(zstdLimit(n)) {
		return errZstdSize
	}
	m := d.bytes.mark()
	defer d.bytes.release(m)
	chunk := d.bytes.grab(int(size))
	if err := d.inflate(chunk, frame); err != nil {
		return err
	}
	return d.intsAt(dst, n, spans, chunk, depth+1)
}

func decodeFloatZstd[T float32 | float64](f *floatKind[T]) decodeFunc[T] {
	return func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error {
		m := d.bytes.mark()
		defer d.bytes.release(m)
		plain := d.bytes.grab(f.size * n)
		if err := d.inflate(plain, p); err != nil {
			return err
		}
		f.read(dst, spans, plain)
		return nil
	}
}

// describeLimit is the most that Describe uncompresses to see what lies inside.
const describeLimit = 1 << 24

func describeZstd(x *description, p []byte) {
	size, frame, err := takeUvarint(p)
	chunk := []byte(nil)
	if err == nil && size <= describeLimit {
		chunk = make([]byte, size)
		if x.d.inflate(chunk, frame) != nil {
			chunk = nil
		}
	}
	x.nested(chunk, 1, true)
}
