package selection

import (
	"bytes"
	"encoding/hex"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/segment"
)

// A keySet holds a part of the keys to find: those whose hash falls into its class.
//
//	table    | 0 | 3 | 0 | 1 | 2 | 0 |      index of a key + 1 by hash, 0: empty
//	               |       |   |
//	keys     key 2 <──┘   key 0, key 1      ints, or text and ends
//
// The table has a power of two of entries, of which at least half are empty.
//
// When it grows beyond its memory it splits each class in two and keeps one of them. The keys of other classes are
// found in later passes.
type keySet struct {
	seed   maphash.Seed
	memory int64

	class, classes uint64 // hash % classes == class; a power of two

	bytes bool
	ints  []int64
	text  []byte   // of all keys, one after the other
	ends  []uint64 // in text
	table []uint32
	found []uint64 // a bit per key
}

const (
	minTable   = 1 << 6
	maxKeys    = math.MaxUint32 / 2
	maxClasses = 1 << 16
)

func newKeySet(t vector.Type, memory int64) *keySet {
	return &keySet{seed: maphash.MakeSeed(), memory: memory, classes: 1, bytes: t.IsList()}
}

// hashes returns the hashes of the keys by which storage looks them up.
func (s *keySet) hashes() []uint64 {
	out := make([]uint64, s.len())
	for i := range out {
		if s.bytes {
			out[i] = segment.HashText(s.textOf(i))
		} else {
			out[i] = segment.HashInt(s.ints[i])
		}
	}
	return out
}

// start empties the set for a class.
func (s *keySet) start(class uint64) {
	s.class = class
	s.ints, s.text, s.ends, s.found = s.ints[:0], s.text[:0], s.ends[:0], s.found[:0]
	s.table = s.table[:0]
}

func (s *keySet) len() int {
	if s.bytes {
		return len(s.ends)
	}
	return len(s.ints)
}

// sizeBytes is the memory that the keys take.
func (s *keySet) sizeBytes() int64 {
	return int64(8*len(s.ints) + len(s.text) + 8*len(s.ends) + 4*len(s.table) + 8*len(s.found))
}

// textOf returns the key at a position, of bytes. Borrowed.
func (s *keySet) textOf(position int) []byte {
	from := uint64(0)
	if position > 0 {
		from = s.ends[position-1]
	}
	return s.text[from:s.ends[position]]
}

// A key is one of a set: bytes, or an integer.
type key struct {
	int  int64
	text []byte
}

// at returns the key at a position. Borrowed.
func (s *keySet) at(position int) key {
	if s.bytes {
		return key{text: s.textOf(position)}
	}
	return key{int: s.ints[position]}
}

func (s *keySet) hash(k key) uint64 {
	if s.bytes {
		return maphash.Bytes(s.seed, k.text)
	}
	return maphash.Comparable(s.seed, k.int)
}

// first is where in the table a key of a hash may be; the classes are told apart by other bits.
func (s *keySet) first(hash uint64) uint64 { return hash >> 24 & uint64(len(s.table)-1) }

// add adds a key unless it is there, or of another class. It reports whether there is room.
func (s *keySet) add(k key) bool {
	hash := s.hash(k)
	if hash&(s.classes-1) != s.class || s.find(k, hash) >= 0 {
		return true
	}
	if s.bytes {
		s.text = append(s.text, k.text...)
		s.ends = append(s.ends, uint64(len(s.text)))
	} else {
		s.ints = append(s.ints, k.int)
	}
	n := s.len()
	if n&63 == 1 {
		s.found = append(s.found, 0)
	}
	if 2*n > len(s.table) {
		s.rehash(max(minTable, 2*len(s.table)))
	} else {
		s.put(hash, n-1)
	}
	// The first pass over the keys sets the number of classes; those of later passes are about as large.
	for s.class == 0 && (s.sizeBytes() > s.memory || s.len() > maxKeys) && s.len() > 1 {
		if s.classes == maxClasses {
			return false
		}
		s.split()
	}
	return true
}

func (s *keySet) put(hash uint64, position int) {
	mask := uint64(len(s.table) - 1)
	i := s.first(hash)
	for s.table[i] != 0 {
		i = (i + 1) & mask
	}
	s.table[i] = uint32(position + 1)
}

func (s *keySet) rehash(size int) {
	s.table = slices.Grow(s.table[:0], size)[:size]
	clear(s.table)
	for position := range s.len() {
		s.put(s.hash(s.at(position)), position)
	}
}

// split halves the classes and drops the keys that are not of the set's any more.
func (s *keySet) split() {
	s.classes *= 2
	kept, text := 0, 0
	for position := range s.len() {
		if s.hash(s.at(position))&(s.classes-1) != s.class {
			continue
		}
		if s.bytes {
			// In position: what is written lies before what is read, and so does its end.
			text += copy(s.text[text:], s.textOf(position))
			s.ends[kept] = uint64(text)
		} else {
			s.ints[kept] = s.ints[position]
		}
		kept++
	}
	if s.bytes {
		s.text, s.ends = s.text[:text], s.ends[:kept]
	} else {
		s.ints = s.ints[:kept]
	}
	s.found = s.found[:(kept+63)/64]
	size := minTable
	for size < 2*kept {
		size *= 2
	}
	s.rehash(size)
}

// find returns the position of a key with a hash, -1 where it is not in the set.
func (s *keySet) find(k key, hash uint64) int {
	if len(s.table) == 0 {
		return -1
	}
	mask := uint64(len(s.table) - 1)
	for i := s.first(hash); s.table[i] != 0; i = (i + 1) & mask {
		position := int(s.table[i] - 1)
		if s.bytes && bytes.Equal(s.textOf(position), k.text) || !s.bytes && s.ints[position] == k.int {
			return position
		}
	}
	return -1
}

// hit reports whether a key is in the set, and remembers that it was found.
func (s *keySet) hit(k key) bool {
	position := s.find(k, s.hash(k))
	if position >= 0 {
		s.found[position>>6] |= 1 << (position & 63)
	}
	return position >= 0
}

// missing calls visit for the position of each key that was not found, in the order in which they were added.
func (s *keySet) missing(visit func(position int)) {
	for position := range s.len() {
		if s.found[position>>6]>>(position&63)&1 == 0 {
			visit(position)
		}
	}
}

// show prints a key of a type for people.
func (s *keySet) show(position int, t vector.Type) string {
	switch {
	case t.Kind == vector.String:
		return string(s.textOf(position))
	case s.bytes:
		return "0x" + hex.EncodeToString(s.textOf(position))
	case t.Elem == vector.Uint64:
		return strconv.FormatUint(uint64(s.ints[position]), 10)
	}
	return strconv.FormatInt(s.ints[position], 10)
}
