// Package wire decodes the values that a store's objects hold: varints, little-endian numbers, strings behind their
// lengths.
//
// A Decoder never reads outside its bytes and allocates nothing. The first thing that is wrong sets Reason, and all
// that follows is zero, so that callers check once. Corrupt, Damaged and Missing turn a reason, or the error of a read,
// into a format.CorruptError that names the object.
package wire
