// Package sst writes and reads the sorted tables that a store keeps: a segment's index and key table, a table's
// listing and schema.
//
// They are Pebble sstables, written by Pebble itself with every choice pinned:
//
//	+-------------+     +-------------+------------------+-----------+------------+-----------+-------------+
//	| data block  | ... | data block  | index partitions | top index | properties | metaindex | footer (53) |
//	+-------------+     +-------------+------------------+-----------+------------+-----------+-------------+
//	                                                     \________ the tail: one read _________________/
//
// table format Pebble v2 (row blocks), no compression, no filter, CRC-32C, keys ordered by their bytes.
//
// The reader is our own, for the subset that the writer makes, for two reasons. A look-up in a process that has just
// started must cost few requests: Reader gets footer, properties and the top of the index in one read of the tail, and
// then the index partitions of a batch of keys at once, and then their blocks. And the bytes may be untrusted: every
// length is checked against the file before it sizes or indexes anything, no code here is unsafe, and whatever is wrong
// is a format.CorruptError with the object and the offset. Pebble's reader, which trusts what passes its checksums, is
// the oracle in the tests.
package sst
