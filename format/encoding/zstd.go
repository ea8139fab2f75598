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
// The size is at most 64 + 9*n, which no chunk worth compressing exceeds: so n bounds what a frame may unfold to.

// zstdLimit returns the most bytes that a compressed chunk of n ints may hold.
func zstdLimit(n int) int { return 64 + 9*n }

// newZstdEncoder returns an encoder without goroutines. Entropy coding of literals is asked for always: without it the
// library stores streams of codes that have no matches but skewed bytes, which are most of ours.
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

// isOneFrame reports whether b is one frame and nothing more: the library would also take more frames, frames to be skipped
// and no frame at all. It goes from block head to block head; what lies between is the library's to judge.
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

// appendZstdInts appends chunk, an ints chunk, compressed.
func (e *encoder) appendZstdInts(dst, chunk []byte) []byte {
	dst = append(dst, byte(IDZstd))
	dst = binary.AppendUvarint(dst, uint64(len(chunk)))
	return e.compress(dst, chunk)
}

// inflateChunk returns the chunk inside one of n ints, in scratch that the caller releases.
func (d *Decoder) inflateChunk(n int, p []byte) ([]byte, error) {
	size, p, err := takeUvarint(p)
	if err != nil {
		return nil, err
	}
	if size > uint64(zstdLimit(n)) {
		return nil, errZstdSize
	}
	chunk := d.bytes.grab(int(size))
	return chunk, d.inflate(chunk, p)
}

func (d *Decoder) decodeZstdInts(dst []int64, p []byte, depth int) error {
	m := d.bytes.mark()
	defer d.bytes.release(m)
	chunk, err := d.inflateChunk(len(dst), p)
	if err != nil {
		return err
	}
	return d.decodeInts(dst, chunk, depth+1)
}
