package format

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// A frequencySorter holds the memory of byFrequency.
type frequencySorter struct{ from, to []frequent }

// A frequent is a key with its frequency class, packed so that sorting reads nothing else.
type frequent struct {
	class, number int32
	key           uint64
}

// radixFrom is the number of keys from which on radix sort is used.
const radixFrom = 256

// byFrequency appends the indexes of keys, which are distinct, sorted by frequency class (the bit length of the count)
// from high to low, then by key from low to high. So frequent keys have small codes, and neighbouring keys of a class
// differ by little. counts has the number of occurrences of each key.
func (s *frequencySorter) byFrequency(dst []int32, keys []int64, counts []int32) []int32 {
	s.from = vector.Resize(s.from, len(keys))
	for i, k := range keys {
		s.from[i] = frequent{class: int32(bits.Len32(uint32(counts[i]))), number: int32(i), key: uint64(k)}
	}
	if len(keys) < radixFrom {
		slices.SortFunc(s.from, func(a, b frequent) int {
			if a.class != b.class {
				return int(b.class - a.class)
			}
			return cmp.Compare(a.key, b.key)
		})
	} else {
		s.radix()
	}
	for _, f := range s.from {
		dst = append(dst, f.number)
	}
	return dst
}

// radix sorts s.from by radix sort, least significant byte first: by the bytes in which keys differ, then by class.
func (s *frequencySorter) radix() {
	s.to = vector.Resize(s.to, len(s.from))
	or, and := uint64(0), ^uint64(0)
	for _, f := range s.from {
		or |= f.key
		and &= f.key
	}
	for shift := 0; shift < 64; shift += 8 {
		if byte((or^and)>>shift) != 0 {
			s.pass(shift)
		}
	}
	s.pass(classDigit)
}

// classDigit is the digit of the class, in place of the shift of a key's byte.
const classDigit = 64

// digit returns the byte that a pass sorts by.
func (f *frequent) digit(shift int) byte {
	if shift == classDigit {
		return byte(32 - f.class)
	}
	return byte(f.key >> (shift & 63))
}

// pass sorts s.from by a digit. It is stable.
func (s *frequencySorter) pass(shift int) {
	var at [256]int32
	for i := range s.from {
		at[s.from[i].digit(shift)]++
	}
	sum := int32(0)
	for i, n := range at {
		at[i] = sum
		sum += n
	}
	to := s.to[:len(s.from)]
	for i := range s.from {
		d := s.from[i].digit(shift)
		to[at[d]] = s.from[i]
		at[d]++
	}
	s.from, s.to = to, s.from
}
