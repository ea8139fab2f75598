package rans

import (
	"encoding/binary"

	"github.com/dsistore/dsistore/format/encoding/bitpack"
)

const (
	lanes    = 32 // states, and values of a row
	buckets  = 16 // and classes
	places   = 256
	slots    = buckets * places
	slotBits = 12
	lowest   = 1 << 16 // states are not below this
	maxSize  = 15      // bits of a place in a class
	MaxLow   = 48

	TableLen = 2 * buckets
	StateLen = 4 * lanes
	rowWords = 4 * lanes // the most bytes of words that a row takes
)

// A Decoder is a chunk on its way. The assembly knows the offsets of its first four fields.
type Decoder struct {
	states [lanes]uint32
	// cut[b] is added to a slot of bucket b: bit 12 of the sum then says that it belongs to the bucket's other class.
	cut [buckets]uint32
	// step and value are those of a bucket's own class, then those of the other ones. step is the frequency, and from
	// bit 16 on what is added to the place to have the rank, which may be negative. value is the first of the class,
	// and from bit 24 on its size.
	step  [2 * buckets]uint32
	value [2 * buckets]uint32

	words  []byte
	base   int64
	low    int
	packed []byte                  // the low parts
	block  [bitpack.BlockLen]int64 // of low parts
}

// Open reads all but the words and low parts of a chunk of n values, whose low width and minimum the caller has read:
// low is at most MaxLow, p is what follows. It returns false where p has the wrong length. p is borrowed until Close.
func (r *Decoder) Open(n, low int, base int64, p []byte) bool {
	size := bitpack.Len(n, low)
	words := len(p) - TableLen - StateLen - size
	if words < 0 || words%2 != 0 {
		return false
	}
	r.low, r.base = low, base
	r.table((*[TableLen]byte)(p))
	p = p[TableLen:]
	for i := range r.states {
		r.states[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	p = p[StateLen:]
	r.words, r.packed = p[:words], p[words:]
	return true
}

// table makes the tables from the stored buckets.
func (r *Decoder) table(stored *[TableLen]byte) {
	var frequency [buckets]uint32
	for b := range uint32(buckets) {
		cut, other := uint32(stored[2*b]), stored[2*b+1]&15
		r.cut[b] = slots - (cut*buckets + b)
		r.step[b] = frequency[b] << 16
		frequency[b] += cut
		r.step[buckets+b] = (frequency[other] - cut) << 16
		frequency[other] += places - cut
	}
	first := uint32(0)
	var value [buckets]uint32
	for b := range buckets {
		size := uint32(stored[2*b+1] >> 4)
		value[b] = first | size<<24
		first += 1 << size
	}
	for b := range buckets {
		other := stored[2*b+1] & 15
		r.step[b] |= frequency[b]
		r.step[buckets+b] |= frequency[other]
		r.value[b], r.value[buckets+b] = value[b], value[other]
	}
}

// Next decodes the next values, and returns false where too few words are left; of all calls for a chunk only the last
// takes a number that is no multiple of 32 or, where there are low parts, of bitpack.BlockLen.
func (r *Decoder) Next(dst []int64) bool {
	all := dst
	rows := len(dst) / lanes
	done, used := decodeRows(dst, rows, r)
	r.words = r.words[used:]
	dst = dst[done*lanes:]
	for len(dst) > 0 {
		n := min(len(dst), lanes)
		used = r.rowFallback(dst[:n])
		if used < 0 {
			return false
		}
		r.words, dst = r.words[used:], dst[n:]
	}
	if r.low > 0 {
		r.addLow(all)
	}
	return true
}

// rowFallback decodes one row, or less of the last, and returns the bytes of words used, or -1 where there are too few.
// Hot: decodeRows replaces it where the processor has vectors.
func (r *Decoder) rowFallback(dst []int64) int {
	if len(dst) > lanes {
		return -1
	}
	// A row takes rowWords bytes at most: the last rows find them in a copy with room behind it.
	words := r.words
	var end [rowWords]byte
	if len(words) < len(end) {
		copy(end[:], words)
		words = end[:]
	}
	room := (*[rowWords]byte)(words)
	// That a state takes a word is as likely as not: there are no branches on it.
	used := uint64(0)
	var values [lanes]uint32
	for i := range dst {
		x := r.states[i&(lanes-1)]
		slot := x % slots
		k := slot%buckets | (slot+r.cut[slot%buckets])>>8&buckets
		step := r.step[k]
		values[i&(lanes-1)] = r.value[k]
		y := uint64(step&0xFFFF*(x>>slotBits) + slot/buckets + uint32(int32(step)>>16))
		word := uint64(binary.LittleEndian.Uint16(room[used:]))
		below := (y - lowest) >> 63
		used += 2 * below
		r.states[i&(lanes-1)] = uint32(y<<(16*below&63) | word&-below)
	}
	for i := range dst {
		x, v := r.states[i&(lanes-1)], values[i&(lanes-1)]
		size := v >> 24 & 31
		y := x >> size
		dst[i] = r.base + int64(uint64(v&0xFFFFFF+x-y<<size)<<(r.low&63))
		word := uint64(binary.LittleEndian.Uint16(room[used:]))
		below := (uint64(y) - lowest) >> 63
		used += 2 * below
		r.states[i&(lanes-1)] = uint32(uint64(y)<<(16*below&63) | word&-below)
	}
	if used > uint64(len(r.words)) {
		return -1
	}
	return int(used)
}

// addLow adds the low parts to the values that were decoded last.
func (r *Decoder) addLow(dst []int64) {
	for len(dst) > 0 {
		n := min(len(dst), bitpack.BlockLen)
		size := bitpack.Len(n, r.low)
		part := dst[:n]
		lows := r.block[:len(part)]
		bitpack.Unpack(lows, r.packed[:size], r.low, 0)
		for i := range part {
			part[i] += lows[i]
		}
		dst, r.packed = dst[n:], r.packed[size:]
	}
}

// Close lets go of the chunk and reports whether it ended as it must.
func (r *Decoder) Close() bool {
	whole := len(r.words) == 0
	for _, x := range r.states {
		whole = whole && x == lowest
	}
	r.words, r.packed = nil, nil
	return whole
}
