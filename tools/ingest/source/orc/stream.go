package orc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/stream"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
	"google.golang.org/protobuf/encoding/protowire"
)

// ORC's compression codecs.
const (
	codecPlain  = 0
	codecZlib   = 1
	codecSnappy = 2
	codecLZ4    = 4
	codecZstd   = 5
)

// A chunkReader reads a stream of an ORC file, chunk by chunk.
//
//	chunk      length * 2, + 1 where it is not compressed (3 LE) · bytes
//
// Without a codec there are no chunks.
type chunkReader struct {
	r       io.ReaderAt
	at, end int64
	codec   uint64
	block   int64
	buf     []byte // what is left of the chunk
	raw     []byte // the memory of chunks as they are in the file
	out     []byte // and of those that are decompressed
	err     error  // the first one of byte, and of what its bytes became
}

func (t *Tail) stream(r io.ReaderAt, at, length int64) *chunkReader {
	return &chunkReader{r: r, at: at, end: at + length, codec: t.codec, block: t.block}
}

var errShort = errors.New("an ORC stream ends within a value")

// Read reads what is left of the chunk, or of the next one.
func (s *chunkReader) Read(b []byte) (int, error) {
	if err := s.fill(); err != nil {
		return 0, err
	}
	n := copy(b, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}

// byte returns the next byte; after the last, and after an error, zeros.
func (s *chunkReader) byte() byte {
	if len(s.buf) == 0 && s.err == nil {
		if s.err = s.fill(); s.err == io.EOF {
			s.err = errShort
		}
	}
	if s.err != nil {
		return 0
	}
	c := s.buf[0]
	s.buf = s.buf[1:]
	return c
}

// fail notes an error, unless there was one before.
func (s *chunkReader) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// fill makes the next chunk the current one, where that has been read. It returns io.EOF after the last.
func (s *chunkReader) fill() error {
	for len(s.buf) == 0 {
		left := s.end - s.at
		if left <= 0 {
			return io.EOF
		}
		if s.codec == codecPlain {
			return s.load(min(left, 64<<10))
		}
		var head [3]byte
		if left < 3 {
			return errShort
		}
		if _, err := s.r.ReadAt(head[:], s.at); err != nil {
			return err
		}
		s.at += 3
		length := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16
		plain := length&1 != 0
		if length >>= 1; length > s.end-s.at {
			return errShort
		}
		if err := s.load(length); err != nil {
			return err
		}
		if plain {
			continue
		}
		out, err := s.decompress(s.buf)
		if err != nil {
			return fmt.Errorf("an ORC chunk that does not decompress: %w", err)
		}
		s.buf = out
	}
	return nil
}

func (s *chunkReader) load(n int64) error {
	s.raw = column.Resize(s.raw, int(n))
	if _, err := s.r.ReadAt(s.raw, s.at); err != nil {
		return err
	}
	s.at += n
	s.buf = s.raw
	return nil
}

func (s *chunkReader) decompress(src []byte) ([]byte, error) {
	switch s.codec {
	case codecZlib:
		out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(src)), s.block+1))
		return out, s.checkLength(len(out), err)
	case codecSnappy:
		n, err := snappy.DecodedLen(src)
		if err = s.checkLength(n, err); err != nil {
			return nil, err
		}
		s.out = column.Resize(s.out, n)
		return snappy.Decode(s.out, src)
	case codecZstd:
		s.out = column.Resize(s.out, int(s.block))
		return stream.ZstdDecoder().DecodeAll(src, s.out[:0:s.block])
	case codecLZ4:
		s.out = column.Resize(s.out, int(min(s.block, 255*int64(len(src))+64)))
		n, err := lz4.UncompressBlock(src, s.out)
		return s.out[:max(n, 0)], err
	}
	return nil, fmt.Errorf("codec %d of ORC's is not supported", s.codec)
}

func (s *chunkReader) checkLength(n int, err error) error {
	if err == nil && int64(n) > s.block {
		return errors.New("it is longer than a block")
	}
	return err
}

// An intReader reads integers in ORC's run lengths, version 1 or 2.
//
//	1  run       count - 3 (0 to 127) · step (int8) · first value (varint)
//	   literals  256 - count (128 to 255) · values (varints)
//	2  repeat    00 width-1 (3 bits) count-3 (3 bits) · value
//	   direct    01 width (5) count-1 (9) · packed values
//	   patched   10 width (5) count-1 (9) · base bytes-1 (3) patch width (5) · gap width-1 (3) patches (5) · base ·
//	             values · patches
//	   delta     11 width (5) count-1 (9) · first value (varint) · first step (signed varint) · packed steps
//
// Packed numbers begin with the highest bit. Signed values are zigzag.
type intReader struct {
	s       *chunkReader
	version int
	signed  bool
	run     []int64 // what is left of the current run
	all     []int64
}

func (d *intReader) next() (int64, error) {
	if len(d.run) == 0 {
		d.all = d.all[:0]
		if d.version == 1 {
			d.readRun()
		} else {
			d.readRun2()
		}
		if d.s.err != nil {
			return 0, d.s.err
		}
		d.run = d.all
	}
	v := d.run[0]
	d.run = d.run[1:]
	return v, nil
}

