// Package bitmap reads and writes the stored form of a bitmap of rows: Roaring's portable form.
//
// The Roaring library trusts what it reads. So Check looks at all bytes first, and Decode gives the library only what
// Check has passed. The same rows give the same bytes.
package bitmap
