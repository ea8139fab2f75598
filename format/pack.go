package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// PackEntry is one feature file in a pack.
type PackEntry struct {
	Feature        uint64 // feature id
	Offset, Length uint64
}

// minFileLength is less than the length of any feature file: it is that of one with an empty directory.
const minFileLength = headerLength + tailLength

// A PackWriter concatenates feature files into one object with a directory at the end, so that the pack can be read
// without a segment's index. Not safe for concurrent use. After an error of the io.Writer every call returns that
// error.
type PackWriter struct {
	w       io.Writer
	size    int64
	entries []PackEntry
	err     error
}

var errFinished = errors.New("pack: already finished")

// NewPackWriter writes the header of a pack to w.
func NewPackWriter(w io.Writer) (*PackWriter, error) {
	p := &PackWriter{w: w}
	return p, p.write(appendHeader(nil, packMagic))
}

func (p *PackWriter) write(b []byte) error {
	if p.err != nil {
		return p.err
	}
	_, p.err = p.w.Write(b)
	p.size += int64(len(b))
	return p.err
}

// Add appends a whole feature file, borrowed for the call, and returns its offset in the pack.
func (p *PackWriter) Add(feature uint64, file []byte) (offset uint64, err error) {
	n := len(file)
	if n < minFileLength || string(file[:3]) != fileMagic || string(file[n-4:n-1]) != fileMagic {
		return 0, fmt.Errorf("pack: the %d bytes added for feature %d are not a feature file", n, feature)
	}
	offset = uint64(p.size)
	if err := p.write(file); err != nil {
		return 0, err
	}
	p.entries = append(p.entries, PackEntry{Feature: feature, Offset: offset, Length: uint64(n)})
	return offset, nil
}

// Size returns the bytes written so far.
func (p *PackWriter) Size() int64 { return p.size }

// Finish writes directory and tail and returns the pack's length. The PackWriter cannot be used afterwards.
func (p *PackWriter) Finish() (size int64, err error) {
	b := appendPackDirectory(nil, p.entries)
	if len(b) > defaultDirectoryBytes {
		return 0, fmt.Errorf("pack: the directory of %d feature files takes %d bytes, over the limit of %d",
			len(p.entries), len(b), defaultDirectoryBytes)
	}
	if err := p.write(appendTail(b, 0, packMagic)); err != nil {
		return 0, err
	}
	p.err = errFinished
	return p.size, nil
}

// appendPackDirectory appends the directory of a pack:
//
//	+-------+-----------+-------------------------------------------------------------+
//	| 0 (1) | n         | n times: feature (8 LE), gap (uvarint), length (uvarint)    |
//	|       | (uvarint) |                                                             |
//	+-------+-----------+-------------------------------------------------------------+
func appendPackDirectory(dst []byte, entries []PackEntry) []byte {
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	end := uint64(headerLength)
	for _, e := range entries {
		dst = binary.LittleEndian.AppendUint64(dst, e.Feature)
		dst = binary.AppendUvarint(dst, e.Offset-end)
		dst = binary.AppendUvarint(dst, e.Length)
		end = e.Offset + e.Length
	}
	return dst
}

// minPackEntryBytes is the length of the shortest entry: feature, gap, length.
const minPackEntryBytes = 10

// OpenPack reads the directory of a pack, which is the first size bytes of r. Entries are in the order of their
// offsets, do not overlap and lie inside the pack. Errors are as in OpenFile.
func OpenPack(r io.ReaderAt, size int64, limits Limits) ([]PackEntry, error) {
	directory, err := readDirectory(r, 0, size, packMagic, limits.withDefaults())
	if err != nil {
		return nil, err
	}
	at := size - tailLength - int64(len(directory))
	entries, err := decodePackDirectory(directory, uint64(at))
	if err != nil {
		return nil, withOffset(err, at)
	}
	return entries, nil
}

// decodePackDirectory decodes the directory of a pack whose feature files end by end.
func decodePackDirectory(src []byte, end uint64) ([]PackEntry, error) {
	d := metaReader{src: src}
	if flags := d.byte(); flags != 0 {
		return nil, unsupported(-1, "pack flags %#x", flags)
	}
	n := d.uvarint()
	if n > uint64(len(d.src))/minPackEntryBytes {
		return nil, corrupt(-1, "%d feature files in %d bytes", n, len(d.src))
	}
	entries := make([]PackEntry, n)
	offset := uint64(headerLength)
	for i := range entries {
		e := &entries[i]
		e.Feature = d.u64()
		gap := d.uvarint()
		e.Length = d.uvarint()
		if d.bad {
			break
		}
		if gap > end-offset || e.Length > end-offset-gap || e.Length < minFileLength {
			return nil, corrupt(-1, "feature file %d of %d bytes after a gap of %d at %d: the directory starts at %d",
				i, e.Length, gap, offset, end)
		}
		e.Offset = offset + gap
		offset = e.Offset + e.Length
	}
	if d.bad {
		return nil, corrupt(-1, "directory ends early")
	}
	if len(d.src) != 0 {
		return nil, corrupt(-1, "%d bytes after the directory", len(d.src))
	}
	return entries, nil
}
