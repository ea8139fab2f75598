// Package rans codes integers by range asymmetric numeral systems (Duda 2013): the codec "rans" of package encoding,
// whose SPEC.md has the bytes.
//
//	values ── less minimum ──> distances ──> class (16) + place in the class (0 to 15 bits) + low part (0 to 48 bits)
//	                                           |                |                               |
//	                                           `──── states and words ────'                     `── bitpack
//
// Value i belongs to the state i mod 32, so that a row of 32 values is decoded at once: vectors of states that take the
// words that they need in the order of the states (Giesen, "Interleaved entropy coders", 2014). Which of 4,096 slots
// belong to which class is said by Walker's alias method, as in Giesen's ryg_rans: slot s is in bucket s mod 16, and
// belongs to the bucket's own class or to its other one. So a look-up is one permutation of a register. A state gives
//
//	slot = x mod 4096       bucket = slot mod 16       place = slot / 16
//	class = bucket where place < cut, else the bucket's other class
//	x     = frequency(class) * (x / 4096) + rank(slot), then a word if below 2^16
//	bits  = the low size(class) bits of x, then x without them, then a word if below 2^16
//	value = minimum + low + (first(class) + bits) << low width
//
// where frequency is how many slots belong to the class, rank how many of them come before this one, counted bucket by
// bucket and in it by place, and first the sum of 2^size of the classes before. All states end at 2^16, with no word
// left.
//
// A Decoder takes any bytes: it reads nothing outside them and ends. Neither type is safe for concurrent use.
package rans
