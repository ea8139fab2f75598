package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// An rleCursor is a place in a stream of small numbers: Parquet's hybrid of repeated values and bit-packed groups, of
// which levels, dictionary indices and bools are made. It holds offsets only, so that it costs an open column little,
// outlives the page's bytes, and can be copied to look ahead.
//
//	+------------------------------+----------------------------------+
//	| n<<1     (uvarint)           | value, width bits in whole bytes |  n times that value
//	+------------------------------+----------------------------------+
//	| n<<1 | 1 (uvarint)           | n*8 values, lowest bit first     |
//	+------------------------------+----------------------------------+
//
// Old writers packed levels without headers, highest bit first: packed.
type rleCursor struct {
	pos, end int // of the next run, in the page
	width    uint8
	packed   bool // one run without a header, highest bit first
	repeats  bool // the current run is one value
	value    uint32
	left     int // values of the current run
	bit      int // of the next value of a run that does not repeat
}

const (
	maxRLEWidth = 32
	maxRunGroup = 1 << 40
)

// levelWidth is how many bits a level up to top takes.
func levelWidth(top int16) uint8 { return uint8(bits.Len16(uint16(top))) }

// run reads the header of the next run.
func (c *rleCursor) run(buf []byte) error {
	if c.packed {
		return ErrShortPage
	}
	h, n := binary.Uvarint(buf[c.pos:c.end])
	if n <= 0 {
		return ErrShortPage
	}
	c.pos += n
	rest, width := c.end-c.pos, int(c.width)
	c.repeats = h&1 == 0
	if c.repeats {
		size := (width + 7) / 8
		if size > rest {
			return ErrShortPage
		}
		c.value = 0
		for i := range size {
			c.value |= uint32(buf[c.pos+i]) << (8 * i)
		}
		c.pos += size
		c.left = int(min(h>>1, maxRunGroup))
		return nil
	}
	groups := int(min(h>>1, maxRunGroup))
	c.bit, c.left = c.pos*8, groups*8
	if width > 0 {
		// The last group may lack bytes that no value needs.
		c.left = min(c.left, rest*8/width)
		c.pos += min(groups*width, rest)
	}
	return nil
}

// RleDecode fills dst with the next numbers of the stream that c is a place of. Hot: it allocates nothing.
func RleDecode[T int16 | int32](c *rleCursor, buf []byte, dst []T) error {
	for len(dst) > 0 {
		if c.left == 0 {
			if err := c.run(buf); err != nil {
				return err
			}
			continue
		}
		n := min(len(dst), c.left)
		switch {
		case c.repeats:
			v := T(c.value)
			for i := range dst[:n] {
				dst[i] = v
			}
		case c.packed:
			unpackHigh(buf, c.bit, int(c.width), dst[:n])
		default:
			unpackLow(buf[:c.end], c.bit, int(c.width), dst[:n])
		}
		c.bit += n * int(c.width)
		c.left -= n
		dst = dst[n:]
	}
	return nil
}

// unpackLow reads numbers of width bits, lowest bit first, from a bit of buf on. The caller has checked that they are
// there.
func unpackLow[T int16 | int32](buf []byte, bit, width int, dst []T) {
	mask := uint64(1)<<width - 1
	i := 0
	for ; i < len(dst); i++ {
		at := bit >> 3
		if at+8 > len(buf) {
			break
		}
		dst[i] = T(binary.LittleEndian.Uint64(buf[at:]) >> (bit & 7) & mask)
		bit += width
	}
	for ; i < len(dst); i++ {
		v := uint64(0)
		for k, b := range buf[min(bit>>3, len(buf)):] {
			v |= uint64(b) << (8 * k)
		}
		dst[i] = T(v >> (bit & 7) & mask)
		bit += width
	}
}

// unpackHigh is unpackLow with the highest bit first.
func unpackHigh[T int16 | int32](buf []byte, bit, width int, dst []T) {
	for i := range dst {
		v := T(0)
		for range width {
			v = v<<1 | T(buf[bit>>3]>>(7-bit&7)&1)
			bit++
		}
		dst[i] = v
	}
}

// Encodings, in page headers.
const (
	encodingPlain           = 0
	encodingPlainDictionary = 2
	EncodingRLE             = 3
	encodingBitPacked       = 4

	encodingDeltaBinaryPacked    = 5
	encodingDeltaLengthByteArray = 6
	encodingDeltaByteArray       = 7
	encodingByteStreamSplit      = 9
	encodingRLEDictionary        = 8
)

// EncodingNames are the encodings of values that the library reads.
var EncodingNames = map[int32]string{
	encodingDeltaBinaryPacked: "DELTA_BINARY_PACKED", encodingDeltaLengthByteArray: "DELTA_LENGTH_BYTE_ARRAY",
	encodingDeltaByteArray: "DELTA_BYTE_ARRAY", encodingByteStreamSplit: "BYTE_STREAM_SPLIT",
}

// levelCursor returns the place of the first of n levels up to top in page, from pos on, and where they end. A top of
// 0 reads none. size is their length in bytes, -1 where the page says it. low: packed levels begin with the lowest bit.
func levelCursor(page []byte, pos, n int, top int16, encoding int32, size int, low bool) (c rleCursor, end int,
	err error) {
	if top == 0 {
		return c, pos + max(size, 0), nil
	}
	c.width = levelWidth(top)
	switch {
	case encoding == encodingBitPacked && size < 0:
		c.packed, c.bit, c.left = !low, pos*8, n
		if size = (n*int(c.width) + 7) / 8; size > len(page)-pos {
			return c, 0, errors.New("levels that end outside their page")
		}
		c.pos, c.end = pos+size, pos+size
		return c, c.end, nil
	case encoding != EncodingRLE:
		return c, 0, fmt.Errorf("levels in encoding %d of Parquet's", encoding)
	case size < 0:
		if len(page)-pos < 4 {
			return c, 0, ErrShortPage
		}
		size = int(binary.LittleEndian.Uint32(page[pos:]))
		pos += 4
	}
	if size > len(page)-pos {
		return c, 0, errors.New("levels that end outside their page")
	}
	c.pos, c.end = pos, pos+size
	return c, c.end, nil
}
