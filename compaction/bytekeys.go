package compaction

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"

	"github.com/dsistore/dsistore/format/vector"
)

// minByteInt is the smallest magnitude of integers that are searched for as bytes.
const minByteInt = 1 << 40

// The decimal text of an integer of at least minByteInt has so many bytes, with a sign.
const (
	minDecimal = 13
	maxDecimal = 20
)

// A byteKeys finds keys in bytes. Two filters tell which eight bytes may begin one; then the keys themselves are asked.
// It takes filterBits to twice as many for each text, and three times that for each integer.
type byteKeys struct {
	keys *Keys
	// Bitmaps of what the things that are searched for begin with: the first two bytes, and a hash of the first eight.
	// The small one stays in the fastest cache, and texts of few different characters set few of its bits.
	begin   [1 << 16 / 64]uint64
	filter  []uint64
	shift   int   // 64 less the logarithm of the bits of filter
	lengths []int // of texts that are searched for, each once, sorted
	count   int   // number of keys
	most    int   // bytes of the longest
}

// filterBits are the bits of the filter for each thing that is searched for: other bytes get past it once in as many
// times, or once in twice as many.
const filterBits = 16

func newByteKeys(k *Keys) *byteKeys {
	b := &byteKeys{keys: k}
	b.each(func(string) { b.count++ }, func(int64) { b.count++ })
	n := b.count
	if k.texts == nil {
		n *= 3
	}
	log := max(16, bits.Len(uint(n*filterBits)))
	b.filter, b.shift = make([]uint64, 1<<log/64), 64-log
	lengths := map[int]bool{}
	b.each(func(t string) {
		b.add([]byte(t))
		if !lengths[len(t)] {
			lengths[len(t)] = true
			b.lengths = append(b.lengths, len(t))
		}
		b.most = max(b.most, len(t))
	}, func(v int64) {
		var text [maxDecimal + 1]byte
		decimal := k.appendText(text[:0], v)
		b.add(decimal)
		b.add(binary.LittleEndian.AppendUint64(text[:0], uint64(v)))
		b.add(binary.BigEndian.AppendUint64(text[:0], uint64(v)))
		b.most = max(b.most, len(decimal))
	})
	slices.Sort(b.lengths)
	return b
}

// each calls text or number for each key that is searched for as bytes.
func (b *byteKeys) each(text func(string), number func(int64)) {
	for t := range b.keys.texts {
		if len(t) >= 8 {
			text(t)
		}
	}
	for v := range b.keys.numbers {
		if long(v) {
			number(v)
		}
	}
}

// long reports whether an integer is searched for as bytes: uint64 values of 2^63 and more are negative here.
func long(v int64) bool { return v >= minByteInt || v <= -minByteInt }

// bit returns the place in the filter of eight bytes, little-endian.
func (b *byteKeys) bit(w uint64) uint64 { return w * 0x9e3779b97f4a7c15 >> b.shift }

func (b *byteKeys) add(key []byte) {
	w := binary.LittleEndian.Uint64(key)
	at := b.bit(w)
	b.filter[at/64] |= 1 << (at % 64)
	b.begin[w&0xffff/64] |= 1 << (w % 64)
}

// find returns the first offset in p at which a key starts, -1 if there is none.
func (b *byteKeys) find(p []byte) int {
	if len(p) < 8 {
		return -1
	}
	w := binary.LittleEndian.Uint64(p) // bytes [at, at+8)
	for at := 0; ; at++ {
		if b.begin[w&0xffff/64]>>(w%64)&1 != 0 {
			if i := b.bit(w); b.filter[i/64]>>(i%64)&1 != 0 && b.begins(p[at:], w) {
				return at
			}
		}
		if at+8 == len(p) {
			return -1
		}
		w = w>>8 | uint64(p[at+8])<<56
	}
}

// named reports whether a predicate has one of the keys, as text that no letter, digit or underscore continues on
// either side: customer_id has not the key customer.
func (b *byteKeys) named(predicate string) bool {
	whole := func(at, n int) bool { // not a part of a word
		return (at == 0 || !inWord(predicate[at-1:at+1])) &&
			(at+n == len(predicate) || !inWord(predicate[at+n-1:at+n+1]))
	}
	for at := range len(predicate) {
		rest := predicate[at:]
		for _, n := range b.lengths {
			if n > len(rest) {
				break
			}
			if _, ok := b.keys.texts[rest[:n]]; ok && whole(at, n) {
				return true
			}
		}
		if n := digits([]byte(rest)); n >= minDecimal && whole(at, n) && b.isDecimal([]byte(rest[:n])) {
			return true
		}
	}
	return false
}

// inWord reports whether both of two bytes may be of one word. Those of letters beyond ASCII may.
func inWord(two string) bool {
	for i := range len(two) {
		c := two[i]
		if c != '_' && c < 0x80 && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// begins reports whether p, whose first eight bytes are w, begins with a key.
func (b *byteKeys) begins(p []byte, w uint64) bool {
	for _, n := range b.lengths {
		if n > len(p) {
			break
		}
		if _, ok := b.keys.texts[string(p[:n])]; ok {
			return true
		}
	}
	return b.keys.numbers != nil &&
		(b.number(int64(w)) || b.number(int64(bits.ReverseBytes64(w))) || b.decimal(p))
}

func (b *byteKeys) number(v int64) bool {
	_, ok := b.keys.numbers[v]
	return ok && long(v)
}

// digits returns how many bytes of decimal digits, with a sign, p begins with, at most maxDecimal.
func digits(p []byte) int {
	n := 0
	for n < min(len(p), maxDecimal) && (p[n] >= '0' && p[n] <= '9' || n == 0 && p[n] == '-') {
		n++
	}
	return n
}

// decimal reports whether p begins with the decimal text of a key.
func (b *byteKeys) decimal(p []byte) bool {
	for n := digits(p); n >= minDecimal; n-- {
		if b.isDecimal(p[:n]) {
			return true
		}
	}
	return false
}

// isDecimal reports whether p is the decimal text of a key.
func (b *byteKeys) isDecimal(p []byte) bool {
	v, err := b.keys.number(string(p))
	return err == nil && b.number(v) && string(b.keys.appendText(nil, v)) == string(p) // no leading zeros
}

// appendText appends the decimal text of an integer of the feature's type.
func (k *Keys) appendText(out []byte, v int64) []byte {
	if k.feature.Type.Elem == vector.Uint64 {
		return strconv.AppendUint(out, uint64(v), 10)
	}
	return strconv.AppendInt(out, v, 10)
}
