// Package bitmap reads and writes row bitmaps, each of one segment: deleted rows, rows of a sample list, rows that a
// layer covers.
//
//	Ref ──┬─ small: the stored form, within the entry of the listing
//	      └─ large: <2 hex>/<32 hex>/rows.roaring, an object of its own
//
// A Ref names a bitmap. A Store puts, reads and discards them. The stored form is Roaring's portable form.
//
// # Invariants
//
//   - The Roaring library trusts what it reads. So Check looks at all bytes first, and Decode gives the library only
//     what Check has passed.
//   - The same rows give the same bytes.
//   - A bitmap is never overwritten: another one is put.
package bitmap
