// Package dedup finds duplicates in a stripe, so that each value is stored once, and finds the features that repeat on
// the same rows.
//
//	rows of one feature, in clustered order            what Find gives
//
//	  row  list                    runs                slots             partial (newest first)
//	   0   c b a                    0                   0                 values  e d c b a | x
//	   1   c b a                    0                   0                 slot 0  [2, 5)
//	   2   e d c b                  1                   1                 slot 1  [0, 4)
//	   3   x                        2                   2                 slot 2  [5, 6)
//	   4   c b a                    3                   0
//	                                monotone inverse    inverse by codes  each list an offset and a length
//
// A Finder uses the form with the lowest cost: the bytes of the encoded stripe, as a Sizer returns them, and the time
// to decode its values and inverse. It examines the first stripe, then one after 7, 15, 31 and 63 others, and any
// stripe in which rows repeat clearly more or less often than before. In between it keeps the form. docs/decisions/0013
// has the rule and its figures.
//
// # Invariants
//
//   - The column that Find returns expands to the column that it was given, row by row and bit by bit. Null, empty, the
//     bits of a NaN and the sign of a zero are all preserved.
//   - Values with equal hashes are compared before they share a slot.
//   - The time is linear in the size of the stripe, for adversarial values too. The probes for a hash and the shifts
//     for a partial duplicate are bounded, and pairs of slots are hashed with a random seed.
//   - The result depends only on the stripes since Reset, neither on time nor on the seed: pairs are numbered in the
//     order in which they first occur.
//
// # Ownership
//
// A Finder and a Union reuse their memory from stripe to stripe. What they return is borrowed until their next call.
package dedup
