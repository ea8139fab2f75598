package storage

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
//	'd' segment id (16)                   deleted rows of the segment: deletes.go
//	'v' name                              an overlay: overlay.go
//	'V' overlay number (4 BE) | segment id (16)    its layer over the segment: layer.go
//	'l' name                              a sample list: samplelist.go
//	'L' name 00 | segment id (16)         its rows of the segment
//	'b' name                              a branch: branch.go
//
// and of the schema tree:
//
//	'n' name       feature
//	'i' id (8 BE)  name
//	'k'            the features that are keys: keyfeatures.go
//	't' name       value: a property of the table: properties.go
//
// number is the snapshot that added the entry. A partition's canonical form has no byte below 0x20, so that keys sort as
// the forms do.
const (
	partitionSpace      = 'p'
	segmentSpace        = 's'
	sourceSpace         = 'f'
	deletesSpace        = 'd'
	overlaySpace        = 'v'
	overlaySegmentSpace = 'V'
	listSpace           = 'l'
	listRowsSpace       = 'L'
	branchSpace         = 'b'
	nameSpace           = 'n'
	idSpace             = 'i'
	keysSpace           = 'k'
	propertySpace       = 't'
)

func spaceBounds(space byte) (lower, upper []byte) { return []byte{space}, []byte{space + 1} }

// partitionPrefix begins the keys of a partition's segments; partitionEnd is above all of them.
func partitionPrefix(canonical string) []byte {
	return append([]byte{partitionSpace}, canonical+"\x00"...)
}
func partitionEnd(canonical string) []byte {
	return append([]byte{partitionSpace}, canonical+"\x01"...)
}

func idKey(segment names.ID) []byte { return append([]byte{segmentSpace}, segment[:]...) }

func deletesKey(segment names.ID) []byte { return append([]byte{deletesSpace}, segment[:]...) }
func overlayKey(name string) []byte      { return append([]byte{overlaySpace}, name...) }
func listKey(name string) []byte         { return append([]byte{listSpace}, name...) }
func branchKey(name string) []byte       { return append([]byte{branchSpace}, name...) }
func listRowsPrefix(name string) []byte  { return append([]byte{listRowsSpace}, name+"\x00"...) }
func overlaySegmentPrefix(number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{overlaySegmentSpace}, number)
}

// segmentOf returns the id that a key ends in, after the prefix.
func segmentOf(key, prefix []byte) (segment names.ID, ok bool) {
	rest, ok := bytes.CutPrefix(key, prefix)
	if !ok || len(rest) != len(segment) || names.ID(rest) == (names.ID{}) {
		return names.ID{}, false
	}
	return names.ID(rest), true
}

// prefixEnd is above every key that begins with prefix and a segment id, and below those of the prefixes after it.
func prefixEnd(prefix []byte) []byte {
	return append(prefix[:len(prefix):len(prefix)], bytes.Repeat([]byte{0xff}, 17)...)
}

func sourceKey(fingerprint string) []byte { return append([]byte{sourceSpace}, fingerprint...) }
func keysKey() []byte                     { return []byte{keysSpace} }
func propertyKey(name string) []byte      { return append([]byte{propertySpace}, name...) }
func nameKey(name string) []byte          { return append([]byte{nameSpace}, name...) }
func featureIDKey(f FeatureID) []byte {
	return binary.BigEndian.AppendUint64([]byte{idSpace}, uint64(f))
}

func sourceValue(number uint64, name string) []byte {
	return append(binary.BigEndian.AppendUint64(nil, number), name...)
}

func parseSource(v []byte) (number uint64, name string, ok bool) {
	if len(v) < 8 {
		return 0, "", false
	}
	return binary.BigEndian.Uint64(v), string(v[8:]), true
}

// A Source identifies something ingested, so that the same is not ingested twice.
type Source struct {
	Fingerprint string // content hash, hex
	Name        string // path or "stdin", for messages
}

// Validate returns an error naming the field that is wrong.
func (s Source) Validate() error {
	if s.Fingerprint == "" || len(s.Fingerprint) > 256 {
		return fmt.Errorf("source %.100q: fingerprint of %d bytes: want 1 to 256", s.Name, len(s.Fingerprint))
	}
	if len(s.Name) > maxName {
		return fmt.Errorf("source name of %d bytes: want at most %d", len(s.Name), maxName)
	}
	return nil
}
