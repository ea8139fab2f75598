package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Frame of reference (id 3): a minimum, then every value's distance from it in the same number of bits.
//
//	+--------+-----------+------------------+--------------------------+
//	| 3 (1)  | width (1) | minimum (varint) | n distances, bit-packed  |
//	+--------+-----------+------------------+--------------------------+
//
// Sums wrap at 64 bits, so that any minimum may serve: for uint64 values the smallest of them, unsigned.
func appendFOR(dst []byte, vals []int64, width int, base int64) []byte {
	dst = append(dst, byte(IDFOR), byte(width))
	dst = binary.AppendVarint(dst, base)
	return appendPacked(dst, vals, width, base)
}

func sizeFOR(n, width int, base int64) int { return 2 + varintLen(base) + packedLen(n, width) }

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
	if len(p) != packedLen(n, width) {
		return nil, 0, 0, errLength
	}
	return p, width, base, nil
}

func decodeFOR(dst []int64, p []byte) error {
	packed, width, base, err := parseFOR(len(dst), p)
	if err != nil {
		return err
	}
	unpack(dst, packed, width, base)
	return nil
}

func varintLen(v int64) int {
	return (bits.Len64(uint64(v)<<1^uint64(v>>63)|1) + 6) / 7
}
