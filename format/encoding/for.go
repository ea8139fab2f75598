package encoding

import (
	"encoding/binary"
	"math/bits"
)

//go:generate go run kernels_generate.go

const (
	blockLen   = 256 // values in a block of packed bits
	blockLanes = 4   // lanes of a block: value i is row i/4 of lane i%4
	wordStride = blockLanes * 8
)

// packedLen returns the bytes that n values of width bits take: whole blocks, then the rest of the values as one run
// of bits, filled up to a byte. n is at most maxCount, so that nothing here overflows.
func packedLen(n, width int) int {
	return n/blockLen*(blockLen/8*width) + (n%blockLen*width+7)/8
}

// appendPacked appends the low width bits of each value less base, in the layout that packedLen counts.
//
//	block of 256 values, 32*width bytes: word k (8 LE) of lane l lies at 8*(4*k + l).
//	Lane l holds values l, l+4, l+8, ... one after the other, lowest bits first.
//
//	+-------------+-------------+-------------+-------------+-------------+--- ---+
//	| word 0 of   | word 0 of   | word 0 of   | word 0 of   | word 1 of   |       |
//	| lane 0 (8)  | lane 1 (8)  | lane 2 (8)  | lane 3 (8)  | lane 0 (8)  |  ...  |
//	+-------------+-------------+-------------+-------------+-------------+--- ---+
//
//	tail of t = n mod 256 values, (t*width + 7) / 8 bytes: value i at bit i*width, lowest bits first; the bits left
//	over in the last byte are zero.
func appendPacked(dst []byte, vals []int64, width int, base int64) []byte {
	pos, size := len(dst), packedLen(len(vals), width)
	dst = grow(dst, size)
	if width == 0 {
		return dst
	}
	pack := packLane[width]
	for len(vals) >= blockLen {
		for l := range blockLanes {
			pack(dst[pos+8*l:], vals[l:], base)
		}
		pos += blockLen / 8 * width
		vals = vals[blockLen:]
	}
	mask := maskOf(width)
	var acc uint64
	have := 0
	for _, v := range vals {
		u := uint64(v-base) & mask
		acc |= u << have
		if have+width < 64 {
			have += width
			continue
		}
		binary.LittleEndian.PutUint64(dst[pos:], acc)
		pos += 8
		acc = u >> (64 - have) // a shift by 64 gives 0
		have += width - 64
	}
	for ; have > 0; have -= 8 {
		dst[pos] = byte(acc)
		acc >>= 8
		pos++
	}
	return dst
}

// unpack writes base plus each of the len(dst) packed values. len(src) is packedLen(len(dst), width).
func unpack(dst []int64, src []byte, width int, base int64) {
	whole := len(dst) / blockLen * blockLen
	unpackBlocks(dst[:whole], src, width, base)
	unpackTail(dst[whole:], src[whole/8*width:], width, base)
}

// unpackBlocksPlain unpacks whole blocks. Hot: unpackBlocks replaces it where the processor has vectors.
func unpackBlocksPlain(dst []int64, src []byte, width int, base int64) {
	if width == 0 {
		fill(dst, base)
		return
	}
	kernel := unpackLane[width]
	for len(dst) >= blockLen {
		for l := range blockLanes {
			kernel(dst[l:], src[8*l:], base)
		}
		src = src[blockLen/8*width:]
		dst = dst[blockLen:]
	}
}

// unpackTail unpacks fewer than blockLen values.
func unpackTail(dst []int64, src []byte, width int, base int64) {
	if len(dst) == 0 {
		return
	}
	mask := maskOf(width)
	i, bit := 0, 0
	// A value lies in the 8 bytes from its first one, or reaches into the 9th.
	for ; i < len(dst); i++ {
		at := bit >> 3
		if at+9 > len(src) {
			break
		}
		v := binary.LittleEndian.Uint64(src[at:]) >> (bit & 7)
		if bit&7+width > 64 {
			v |= uint64(src[at+8]) << (64 - bit&7)
		}
		dst[i] = int64(v&mask) + base
		bit += width
	}
	if i == len(dst) {
		return
	}
	// At most 8 bytes are left: the last values come from a copy with room behind it.
	var end [24]byte
	copy(end[:8], src[bit>>3:])
	bit &= 7
	for ; i < len(dst); i++ {
		at := bit >> 3
		v := binary.LittleEndian.Uint64(end[at:]) >> (bit & 7)
		if bit&7+width > 64 {
			v |= uint64(end[at+8]) << (64 - bit&7)
		}
		dst[i] = int64(v&mask) + base
		bit += width
	}
}

func maskOf(width int) uint64 {
	if width == 0 {
		return 0
	}
	return ^uint64(0) >> (64 - width)
}

// grow returns b with n more bytes, whatever they hold.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = append(b, make([]byte, n)...)
		return b
	}
	return b[:len(b)+n]
}

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
