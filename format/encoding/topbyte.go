package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Top byte (id 9): a frame of reference cut in two: the highest byte, whose values may be of very unequal frequency (codes
// by frequency are), goes through zstd's entropy coder; the bits below it are packed as they are.
//
//	+-------+----------------+------------------+--------------------+----------------+----------------------+
//	| 9 (1) | low width (1)  | minimum (varint) | size of the frame  | zstd frame of  | n low parts,         |
//	|       | 0 to 56        |                  | (uvarint)          | n bytes        | bit-packed           |
//	+-------+----------------+------------------+--------------------+----------------+----------------------+
//
// value = minimum + low + (top << low width), wrapping at 64 bits.
func (e *encoder) appendTopByte(dst []byte, vals []int64, s *intStats) []byte {
	low := max(0, s.width-8)
	dst = append(dst, byte(IDTopByte), byte(low))
	dst = binary.AppendVarint(dst, s.base)
	mark := e.bytes.mark()
	top := e.bytes.grab(len(vals))
	topBytes(top, vals, low, s.base)
	frame := e.squeeze(e.bytes.grab(len(vals) + 64)[:0], top)
	dst = appendNested(dst, frame)
	e.bytes.release(mark)
	return appendPacked(dst, vals, low, s.base)
}

func topBytes(top []byte, vals []int64, low int, base int64) {
	top = top[:len(vals)]
	for i, v := range vals {
		top[i] = byte(uint64(v-base) >> (low & 63))
	}
}

// tryTopByte judges by the entropy of the top bytes of a sample.
func (e *encoder) tryTopByte(b *best, sample []int64, s *intStats) {
	low := max(0, s.width-8)
	var hist [256]uint32
	for _, v := range sample {
		hist[byte(uint64(v-s.base)>>(low&63))]++
	}
	n := float64(s.n)
	// Huffman codes spend a bit at least on each symbol, and a little more than the entropy.
	bytes := n*(float64(low)+max(1, entropy(hist[:], len(sample)))*1.03)/8 + 100
	if bytes < (1-topByteMargin)*b.bytes {
		b.offer(IDTopByte, bytes, n*(nsFOR+nsTopByte+nsZstdByte))
	}
}

// entropy returns the bits a symbol of a histogram of n; logarithms are read off a straight line between powers
// of two, which is 0.09 bits off at most.
func entropy(hist []uint32, n int) float64 {
	log2 := func(x uint32) float64 {
		l := bits.Len32(x) - 1
		return float64(l) + float64(x)/float64(uint32(1)<<l) - 1
	}
	sum := 0.0
	for _, c := range hist {
		if c > 0 {
			sum += float64(c) * log2(c)
		}
	}
	return max(0, log2(uint32(n))-sum/float64(n))
}

// parseTopByte reads the head of a chunk of n values: the width of the low parts, the minimum, the frame and the low parts.
func parseTopByte(n int, p []byte) (low int, base int64, frame, packed []byte, err error) {
	if len(p) < 1 {
		return 0, 0, nil, nil, errShort
	}
	if low = int(p[0]); low > 56 {
		return 0, 0, nil, nil, errWidth
	}
	if base, p, err = takeVarint(p[1:]); err != nil {
		return 0, 0, nil, nil, err
	}
	if frame, p, err = takeNested(p); err != nil {
		return 0, 0, nil, nil, err
	}
	if len(p) != packedLen(n, low) {
		return 0, 0, nil, nil, errLength
	}
	return low, base, frame, p, nil
}

func (d *Decoder) decodeTopByte(dst []int64, p []byte) error {
	low, base, frame, p, err := parseTopByte(len(dst), p)
	if err != nil {
		return err
	}
	m := d.bytes.mark()
	defer d.bytes.release(m)
	top := d.bytes.grab(len(dst))
	if err := d.inflate(top, frame); err != nil {
		return err
	}
	for len(dst) > 0 { // a block at a time, which stays in the first-level cache
		n := min(len(dst), blockLen)
		size := packedLen(n, low)
		unpack(dst[:n], p[:size], low, base)
		addTop(dst[:n], top[:n], low)
		dst, top, p = dst[n:], top[n:], p[size:]
	}
	return nil
}

// addTopPlain adds each top byte to its low part. Hot: addTop replaces it where the processor has vectors.
func addTopPlain(dst []int64, top []byte, low int) {
	top = top[:len(dst)]
	for i, t := range top {
		dst[i] += int64(uint64(t) << (low & 63))
	}
}
