package thrift

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
	Stop   = 0
	True   = 1
	False  = 2
	Byte   = 3
	I16    = 4
	I32    = 5
	I64    = 6
	Double = 7
	Binary = 8
	List   = 9
	Set    = 10
	Map    = 11
	Struct = 12
	UUID   = 13
)

// ErrShort is returned when the bytes end within a value: more may follow in the file.
var ErrShort = errors.New("thrift: the bytes end within a value")

const maxDepth = 32

// A Reader reads values from Buf, from Pos on. After the first error, in Err, it reads zeros.
type Reader struct {
	Buf []byte
	Pos int
	Err error
}

// Fail ends reading with an error, unless there was one before.
func (t *Reader) Fail(err error) {
	if t.Err == nil {
		t.Err = err
	}
	t.Pos = len(t.Buf)
}

// Byte reads a byte.
func (t *Reader) Byte() byte {
	if t.Pos >= len(t.Buf) {
		t.Fail(ErrShort)
		return 0
	}
	t.Pos++
	return t.Buf[t.Pos-1]
}

func (t *Reader) uvarint() uint64 {
	v, n := binary.Uvarint(t.Buf[min(t.Pos, len(t.Buf)):])
	if n == 0 {
		t.Fail(ErrShort)
		return 0
	}
	if n < 0 {
		t.Fail(errors.New("thrift: a number longer than 64 bits"))
		return 0
	}
	t.Pos += n
	return v
}

// Varint reads a zigzag number.
func (t *Reader) Varint() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// I32 reads a zigzag number of 32 bits.
func (t *Reader) I32() int32 {
	v := t.Varint()
	if v != int64(int32(v)) {
		t.Fail(fmt.Errorf("thrift: %d does not fit 32 bits", v))
	}
	return int32(v)
}

// Bytes returns a borrowed slice of the buffer.
func (t *Reader) Bytes() []byte {
	n := t.uvarint()
	if n > uint64(len(t.Buf)-t.Pos) {
		t.Fail(ErrShort)
		return nil
	}
	t.Pos += int(n)
	return t.Buf[t.Pos-int(n) : t.Pos]
}

// Fields calls visit with the id and type of each field of a struct; visit reads or skips the value.
func (t *Reader) Fields(depth int, visit func(id int16, typ byte)) {
	if depth > maxDepth {
		t.Fail(fmt.Errorf("thrift: nested deeper than %d", maxDepth))
		return
	}
	id := int16(0)
	for t.Err == nil {
		h := t.Byte()
		if t.Err != nil || h&15 == Stop {
			return
		}
		if h>>4 != 0 {
			id += int16(h >> 4)
		} else {
			id = int16(t.Varint())
		}
		visit(id, h&15)
	}
}

// Ints reads a struct: numbers and bools into the elements of into that have the ids of their fields; other reads what
// it returns true for, unless it is nil; the rest is skipped. It returns which ids below 64 there were, a bit each.
func (t *Reader) Ints(depth int, into []int64, other func(id int16, typ byte) bool) (said uint64) {
	t.Fields(depth, func(id int16, typ byte) {
		said |= 1 << uint16(id)
		switch {
		case other != nil && other(id, typ):
		case id <= 0 || int(id) >= len(into):
			t.Skip(typ, depth+1)
		case typ == True || typ == False:
			into[id] = int64(False - typ)
		case typ == Byte:
			into[id] = int64(int8(t.Byte()))
		case typ == I32:
			into[id] = int64(t.I32())
		case typ == I64:
			into[id] = t.Varint()
		default:
			t.Skip(typ, depth+1)
		}
	})
	return said
}

// List returns the size and element type of a list or set.
func (t *Reader) List() (n int, elem byte) {
	h := t.Byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = t.uvarint()
	}
	// An element takes a byte at least.
	if size > uint64(len(t.Buf)-t.Pos) {
		t.Fail(ErrShort)
		return 0, 0
	}
	return int(size), h & 15
}

// Structs calls read at each element of a list of structs.
func (t *Reader) Structs(depth int, read func()) {
	n, elem := t.List()
	if n > 0 && elem != Struct {
		t.Fail(errors.New("thrift: a list that is none of structs"))
	}
	if depth > maxDepth {
		t.Fail(fmt.Errorf("thrift: nested deeper than %d", maxDepth))
	}
	for i := 0; i < n && t.Err == nil; i++ {
		read()
	}
}

// Skip passes over a value of a type. depth is that of what it is in.
func (t *Reader) Skip(typ byte, depth int) {
	if depth > maxDepth {
		t.Fail(fmt.Errorf("thrift: nested deeper than %d", maxDepth))
		return
	}
	switch typ {
	case True, False:
	case Byte:
		t.Byte()
	case I16, I32, I64:
		t.uvarint()
	case Double, UUID:
		n := 8
		if typ == UUID {
			n = 16
		}
		if len(t.Buf)-t.Pos < n {
			t.Fail(ErrShort)
			return
		}
		t.Pos += n
	case Binary:
		t.Bytes()
	case List, Set:
		n, e := t.List()
		for i := 0; i < n && t.Err == nil; i++ {
			t.skipElement(e, depth)
		}
	case Map:
		n := t.uvarint()
		if n == 0 {
			return
		}
		kv := t.Byte()
		for i := uint64(0); i < n && t.Err == nil; i++ {
			t.skipElement(kv>>4, depth)
			t.skipElement(kv&15, depth)
		}
	case Struct:
		t.Fields(depth, func(_ int16, typ byte) { t.Skip(typ, depth+1) })
	default:
		t.Fail(fmt.Errorf("thrift: unknown type %d", typ))
	}
}

// skipElement skips an element of a list: a bool takes a byte there.
func (t *Reader) skipElement(typ byte, depth int) {
	if typ == True || typ == False {
		t.Byte()
		return
	}
	t.Skip(typ, depth+1)
}
