// Package expand has the hot loops that copy decoded columns into batches.
//
// A source is rows, or slots, of a vector.Column in one of three layouts: plain (row i is slot i), with an inverse
// (row to slot), and with partial duplicates (a list is a slice of a longer one). The destination is a slice of the
// batch. A run of rows of a plain column, or of slots, is one copy; else there is one copy for each row.
//
// Invariants:
//   - No function makes an interface call or allocates.
//   - Each vector kernel (expand_simd.go and the .s files) handles the first rows, and a fallback in plain Go the rest.
//     A test compares both. A kernel checks slots and ranges, and never reads or writes outside of them.
//
// All functions are safe for concurrent use on different destinations.
package expand
