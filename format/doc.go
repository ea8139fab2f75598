// Package format writes and reads feature files and packs. SPEC.md is the authority on their bytes.
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
//	 +----------+---------+---------+--------+--------+---------+   each a chunk of package encoding and a checksum
//
// Between header and stripes there may be a dictionary of integers that several stripes share. Such stripes have a
// stream of codes.
//
// A Writer makes a file from columns, a StripeDecoder makes columns from stripes, OpenFile and OpenPack read
// directories, Dump prints annotated bytes.
//
// Invariants:
//   - No chunk is decoded before its checksum is verified, and no memory is allocated for a count beyond Limits.
//   - For any bytes, a call returns a valid value, or an error that matches ErrCorrupt or ErrUnsupported and says
//     where. It never panics.
//   - A stream without information is absent and costs no byte.
//   - Offsets count from the start of the feature file, so that a file moves in and out of packs unchanged. Locate
//     makes an error's offset the object's.
//   - The package reads through io.ReaderAt and writes through io.Writer. It starts no goroutines.
package format
