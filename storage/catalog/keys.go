package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/storage/names"
)

// The keys of the listing tree:
//
//	'p' partition 00 | place: place.go    segment descriptor: by partition, then in the canonical order
//	's' segment id (16)                   the rest of its 'p' key
//	'f' fingerprint                       number (8 BE) | name: a source, and the snapshot that added it
//	'd' segment id (16)                   deleted rows of the segment
//	'v' name                              an overlay
//	'V' overlay number (4 BE) | segment id (16)    the overlay's layer for the segment
//	'l' name                              a sample list
//	'L' name 00 | segment id (16)         its rows of the segment
//	'b' name                              a branch
//	'q' snapshot (8 BE) | index (4 BE)     what a repair did: repaired.go
//
// and of the schema tree:
//
//	'n' name       feature
//	'i' id (8 BE)  name
//	'k'            the features that are keys
//	't' name       value: a property of the table
//
// number is the snapshot that added the entry. A partition's canonical form has no byte below 0x20, so that keys sort
// as the forms do.
const (
	PartitionSpace      = 'p'
	SegmentSpace        = 's'
	SourceSpace         = 'f'
	DeletesSpace        = 'd'
	OverlaySpace        = 'v'
	OverlaySegmentSpace = 'V'
	ListSpace           = 'l'
	ListRowsSpace       = 'L'
	BranchSpace         = 'b'
	RepairedSpace       = 'q'
	NameSpace           = 'n'
	FeatureIDSpace      = 'i'
	KeyFeaturesSpace    = 'k'
	PropertySpace       = 't'
)

func SpaceBounds(space byte) (lower, upper []byte) { return []byte{space}, []byte{space + 1} }

// PartitionPrefix begins the keys of a partition's segments; partitionEnd is above all of them.
func PartitionPrefix(canonical string) []byte {
	return append([]byte{PartitionSpace}, canonical+"\x00"...)
}
func PartitionEnd(canonical string) []byte {
	return append([]byte{PartitionSpace}, canonical+"\x01"...)
}

func SegmentIDKey(segment names.ID) []byte { return append([]byte{SegmentSpace}, segment[:]...) }

func DeletesKey(segment names.ID) []byte { return append([]byte{DeletesSpace}, segment[:]...) }
func OverlayKey(name string) []byte      { return append([]byte{OverlaySpace}, name...) }
func ListKey(name string) []byte         { return append([]byte{ListSpace}, name...) }
func BranchKey(name string) []byte       { return append([]byte{BranchSpace}, name...) }
func ListRowsPrefix(name string) []byte  { return append([]byte{ListRowsSpace}, name+"\x00"...) }
func OverlaySegmentPrefix(number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{OverlaySegmentSpace}, number)
}

// SegmentOf returns the id that a key ends in, after the prefix.
func SegmentOf(key, prefix []byte) (segment names.ID, ok bool) {
	rest, ok := bytes.CutPrefix(key, prefix)
	if !ok || len(rest) != len(segment) || names.ID(rest) == (names.ID{}) {
		return names.ID{}, false
	}
	return names.ID(rest), true
}

// PrefixEnd is above every key that begins with prefix and a segment id, and below those of the prefixes after it.
func PrefixEnd(prefix []byte) []byte {
	return append(prefix[:len(prefix):len(prefix)], bytes.Repeat([]byte{0xff}, 17)...)
}

func SourceKey(fingerprint string) []byte { return append([]byte{SourceSpace}, fingerprint...) }
func KeyFeaturesKey() []byte              { return []byte{KeyFeaturesSpace} }
func PropertyKey(name string) []byte      { return append([]byte{PropertySpace}, name...) }
func NameKey(name string) []byte          { return append([]byte{NameSpace}, name...) }
func FeatureIDKey(f FeatureID) []byte {
	return binary.BigEndian.AppendUint64([]byte{FeatureIDSpace}, uint64(f))
}

func SourceValue(number uint64, name string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, number), name...)
}

// ParseSource takes the value of a source's entry apart.
func ParseSource(v []byte) (number uint64, name string, ok bool) {
	if len(v) < 8 {
		return 0, "", false
	}
	return binary.BigEndian.Uint64(v), string(v[8:]), true
}

// A Source identifies something ingested, so that the same is not ingested twice.
type Source struct {
	Fingerprint string // content hash, hex
	Name        string // path as it was given, or "-": for messages, and to find files whose bytes have changed
}

// Validate returns an error naming the field that is wrong.
func (s Source) Validate() error {
	if s.Fingerprint == "" || len(s.Fingerprint) > 256 {
		return fmt.Errorf("source %.100q: fingerprint of %d bytes: want 1 to 256", s.Name, len(s.Fingerprint))
	}
	if len(s.Name) > MaxName {
		return fmt.Errorf("source name of %d bytes: want at most %d", len(s.Name), MaxName)
	}
	return nil
}

// SegmentIDKeys returns the keys of segments by their ids.
func SegmentIDKeys(ids ...string) ([][]byte, error) {
	keys := make([][]byte, len(ids))
	for i, s := range ids {
		id, err := names.ParseID(s)
		if err != nil {
			return nil, err
		}
		keys[i] = SegmentIDKey(id)
	}
	return keys, nil
}

// FeatureIDKeys returns the keys of features by their ids.
func FeatureIDKeys(features []Feature) [][]byte {
	keys := make([][]byte, len(features))
	for i, f := range features {
		keys[i] = FeatureIDKey(f.ID)
	}
	return keys
}

// IDs returns the ids of segments.
func IDs(segments []SegmentDescriptor) []string {
	out := make([]string, len(segments))
	for i, d := range segments {
		out[i] = d.ID
	}
	return out
}
