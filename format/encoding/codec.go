package encoding

import (
	"encoding/binary"
	"fmt"
)

// An ID identifies a codec. It is the first byte of every chunk. Ids never change meaning and are never reused. 0 is no
// codec, so that zeroed bytes are an error.
//
//	1 to 15    ints
//	16 to 31   floats and doubles
//	32 to 47   bits
//	48 to 63   byte strings
type ID uint8

// idEnd is above all ids.
const idEnd = 64

// maxDepth is the largest depth of a nested chunk. The outermost has depth 0.
const maxDepth = 4

// A codec has the fields that codecs of all families have in common. Each codec is one value of type intCodec,
// floatCodec, bitCodec or stringCodec. Its file registers it in an init function: a table with initial values would
// refer to itself, because codecs nest chunks of other codecs. The chooser, the decoder, Describe and the tests find
// codecs in the registry.
type codec struct {
	id   ID
	name string // in Describe
	// describe writes what Describe prints after the name; nil: nothing.
	describe func(x *description, p []byte)
}

// codecs holds the registered codecs by id.
var codecs [idEnd]*codec

func (c *codec) register() {
	if c.id == 0 || c.id >= idEnd || codecs[c.id] != nil {
		panic(fmt.Sprintf("codec %s: id %d is out of range or taken", c.name, c.id))
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

// head splits a chunk into its codec id and its payload.
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

// takeCount splits a count of nested values, at most limit, off the front of p.
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

// takeNested splits a nested chunk with its length off the front of p.
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

// appendNested appends the length of a chunk, then the chunk.
func appendNested(dst, chunk []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(chunk)))
	return append(dst, chunk...)
}

// A decodeFunc decodes the payload p of a chunk of n values: the values of spans, one span after the other, or all if
// spans is nil. len(dst) is the number of these values. p is untrusted, see Decoder.
type decodeFunc[T any] func(d *Decoder, dst []T, n int, spans []Span, p []byte, depth int) error

// seeking says whether a codec can decode some of a chunk's values without the others.
type seeking uint8

const (
	seekNever  seeking = 0 // no: spans is always nil, and the family copies the values of spans
	seekFew    seeking = 1 // yes, but if most values are asked for, decoding all is faster
	seekAlways seeking = 2 // yes
)

// A reader is the part of a codec that decoding needs.
type reader[T any] struct {
	decode decodeFunc[T]
	seeks  seeking
}

// A family has the codecs whose chunks decode to values of type T.
type family[T any] struct {
	readers [idEnd]reader[T]
	arena   func(d *Decoder) *arena[T]
}

var (
	intFamily   = family[int64]{arena: func(d *Decoder) *arena[int64] { return &d.ints }}
	floatFamily = floatKind[float32]{family[float32]{arena: func(d *Decoder) *arena[float32] { return &d.floats }},
		4, tens32[:], frac32[:]}
	doubleFamily = floatKind[float64]{family[float64]{arena: func(d *Decoder) *arena[float64] { return &d.doubles }},
		8, tens64[:], frac64[:]}
)

// A floatKind is a family of floats.
type floatKind[T float32 | float64] struct {
	family[T]
	size       int // of a value, in bytes
	tens, frac []T // powers of ten that decimals are multiplied by
}

// decode decodes a chunk of len(dst) values.
func (f *family[T]) decode(d *Decoder, dst []T, src []byte, depth int) error {
	return f.decodeAt(d, dst, len(dst), nil, src, depth)
}

// decodeAt decodes spans of a chunk of n values, or all of them if spans is nil.
func (f *family[T]) decodeAt(d *Decoder, dst []T, n int, spans []Span, src []byte, depth int) error {
	id, p, err := head(src)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errDepth
	}
	if id >= idEnd || f.readers[id].decode == nil {
		return wrongCodec(id)
	}
	r := &f.readers[id]
	if spans != nil && (r.seeks == seekNever || r.seeks == seekFew && mostly(len(dst), len(spans), n)) {
		return f.decodeWhole(d, r.decode, dst, n, spans, p, depth)
	}
	return r.decode(d, dst, n, spans, p, depth)
}

// decodeWhole decodes all values of a payload and copies the values of spans.
func (f *family[T]) decodeWhole(d *Decoder, decode decodeFunc[T], dst []T, n int, spans []Span, p []byte,
	depth int) error {
	a := f.arena(d)
	m := a.mark()
	defer a.release(m)
	all := a.grab(n)
	if err := decode(d, all, n, nil, p, depth); err != nil {
		return err
	}
	for _, s := range spans {
		dst = dst[copy(dst, all[s.From:s.To]):]
	}
	return nil
}

// decodeInts decodes a chunk of len(dst) ints.
func (d *Decoder) decodeInts(dst []int64, src []byte, depth int) error {
	return intFamily.decodeAt(d, dst, len(dst), nil, src, depth)
}

// intsAt decodes spans of a chunk of n ints, or all of them if spans is nil.
func (d *Decoder) intsAt(dst []int64, n int, spans []Span, src []byte, depth int) error {
	return intFamily.decodeAt(d, dst, n, spans, src, depth)
}
