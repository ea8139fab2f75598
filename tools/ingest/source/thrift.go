package source

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Thrift's compact protocol, as far as Parquet's page headers and its footer need it.
//
//	field header   1 byte: id delta (high 4 bits, 0: a zigzag varint id follows), type (low 4 bits; 0 ends the struct)
//	bool           in the type: 1 true, 2 false          i8             1 byte
//	i16 i32 i64    zigzag varint                         double         8 bytes
//	binary         varint length, bytes                  struct         fields
//	list, set      1 byte: size (high 4 bits, 15: a varint size follows), element type (low 4 bits), elements
//	map            varint size, 0: nothing more; 1 byte: key type, value type; pairs
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
	thriftUUID   = 13
)

// errThriftShort is returned when the bytes end within a value: more may follow in the file.
var errThriftShort = errors.New("thrift: the bytes end within a value")

const maxThriftDepth = 32

type thriftReader struct {
	buf []byte
	pos int
	err error
}

func (t *thriftReader) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.pos = len(t.buf)
}

func (t *thriftReader) byte() byte {
	if t.pos >= len(t.buf) {
		t.fail(errThriftShort)
		return 0
	}
	t.pos++
	return t.buf[t.pos-1]
}

func (t *thriftReader) uvarint() uint64 {
	v, n := binary.Uvarint(t.buf[min(t.pos, len(t.buf)):])
	if n == 0 {
		t.fail(errThriftShort)
		return 0
	}
	if n < 0 {
		t.fail(errors.New("thrift: a number longer than 64 bits"))
		return 0
	}
	t.pos += n
	return v
}

func (t *thriftReader) varint() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (t *thriftReader) i32() int32 {
	v := t.varint()
	if v != int64(int32(v)) {
		t.fail(fmt.Errorf("thrift: %d does not fit 32 bits", v))
	}
	return int32(v)
}

// bytes returns a borrowed slice of the buffer.
func (t *thriftReader) bytes() []byte {
	n := t.uvarint()
	if n > uint64(len(t.buf)-t.pos) {
		t.fail(errThriftShort)
		return nil
	}
	t.pos += int(n)
	return t.buf[t.pos-int(n) : t.pos]
}

// fields calls visit with the id and type of each field of a struct; visit reads or skips the value.
func (t *thriftReader) fields(depth int, visit func(id int16, typ byte)) {
	if depth > maxThriftDepth {
		t.fail(fmt.Errorf("thrift: nested deeper than %d", maxThriftDepth))
		return
	}
	id := int16(0)
	for t.err == nil {
		h := t.byte()
		if t.err != nil || h&15 == thriftStop {
			return
		}
		if h>>4 != 0 {
			id += int16(h >> 4)
		} else {
			id = int16(t.varint())
		}
		visit(id, h&15)
	}
}

// list returns the size and element type of a list or set.
func (t *thriftReader) list() (n int, elem byte) {
	h := t.byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	// An element takes a byte at least.
	if size > uint64(len(t.buf)-t.pos) {
		t.fail(errThriftShort)
		return 0, 0
	}
	return int(size), h & 15
}

// structs calls read at each element of a list of structs.
func (t *thriftReader) structs(depth int, read func()) {
	n, elem := t.list()
	if n > 0 && elem != thriftStruct {
		t.fail(errors.New("thrift: a list that is none of structs"))
	}
	if depth > maxThriftDepth {
		t.fail(fmt.Errorf("thrift: nested deeper than %d", maxThriftDepth))
	}
	for i := 0; i < n && t.err == nil; i++ {
		read()
	}
}

func (t *thriftReader) skip(typ byte, depth int) {
	if depth > maxThriftDepth {
		t.fail(fmt.Errorf("thrift: nested deeper than %d", maxThriftDepth))
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble, thriftUUID:
		n := 8
		if typ == thriftUUID {
			n = 16
		}
		if len(t.buf)-t.pos < n {
			t.fail(errThriftShort)
			return
		}
		t.pos += n
	case thriftBinary:
		t.bytes()
	case thriftList, thriftSet:
		n, e := t.list()
		for i := 0; i < n && t.err == nil; i++ {
			t.skipElement(e, depth)
		}
	case thriftMap:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kv := t.byte()
		for i := uint64(0); i < n && t.err == nil; i++ {
			t.skipElement(kv>>4, depth)
			t.skipElement(kv&15, depth)
		}
	case thriftStruct:
		t.fields(depth, func(_ int16, typ byte) { t.skip(typ, depth+1) })
	default:
		t.fail(fmt.Errorf("thrift: unknown type %d", typ))
	}
}

// skipElement skips an element of a list: a bool takes a byte there.
func (t *thriftReader) skipElement(typ byte, depth int) {
	if typ == thriftTrue || typ == thriftFalse {
		t.byte()
		return
	}
	t.skip(typ, depth+1)
}
