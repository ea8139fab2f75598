package encoding

import (
	"encoding/binary"
	"fmt"
)

// An ID names a codec in stored bytes. It is the first byte of every chunk. Ids never change meaning and are never
// used again. 0 is none, so that zeroed bytes are refused.
//
//	1 to 15    ints
//	16 to 31   floats and doubles
//	32 to 47   bits
//	48 to 63   byte strings
type ID uint8

// idEnd is above all ids.
const idEnd = 64

// maxDepth is how deep chunks may lie within chunks: the outermost has depth 0.
const maxDepth = 4

// A codec is what codecs of all families have in common. Each codec is one value, an intCodec, floatCodec, bitCodec or
// stringCodec, which its file registers in an init function: a table that named the codecs where it is declared would
// refer to itself, because codecs nest chunks of other codecs. Everything else finds codecs here: the chooser, the
// decoder, Describe and the tests.
type codec struct {
	id   ID
	name string // as Describe spells it
	// describe writes what Describe tells beside the name; nil: nothing.
	describe func(x *description, p []byte)
}

// codecs holds the registered codecs by id.
var codecs [idEnd]*codec

func (c *codec) register() {
	if c.id == 0 || c.id >= idEnd || codecs[c.id] != nil {
		panic(fmt.Sprintf("codec %s: id %d is none, or taken", c.name, c.id))
	}
	codecs[c.id] = c
}

// codec returns the codec that has the id, or nil.
func (id ID) codec() *codec {
	if id >= idEnd {
		return nil
	}
	return codecs[id]
}

// String returns the codec's name, or "unknown".
func (id ID) String() string {
	if c := id.codec(); c != nil {
		return c.name
	}
	return "unknown"
}

// head takes the codec id off a chunk.
func head(src []byte) (ID, []byte, error) {
	if len(src) == 0 {
		return 0, nil, errShort
	}
	return ID(src[0]), src[1:], nil
}

func takeUvarint(p []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(p)
	if n <= 0 {
		return 0, nil, errVarint
	}
	return v, p[n:], nil
}

func takeVarint(p []byte) (int64, []byte, error) {
	v, n := binary.Varint(p)
	if n <= 0 {
		return 0, nil, errVarint
	}
	return v, p[n:], nil
}

// takeCount takes a count of nested values, at most limit.
func takeCount(p []byte, limit int) (int, []byte, error) {
	v, p, err := takeUvarint(p)
	if err != nil {
		return 0, nil, err
	}
	if v > uint64(limit) {
		return 0, nil, errCount
	}
	return int(v), p, nil
}

// takeNested takes a nested chunk, which stands behind its length.
func takeNested(p []byte) (chunk, rest []byte, err error) {
	v, p, err := takeUvarint(p)
	if err != nil {
		return nil, nil, err
	}
	if v > uint64(len(p)) {
		return nil, nil, errNested
	}
	return p[:v], p[v:], nil
}

// appendNested appends a chunk behind its length.
func appendNested(dst, chunk []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(chunk)))
	return append(dst, chunk...)
}
