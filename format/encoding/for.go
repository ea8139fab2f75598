package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
)

// Frame of reference (id 3): a minimum, then every value's distance from it in the same number of bits.
//
//	+--------+-----------+------------------+--------------------------+
//	| 3 (1)  | width (1) | minimum (varint) | n distances, bit-packed  |
//	+--------+-----------+------------------+--------------------------+
//
// Sums wrap at 64 bits, so any minimum works. For uint64 values it is the smallest as an unsigned number.
const IDFOR ID = 3

const nsFOR = 0.5 // a value

func init() {
	registerInts(&intCodec{
		codec: codec{IDFOR, "for", (*description).firstByte},
		turn:  10, deepest: maxDepth, offer: offerFOR, encode: encodeFOR, decode: decodeFOR, seeks: seekFew,
		stream: &intStream{open: openFOR, next: nextFOR, close: closeFOR},
	})
}

func offerFOR(_ *encoder, c *intChoice) {
	c.offer(IDFOR, float64(sizeFOR(c.stats.n, c.stats.width, c.stats.base)), c.n*nsFOR)
}

func encodeFOR(_ *encoder, dst []byte, _ *memory, vals []int64, s *intStats, _ int) ([]byte, bool) {
	return appendFOR(dst, vals, s.width, s.base), true
}

func appendFOR(dst []byte, vals []int64, width int, base int64) []byte {
	dst = append(dst, byte(IDFOR), byte(width))
	dst = binary.AppendVarint(dst, base)
	return bitpack.Append(dst, vals, width, base)
}

func sizeFOR(n, width int, base int64) int { return 2 + varintLen(base) + bitpack.Len(n, width) }

// parseFOR reads the head of a chunk of n values and returns what unpack needs.
func parseFOR(n int, p []byte) (packed []byte, width int, base int64, err error) {
	if len(p) < 1 {
		return nil, 0, 0, errShort
	}
	width = int(p[0])
	if width > 64 {
		return nil, 0, 0, errWidth
	}
	base, p, err = takeVarint(p[1:])
	if err != nil {
		return nil, 0, 0, err
	}
	if len(p) != bitpack.Len(n, width) {
		return nil, 0, 0, errLength
	}
	return p, width, base, nil
}

func decodeFOR(d *Decoder, dst []int64, n int, spans []Span, p []byte, _ int) error {
	packed, width, base, err := parseFOR(n, p)
	if err != nil {
		return err
	}
	d.unpackAt(dst, n, spans, packed, width, base)
	return nil
}

// A packedStream is the rest of packed values that are decoded in pieces.
type packedStream struct {
	packed []byte
	width  int
	base   int64
}

func openFOR(d *Decoder, n int, p []byte) (err error) {
	s := &d.packed
	s.packed, s.width, s.base, err = parseFOR(n, p)
	return err
}

func nextFOR(d *Decoder, dst []int64) error {
	s := &d.packed
	size := bitpack.Len(len(dst), s.width)
	bitpack.Unpack(dst, s.packed[:size], s.width, s.base)
	s.packed = s.packed[size:]
	return nil
}

func closeFOR(d *Decoder) error {
	d.packed = packedStream{}
	return nil
}

func varintLen(v int64) int {
	return (bits.Len64(uint64(v)<<1^uint64(v>>63)|1) + 6) / 7
}

// blockShare: a block is unpacked whole if at least one in blockShare of its values is asked for.
const blockShare = 4

// unpackAt unpacks spans of n packed values, or all of them if spans is nil. len(packed) is bitpack.Len(n, width).
func (d *Decoder) unpackAt(dst []int64, n int, spans []Span, packed []byte, width int, base int64) {
	if spans == nil {
		bitpack.Unpack(dst, packed, width, base)
		return
	}
	for _, s := range spans {
		for at, to := int(s.From), int(s.To); at < to; {
			first := at / bitpack.BlockLen * bitpack.BlockLen
			bytes := packed[first/bitpack.BlockLen*(bitpack.BlockLen/8*width):]
			k := min(to, first+bitpack.BlockLen) - at
			out := dst[:k]
			switch {
			case n-first < bitpack.BlockLen:
				bitpack.UnpackTail(out, bytes, width, base, at-first)
			case k*blockShare < bitpack.BlockLen:
				bitpack.UnpackFew(out, bytes[:bitpack.BlockLen/8*width], width, base, at-first)
			default:
				bitpack.Unpack(d.block[:], bytes[:bitpack.BlockLen/8*width], width, base)
				copy(out, d.block[at-first:])
			}
			dst = dst[k:]
			at += k
		}
	}
}