func (d *intReader) varint() uint64 {
	v := uint64(0)
	for shift := uint(0); shift < 70; shift += 7 {
		c := d.s.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	d.s.fail(errors.New("an ORC integer longer than 64 bits"))
	return 0
}

func (d *intReader) value(u uint64) int64 {
	if d.signed {
		return protowire.DecodeZigZag(u)
	}
	return int64(u)
}

func (d *intReader) readRun() {
	c := d.s.byte()
	if c >= 128 {
		for range 256 - int(c) {
			d.all = append(d.all, d.value(d.varint()))
		}
		return
	}
	step := int64(int8(d.s.byte()))
	v := d.value(d.varint())
	for range int(c) + 3 {
		d.all = append(d.all, v)
		v += step
	}
}

// packedWidths are the widths that five bits stand for.
var packedWidths = [32]uint{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26,
	28, 30, 32, 40, 48, 56, 64}

func (d *intReader) readRun2() {
	c := d.s.byte()
	if c>>6 == 0 {
		v := d.value(d.bigEndian(uint(c>>3&7) + 1))
		for range int(c&7) + 3 {
			d.all = append(d.all, v)
		}
		return
	}
	width, count := packedWidths[c>>1&31], (int(c&1)<<8|int(d.s.byte()))+1
	switch c >> 6 {
	case 1:
		p := packedBits{s: d.s}
		for range count {
			d.all = append(d.all, d.value(p.take(width)))
		}
	case 2:
		d.readPatched(width, count)
	case 3:
		if c>>1&31 == 0 {
			width = 0
		}
		d.readDeltas(width, count)
	}
}

func (d *intReader) bigEndian(n uint) uint64 {
	v := uint64(0)
	for range n {
		v = v<<8 | uint64(d.s.byte())
	}
	return v
}

func (d *intReader) readPatched(width uint, count int) {
	a, b := d.s.byte(), d.s.byte()
	baseBytes, patchWidth, gapWidth, patches := uint(a>>5)+1, packedWidths[a&31], uint(b>>5)+1, int(b&31)
	if patchWidth+gapWidth > 64 {
		d.s.fail(errors.New("an ORC patch of more than 64 bits"))
		return
	}
	u := d.bigEndian(baseBytes)
	base := int64(u)
	if sign := uint64(1) << (8*baseBytes - 1); u&sign != 0 { // a sign and a magnitude
		base = -int64(u &^ sign)
	}
	p := packedBits{s: d.s}
	for range count {
		d.all = append(d.all, int64(p.take(width)))
	}
	p.align()
	i := slices.IndexFunc(packedWidths[:], func(w uint) bool { return w >= patchWidth+gapWidth })
	entry, at := packedWidths[i], 0
	for range patches {
		e := p.take(entry)
		at += int(e >> patchWidth)
		patch := e & (1<<patchWidth - 1)
		if patch == 0 { // a gap of more than its bits
			continue
		}
		if at >= count || width >= 64 {
			d.s.fail(errors.New("an ORC patch outside its run"))
			return
		}
		d.all[at] |= int64(patch << width)
	}
	for i := range d.all {
		d.all[i] += base
	}
}

func (d *intReader) readDeltas(width uint, count int) {
	v := d.value(d.varint())
	step := protowire.DecodeZigZag(d.varint())
	d.all = append(d.all, v)
	if count > 1 {
		v += step
		d.all = append(d.all, v)
	}
	p := packedBits{s: d.s}
	for range count - 2 {
		switch {
		case width == 0:
			v += step
		case step < 0:
			v -= int64(p.take(width))
		default:
			v += int64(p.take(width))
		}
		d.all = append(d.all, v)
	}
}

// packedBits reads numbers that are packed, the highest bit first.
type packedBits struct {
	s    *chunkReader
	byte byte
	left uint // bits of byte
}

func (p *packedBits) take(width uint) uint64 {
	v := uint64(0)
	for width > 0 {
		if p.left == 0 {
			p.byte, p.left = p.s.byte(), 8
		}
		n := min(width, p.left)
		v = v<<n | uint64(p.byte>>(p.left-n))&(1<<n-1)
		p.left -= n
		width -= n
	}
	return v
}

func (p *packedBits) align() { p.left = 0 }

// A bitReader reads the bits of a presence stream: bytes in run lengths, the highest bit first.
//
//	run       count - 3 (0 to 127) · byte
//	literals  256 - count (128 to 255) · bytes
type bitReader struct {
	s        *chunkReader
	repeat   bool
	count    int // bytes left of the run
	byte     byte
	bitsLeft int
}

func (d *bitReader) next() (bool, error) {
	if d.bitsLeft == 0 {
		if d.count == 0 {
			c := d.s.byte()
			if d.repeat = c < 128; d.repeat {
				d.count, d.byte = int(c)+3, d.s.byte()
			} else {
				d.count = 256 - int(c)
			}
		}
		d.count--
		if !d.repeat {
			d.byte = d.s.byte()
		}
		d.bitsLeft = 8
	}
	d.bitsLeft--
	return bits.RotateLeft8(d.byte, -d.bitsLeft)&1 != 0, d.s.err
}
