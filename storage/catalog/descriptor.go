package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// A SegmentDescriptor says all that a commit needs to know of a segment. It is small and has a stable encoding, so that
// the writer of a segment can ship it to the process that commits. Its objects are named by its id.
type SegmentDescriptor struct {
	ID        string // 32 lower-case hex digits, random
	Partition Partition
	Rows      uint64
	Bytes     uint64 // of all its objects, the index too
	Features  uint32 // feature files
	Objects   uint32 // packs and single feature files; Segment.Objects lists them
	Index     string // object name of index.sst: follows from ID
	IndexSize uint64
	KeysSize  uint64 // size of keys.sst; 0: the segment has none
}

// Validate returns an error naming the first field that is wrong.
func (d SegmentDescriptor) Validate() error {
	i, err := names.ParseID(d.ID)
	if err != nil {
		return fmt.Errorf("segment %w", err)
	}
	if d.Index != i.IndexName() {
		return fmt.Errorf("segment %s: index %q: want %q", d.ID, d.Index, i.IndexName())
	}
	if d.IndexSize == 0 || d.IndexSize > 1<<62 || d.KeysSize > 1<<62 || d.Bytes < d.IndexSize+d.KeysSize ||
		d.Bytes > 1<<62 || d.Rows > 1<<62 {
		return fmt.Errorf("segment %s: %d rows, %d bytes with an index of %d and a table of keys of %d: out of range",
			d.ID, d.Rows, d.Bytes, d.IndexSize, d.KeysSize)
	}
	if err := d.Partition.Validate(); err != nil {
		return fmt.Errorf("segment %s: %w", d.ID, err)
	}
	return nil
}

const descriptorVersion = 1

// AppendDescriptor appends the stable encoding of a valid descriptor:
//
//	version 1 (1) | id (16) | partition | rows | bytes | features | objects | index size | size of keys.sst, unless 0
//
// Numbers are varints, the partition its canonical form after its length.
func AppendDescriptor(dst []byte, d SegmentDescriptor) []byte {
	i, _ := names.ParseID(d.ID)
	dst = append(dst, descriptorVersion)
	dst = append(dst, i[:]...)
	dst = wire.AppendString(dst, d.Partition.String())
	for _, v := range [...]uint64{d.Rows, d.Bytes, uint64(d.Features), uint64(d.Objects), d.IndexSize} {
		dst = binary.AppendUvarint(dst, v)
	}
	if d.KeysSize > 0 {
		dst = binary.AppendUvarint(dst, d.KeysSize)
	}
	return dst
}

// DecodeDescriptor decodes what AppendDescriptor wrote; the reason is empty when it is right.
func DecodeDescriptor(b []byte) (SegmentDescriptor, string) {
	d := wire.Decoder{Rest: b}
	if v := d.Byte(); d.Reason == "" && v != descriptorVersion {
		return SegmentDescriptor{}, fmt.Sprintf("segment descriptor of version %d: want %d", v, descriptorVersion)
	}
	var i names.ID
	copy(i[:], d.Take(16))
	p, err := ParsePartition(d.String())
	if err != nil {
		return SegmentDescriptor{}, err.Error()
	}
	out := SegmentDescriptor{ID: i.String(), Index: i.IndexName(), Partition: p, Rows: d.Uvarint(), Bytes: d.Uvarint()}
	out.Features = uint32(d.Max(1<<32-1, "features"))
	out.Objects = uint32(d.Max(1<<32-1, "objects"))
	out.IndexSize = d.Uvarint()
	if len(d.Rest) > 0 {
		if out.KeysSize = d.Uvarint(); out.KeysSize == 0 {
			d.Fail("table of keys of 0 bytes")
		}
	}
	d.End()
	if d.Reason != "" {
		return SegmentDescriptor{}, "segment descriptor: " + d.Reason
	}
	if err := out.Validate(); err != nil {
		return SegmentDescriptor{}, err.Error()
	}
	return out, ""
}
