package format

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// The header and tail, which are the same in all versions of the format (SPEC.md, section 2).
//
//	header                     tail
//	+----------+---------+     +----------------------+--------------+----------+---------+
//	| magic(3) | version |     | directory length (4) | checksum (4) | magic(3) | version |
//	+----------+---------+     +----------------------+--------------+----------+---------+
const (
	fileMagic = "DSF"
	packMagic = "DSP"

	formatVersion = 1

	headerLength   = 4
	tailLength     = 12
	checksumLength = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// In the checksum of the dictionary these stand for the stripe and for the kind of the stream.
const (
	dictionaryStripe = -1
	dictionaryKind   = StreamKind(0)
)

// A streamContext is the CRC-32C of a file's salt and the number of a stripe in it. The checksums of the stripe's
// streams continue it, so that whole bytes of another file, stripe or stream do not pass for them. RocksDB puts a
// context into the checksums of blocks for the same purpose (format version 6).
type streamContext uint32

func newStreamContext(salt uint32, stripe int) streamContext {
	sum := ^uint32(0)
	for b, n := uint64(uint32(stripe))<<32|uint64(salt), 0; n < 8; n++ {
		sum = addToSum(sum, byte(b))
		b >>= 8
	}
	return streamContext(^sum)
}

// sum returns the checksum of a chunk.
func (c streamContext) sum(kind StreamKind, chunk []byte) uint32 {
	return crc32.Update(^addToSum(^uint32(c), byte(kind)), castagnoli, chunk)
}

// addToSum adds a byte to an inverted CRC-32C. The slice that crc32.Update wants would be on the heap.
func addToSum(inverted uint32, b byte) uint32 { return castagnoli[byte(inverted)^b] ^ inverted>>8 }

func appendHeader(dst []byte, magic string) []byte {
	return append(append(dst, magic...), formatVersion)
}

// appendTail appends the tail of a directory that is dst[from:].
func appendTail(dst []byte, from int, magic string) []byte {
	directory := dst[from:]
	n := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(directory)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = append(append(dst, magic...), formatVersion)
	binary.LittleEndian.PutUint32(dst[n+4:], tailChecksum(dst[from:n], dst[n:]))
	return dst
}

func tailChecksum(directory, tail []byte) uint32 {
	sum := checksum(directory)
	sum = crc32.Update(sum, castagnoli, tail[:4])
	return crc32.Update(sum, castagnoli, tail[8:tailLength])
}

// OpenFile reads the directory of the feature file at [off, off+size) of r. Offsets in its errors count from the start
// of r, offsets in the result from the start of the file. An r that ends before off+size is ErrCorrupt; other errors of
// r are returned unchanged.
func OpenFile(r io.ReaderAt, off, size int64, limits Limits) (*FileMeta, error) {
	limits = limits.withDefaults()
	directory, err := readDirectory(r, off, size, fileMagic, limits)
	if err != nil {
		return nil, err
	}
	at := off + size - tailLength - int64(len(directory))
	m, err := DecodeMeta(directory, limits)
	if err != nil {
		return nil, withOffset(err, at)
	}
	if end := m.End(); end != uint64(at-off) {
		return nil, corrupt(at, "stripes end at %d, the directory starts at %d", end, at-off)
	}
	return m, nil
}

// withOffset sets the Offset of a CorruptError or UnsupportedError, and returns it.
func withOffset(err error, offset int64) error {
	switch e := err.(type) {
	case *CorruptError:
		e.Offset = offset
	case *UnsupportedError:
		e.Offset = offset
	}
	return err
}

// suffixBytes is how much of a file's end is read first. This is nearly always enough for the directory, and for all of
// a small file, so that opening takes one or two reads.
const suffixBytes = 4096

// readDirectory checks header and tail of the file at [off, off+size) of r and returns its directory. Owned.
func readDirectory(r io.ReaderAt, off, size int64, magic string, limits Limits) ([]byte, error) {
	if off < 0 || size < headerLength+tailLength || off+size < off {
		return nil, corrupt(max(off, -1), "%d bytes, too few for a file", size)
	}
	suffix := make([]byte, min(size, suffixBytes))
	start := off + size - int64(len(suffix))
	if err := readFull(r, suffix, start); err != nil {
		return nil, err
	}
	head := suffix[:headerLength]
	if start != off {
		head = make([]byte, headerLength)
		if err := readFull(r, head, off); err != nil {
			return nil, err
		}
	}
	if string(head[:3]) != magic {
		return nil, corrupt(off, "magic %q, want %q", head[:3], magic)
	}
	tail := suffix[len(suffix)-tailLength:]
	at := off + size - tailLength
	if string(tail[8:11]) != magic {
		return nil, corrupt(at+8, "magic %q at the end, want %q", tail[8:11], magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > size-headerLength-tailLength {
		return nil, corrupt(at, "directory of %d bytes in a file of %d", n, size)
	}
	if uint64(n) > limits.DirectoryBytes {
		return nil, corrupt(at, "directory of %d bytes, over the limit of %d", n, limits.DirectoryBytes)
	}
	before := suffix[:len(suffix)-tailLength]
	directory := before[max(0, len(before)-int(n)):]
	if int64(len(directory)) < n {
		directory = make([]byte, n)
		if err := readFull(r, directory, at-n); err != nil {
			return nil, err
		}
	}
	if got, want := tailChecksum(directory, tail), binary.LittleEndian.Uint32(tail[4:]); got != want {
		return nil, corrupt(at-n, "directory has checksum %08x, want %08x", got, want)
	}
	switch tail[11] {
	case formatVersion:
	case 0:
		return nil, corrupt(at+11, "format version 0")
	default:
		return nil, unsupported(at+11, "format version %d", tail[11])
	}
	if head[3] != formatVersion {
		return nil, corrupt(off+3, "header of version %d in a file of version %d", head[3], tail[11])
	}
	return directory, nil
}

// readFull fills b from off of r. An r that ends before is ErrCorrupt.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return corrupt(off, "ends after %d of %d bytes", n, len(b))
	}
	return err
}
