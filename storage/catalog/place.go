package catalog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
)

// A Place says where a segment stands among those of its partition: the canonical order of rows. A 'p' key ends in one:
//
//	number (8 BE) | index (4 BE)                                           a segment that was appended
//	number (8 BE) | index (4 BE) | slot (8 BE) | added (8 BE)              a segment that replaced others
//
// number is the snapshot that appended a segment, index the segment's place in that change. Segments that replace
// others stand where the first of those stood: they keep its number and index, and slot orders them. The slots of one
// number and index are 2^64, and those of n segments are spread over the ones that are free, so that each can be
// replaced by several again. added is the snapshot that added the segment; where it is not stored it is number.
type Place struct {
	Number uint64
	Index  uint32
	Slot   uint64
	Added  uint64
}

func (p Place) Before(o Place) bool {
	return cmp.Or(cmp.Compare(p.Number, o.Number), cmp.Compare(p.Index, o.Index), cmp.Compare(p.Slot, o.Slot)) < 0
}

const (
	appendedPlaceLen = 12
	replacedPlaceLen = 28
)

func appendPlace(dst []byte, p Place) []byte {
	dst = binary.BigEndian.AppendUint64(dst, p.Number)
	dst = binary.BigEndian.AppendUint32(dst, p.Index)
	if p.Added == p.Number {
		return dst
	}
	dst = binary.BigEndian.AppendUint64(dst, p.Slot)
	return binary.BigEndian.AppendUint64(dst, p.Added)
}

func parsePlace(b []byte) (p Place, ok bool) {
	if len(b) != appendedPlaceLen && len(b) != replacedPlaceLen {
		return p, false
	}
	p.Number, p.Index = binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:])
	if p.Added = p.Number; len(b) == appendedPlaceLen {
		return p, true
	}
	p.Slot, p.Added = binary.BigEndian.Uint64(b[12:]), binary.BigEndian.Uint64(b[20:])
	return p, p.Added > p.Number
}

func SegmentKey(canonical string, p Place) []byte { return appendPlace(PartitionPrefix(canonical), p) }

// ParseSegmentKey takes a 'p' key apart.
func ParseSegmentKey(k []byte) (canonical string, p Place, ok bool) {
	if len(k) == 0 || k[0] != PartitionSpace {
		return "", p, false
	}
	n := bytes.IndexByte(k, 0) // a canonical form has none
	if n < 0 {
		return "", p, false
	}
	p, ok = parsePlace(k[n+1:])
	return string(k[1:n]), p, ok
}

// ParseSegment decodes a 'p' entry of the listing.
func ParseSegment(key, value []byte) (p Place, d SegmentDescriptor, reason string) {
	canonical, p, ok := ParseSegmentKey(key)
	if !ok {
		return p, d, "listing key is malformed"
	}
	if d, reason = DecodeDescriptor(value); reason != "" {
		return p, d, reason
	}
	if d.Partition.String() != canonical {
		return p, d, fmt.Sprintf("segment %s of partition %q is listed under %q", d.ID, d.Partition, canonical)
	}
	return p, d, ""
}
