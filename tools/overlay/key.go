package overlay

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// The canonical form of a key, which is equal for equal keys:
//
//	integer           0: negative, 1: not (1) | its 64 bits (8 BE)
//	string, bytes     the bytes; as a part of several, their number (varint) before them
//
// and the parts of one made of several features one after the other.

// A keyClass says which keys are compared with each other.
type keyClass uint8

const (
	integerKey keyClass = iota + 1
	bytesKey
)

// A keyPart is a feature that is a key, or a part of one.
type keyPart struct {
	catalog.Feature
	class keyClass
}

func classOf(t vector.Type) (keyClass, bool) {
	switch {
	case t.Kind == vector.Bytes || t.Kind == vector.String:
		return bytesKey, true
	case t.Kind == vector.Dense && t.Elem.IsInteger():
		return integerKey, true
	}
	return 0, false
}

// newKey returns the parts of a key of the table.
func newKey(features []catalog.Feature) ([]keyPart, error) {
	var out []keyPart
	for _, f := range features {
		class, ok := classOf(f.Type)
		if !ok {
			return nil, fmt.Errorf("key %s is %v: want an integer, a string or bytes", f.Name, f.Type)
		}
		out = append(out, keyPart{f, class})
	}
	return out, nil
}

// fits returns an error unless values of a column of a file are compared with the table's.
func (p *keyPart) fits(file string, t vector.Type, logical string) error {
	class, ok := classOf(t)
	// An integer may count anything from anywhere; bytes are what they are.
	if !ok || class != p.class || class == integerKey && logical != p.Logical {
		return fmt.Errorf("key %s is %s in the table and %s in %s: they are not compared with each other", p.Name,
			source.TypeName(p.Type, p.Logical), source.TypeName(t, logical), file)
	}
	return nil
}

// appendKey appends the canonical form of the key in a row of plain columns, one per part. A part that is null gives
// its place, and nothing is appended; else null is -1. A nil column is null in every row.
func appendKey(dst []byte, columns []*vector.Column, row int) (key []byte, null int) {
	before := len(dst)
	for i, c := range columns {
		if c == nil || c.IsNull(row) {
			return dst[:before], i
		}
		if c.Type.IsList() {
			v := c.Data[c.Offsets[row]:c.Offsets[row+1]]
			if len(columns) > 1 {
				dst = binary.AppendUvarint(dst, uint64(len(v)))
			}
			dst = append(dst, v...)
			continue
		}
		v, sign := c.Ints[row], byte(1)
		if v < 0 && c.Type.Elem != vector.Uint64 {
			sign = 0
		}
		dst = binary.BigEndian.AppendUint64(append(dst, sign), uint64(v))
	}
	return dst, -1
}

// maxKeyText bounds what a message shows of a part of a key, in bytes.
const maxKeyText = 64

// keyText returns a canonical key as people read it.
func keyText(parts []keyPart, key []byte) string {
	var out []string
	for _, p := range parts {
		if p.class == integerKey {
			v := binary.BigEndian.Uint64(key[1:9])
			if key[0] == 0 {
				out = append(out, strconv.FormatInt(int64(v), 10))
			} else {
				out = append(out, strconv.FormatUint(v, 10))
			}
			key = key[9:]
			continue
		}
		v := key
		if len(parts) > 1 {
			n, size := binary.Uvarint(key)
			v, key = key[size:size+int(n)], key[size+int(n):]
		}
		text := fmt.Sprintf("%q", v[:min(len(v), maxKeyText)])
		if len(v) > maxKeyText {
			text += "..."
		}
		out = append(out, text)
	}
	if len(out) == 1 {
		return out[0]
	}
	return "(" + strings.Join(out, ", ") + ")"
}
