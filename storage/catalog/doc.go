// Package catalog defines what a snapshot says of its table, and how the entries of its two trees are stored: features,
// partitions, segments, sources, overlays, sample lists, branches and properties.
//
//	keys.go      the keys of both trees, by the first byte: which entry is what
//	place.go     where a segment stands among those of its partition
//	others       one kind of entry each: its type, Validate, Append and Decode
//
// The types are part of the API of package storage. Nothing here reads or writes an object.
//
// # Invariants
//
//   - Decode checks all that Validate checks, and returns a reason, empty when the bytes are right. The caller, which
//     knows the object, reports it.
//   - Append writes only what Decode accepts. The forms are those of SPEC.md.
package catalog
