// Package dedup finds what repeats in a stripe, so that it is stored once, and says which features repeat together.
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
// Each step is taken where it pays: where a stripe in that form is fetched and decoded sooner, by the bytes that a
// Sizer says it takes encoded and by what decoding its values and its inverse takes. So a Finder examines a stripe now
// and then (the first, then after 7, 15, 31, 63 others, or when the rows change more or less often than they did) and
// keeps to the form in between. docs/decisions/0013 has the rule and its figures.
//
// # Invariants
//
//   - The column that Find returns expands to the column that it was given, row by row and bit by bit: null, empty, the
//     bits of a NaN and the sign of a zero are values like others.
//   - Equal hashes prove nothing: values are compared before they are shared. The time is linear in the stripe whatever
//     its values are: the hash of a value finds its place in a bounded number of probes, a partial duplicate in a
//     bounded number of shifts; pairs of slots are hashed with a seed that nobody knows.
//   - The result depends on the stripes since Reset alone, neither on time nor on the seed: pairs are numbered as they
//     first occur.
//
// # Ownership
//
// A Finder and a Union keep their memory from stripe to stripe; what they return is borrowed until their next call.
package dedup
