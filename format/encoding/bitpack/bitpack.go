// Package bitpack packs integers in a fixed number of bits: the kernels under frame of reference, patched and rans.
// SPEC.md of package encoding, section 2, has the layout.
//
//	Append: values less base -> blocks of 256 values (packBlocks) and a tail of fewer
//	Unpack: the reverse. UnpackFew and UnpackTail decode some values of a block, and of the tail.
//
// Nothing here checks what it is given: callers check lengths with Len. packBlocks and unpackBlocks have kernels for
// AVX2; the fallbacks in plain Go stay, and tests hold both equal.
package bitpack

import (
	"encoding/binary"
	"slices"
)

const (
	BlockLen   = 256            // values in a block of packed bits
	blockLanes = 4              // lanes of a block: value i is row i/4 of lane i%4
	wordStride = blockLanes * 8 // bytes from one word of a lane to the next
)

// Len returns the bytes that n values of width bits take: whole blocks, then the rest of the values as one run
// of bits, filled up to a byte. n is at most maxCount, so that nothing here overflows.
func Len(n, width int) int {
	return n/BlockLen*(BlockLen/8*width) + (n%BlockLen*width+7)/8
}

// Append appends the low width bits of each value less base, in the layout that Len counts.
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
func Append(dst []byte, vals []int64, width int, base int64) []byte {
	pos, size := len(dst), Len(len(vals), width)
	dst = slices.Grow(dst, size)[:pos+size]
	if width == 0 {
		return dst
	}
	whole := len(vals) / BlockLen * BlockLen
	packBlocks(dst[pos:], vals[:whole], width, base)
	pos += whole / 8 * width
	vals = vals[whole:]
	mask := Mask(width)
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

// packBlocksFallback packs whole blocks, a row at a time: its four values go to the same bits of the words of the four
// lanes. width is not 0. Hot: packBlocks replaces it where the processor has vectors.
func packBlocksFallback(dst []byte, vals []int64, width int, base int64) {
	mask := Mask(width)
	var a, b, c, d uint64 // the word of each lane, of which the low have bits are filled
	have := 0
	for ; len(vals) >= blockLanes; vals = vals[blockLanes:] {
		v0, v1 := uint64(vals[0]-base)&mask, uint64(vals[1]-base)&mask
		v2, v3 := uint64(vals[2]-base)&mask, uint64(vals[3]-base)&mask
		shift := have & 63
		a |= v0 << shift
		b |= v1 << shift
		c |= v2 << shift
		d |= v3 << shift
		if have += width; have < 64 {
			continue
		}
		words := (*[wordStride]byte)(dst)
		binary.LittleEndian.PutUint64(words[0:], a)
		binary.LittleEndian.PutUint64(words[8:], b)
		binary.LittleEndian.PutUint64(words[16:], c)
		binary.LittleEndian.PutUint64(words[24:], d)
		dst = dst[wordStride:]
		// The high have bits of each value begin the next word; a shift by 64 gives 0.
		have -= 64
		over := uint(width - have)
		a, b, c, d = v0>>over, v1>>over, v2>>over, v3>>over
	}
}

// Unpack writes base plus each of the len(dst) packed values. len(src) is Len(len(dst), width).
func Unpack(dst []int64, src []byte, width int, base int64) {
	whole := len(dst) / BlockLen * BlockLen
	unpackBlocks(dst[:whole], src, width, base)
	UnpackTail(dst[whole:], src[whole/8*width:], width, base, 0)
}

// unpackBlocksFallback unpacks whole blocks. Hot: unpackBlocks replaces it where the processor has vectors.
func unpackBlocksFallback(dst []int64, src []byte, width int, base int64) {
	if width == 0 {
		fill(dst, base)
		return
	}
	mask := Mask(width)
	for len(dst) >= BlockLen {
		for row := range BlockLen / blockLanes {
			bit := row * width
			at, shift := wordStride*(bit>>6), bit&63
			words := (*[wordStride]byte)(src[at:])
			a := binary.LittleEndian.Uint64(words[0:]) >> shift
			b := binary.LittleEndian.Uint64(words[8:]) >> shift
			c := binary.LittleEndian.Uint64(words[16:]) >> shift
			d := binary.LittleEndian.Uint64(words[24:]) >> shift
			if shift+width > 64 {
				words = (*[wordStride]byte)(src[at+wordStride:])
				left := (64 - shift) & 63
				a |= binary.LittleEndian.Uint64(words[0:]) << left
				b |= binary.LittleEndian.Uint64(words[8:]) << left
				c |= binary.LittleEndian.Uint64(words[16:]) << left
				d |= binary.LittleEndian.Uint64(words[24:]) << left
			}
			out := (*[blockLanes]int64)(dst[blockLanes*row:])
			out[0], out[1] = int64(a&mask)+base, int64(b&mask)+base
			out[2], out[3] = int64(c&mask)+base, int64(d&mask)+base
		}
		src = src[BlockLen/8*width:]
		dst = dst[BlockLen:]
	}
}

// UnpackTail unpacks values of a tail, from value number from on. dst ends where the tail does, or before.
func UnpackTail(dst []int64, tail []byte, width int, base int64, from int) {
	if len(dst) == 0 {
		return
	}
	mask := Mask(width)
	i, bit := 0, from*width
	// A value lies in the 8 bytes from its first one, or reaches into the 9th.
	for ; i < len(dst); i++ {
		at := bit >> 3
		if at+9 > len(tail) {
			break
		}
		v := binary.LittleEndian.Uint64(tail[at:]) >> (bit & 7)
		if bit&7+width > 64 {
			v |= uint64(tail[at+8]) << (64 - bit&7)
		}
		dst[i] = int64(v&mask) + base
		bit += width
	}
	if i == len(dst) {
		return
	}
	// At most 8 bytes are left: the last values come from a copy with room behind it.
	var end [24]byte
	copy(end[:8], tail[bit>>3:])
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

// UnpackFew unpacks the values of a block from place from on, one at a time: see Append for where they are.
func UnpackFew(dst []int64, block []byte, width int, base int64, from int) {
	if width == 0 {
		fill(dst, base)
		return
	}
	mask := Mask(width)
	for i := range dst {
		place := from + i
		bit := place / blockLanes * width
		at := wordStride*(bit>>6) + 8*(place%blockLanes)
		shift := bit & 63
		v := binary.LittleEndian.Uint64(block[at:]) >> shift
		if shift+width > 64 {
			v |= binary.LittleEndian.Uint64(block[at+wordStride:]) << (64 - shift)
		}
		dst[i] = int64(v&mask) + base
	}
}

// Mask has the low width bits set.
func Mask(width int) uint64 {
	if width == 0 {
		return 0
	}
	return ^uint64(0) >> (64 - width)
}

// fill sets every value to v.
func fill(dst []int64, v int64) {
	for i := range dst {
		dst[i] = v
	}
}
