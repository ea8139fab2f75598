// Package format is the bytes of a feature file and of a pack; SPEC.md is their authority.
//
//	feature file   one feature of one segment                pack   many of them in one object
//
//	+--------+----------+----------+-----------+------+      +--------+------+------+-----------+------+
//	| header | stripe 0 | stripe 1 | directory | tail |      | header | file | file | directory | tail |
//	+--------+----------+----------+-----------+------+      +--------+------+------+-----------+------+
//	              |                      |
//	              |                      `-- FileMeta: type, stripes, statistics; the same bytes are the value
//	              |                          in the segment's index, so that planning opens no file
//	              v
//	 +----------+---------+---------+--------+--------+---------+
//	 | presence | inverse | lengths | values | scores | starts  |   streams, contiguous: one read gets a stripe
//	 +----------+---------+---------+--------+--------+---------+   each a chunk of package encoding and its checksum
//
// Between header and stripes a dictionary may stand, of integers that several stripes share: these have codes.
//
// A Writer makes a file from columns, a StripeDecoder makes columns from stripes, OpenFile and OpenPack read
// directories, Dump prints bytes for people.
//
// Invariants:
//   - No chunk is decoded before its checksum is verified, and no memory is allocated for a count that Limits forbid.
//   - Whatever bytes are given, a call ends in a value that keeps every rule of its type, or in an error that matches
//     ErrCorrupt or ErrUnsupported and says where: never in a panic.
//   - A stream that would say nothing is absent and costs no byte.
//   - Offsets count from the start of the feature file, so that a file moves in and out of packs unchanged. Locate
//     makes an error's offset the object's.
//   - The package does no IO of its own: it reads through io.ReaderAt and writes through io.Writer, keeps no goroutine
//     and no global state.
package format
