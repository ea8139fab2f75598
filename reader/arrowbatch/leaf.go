package arrowbatch

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dsistore/dsistore/format/vector"
)

// A leaf converts plain columns of one feature type to Arrow data.
type leaf struct {
	typ   vector.Type
	arrow arrow.DataType // of the column
	// elem is the type of a value, or of a list's element.
	elem arrow.DataType
}

func newLeaf(t vector.Type, logical string) leaf {
	l := leaf{typ: t}
	switch t.Kind {
	case vector.Bytes, vector.String:
		l.elem = bytesType(t.Kind, logical)
		l.arrow = l.elem
	case vector.Weighted:
		l.elem = plainTypes[t.Elem]
		id, score, isMap := weightedNames(logical)
		if isMap {
			l.arrow = arrow.MapOf(l.elem, plainTypes[t.Score])
			break
		}
		l.arrow = arrow.ListOf(arrow.StructOf(
			arrow.Field{Name: id, Type: l.elem, Nullable: true}, arrow.Field{Name: score, Type: plainTypes[t.Score],
				Nullable: true},
		))
	case vector.Sparse:
		l.elem = numberType(t.Elem, logical)
		l.arrow = arrow.ListOf(l.elem)
	case vector.Embedding:
		l.elem = numberType(t.Elem, logical)
		l.arrow = arrow.FixedSizeListOf(int32(t.Dim), l.elem)
	default:
		l.elem = numberType(t.Elem, logical)
		l.arrow = l.elem
	}
	return l
}

// data returns rows of a plain column of l's type. It shares c's memory where the layouts match.
func (l *leaf) data(c *vector.Column) (arrow.ArrayData, error) {
	valid, nulls := validity(c)
	switch c.Type.Kind {
	case vector.Bytes, vector.String:
		return l.bytesData(c, valid, nulls)
	case vector.Sparse, vector.Weighted:
		child, err := l.elements(c)
		if err != nil {
			return nil, err
		}
		return l.nested(c, child, valid, offsets(c)), nil
	case vector.Embedding:
		child, err := l.elements(c)
		if err != nil {
			return nil, err
		}
		return l.nested(c, child, valid), nil
	}
	return numbers(l.elem, c.Ints, c.Floats, c.Doubles, c.Type.Elem, valid, nulls)
}

// elements returns the elements of c's lists, those of embeddings included.
func (l *leaf) elements(c *vector.Column) (arrow.ArrayData, error) {
	ids, err := numbers(l.elem, c.Ints, c.Floats, c.Doubles, c.Type.Elem, nil, 0)
	if err != nil || c.Type.Kind != vector.Weighted {
		return ids, err
	}
	defer ids.Release()
	scores, err := numbers(plainTypes[c.Type.Score], nil, c.ScoreFloats, c.ScoreDoubles, c.Type.Score, nil, 0)
	if err != nil {
		return nil, err
	}
	defer scores.Release()
	var pair arrow.DataType
	switch t := l.arrow.(type) {
	case *arrow.MapType:
		pair = t.Elem()
	case *arrow.ListType:
		pair = t.Elem()
	}
	return array.NewData(pair, len(c.Ints), []*memory.Buffer{nil}, []arrow.ArrayData{ids, scores}, 0, 0), nil
}

// nested returns rows of lists with these elements. It releases child.
func (l *leaf) nested(c *vector.Column, child arrow.ArrayData, buffers ...*memory.Buffer) arrow.ArrayData {
	defer child.Release()
	_, nulls := validity(c)
	return array.NewData(l.arrow, c.Rows, buffers, []arrow.ArrayData{child}, nulls, 0)
}

// validity returns a column's presence as Arrow's validity bitmap, nil when no row is null, and the number of nulls.
func validity(c *vector.Column) (*memory.Buffer, int) {
	if c.Present == nil {
		return nil, 0
	}
	return memory.NewBufferBytes(arrow.Uint64Traits.CastToBytes(c.Present)), c.Rows - c.Present.Count()
}

func offsets(c *vector.Column) *memory.Buffer {
	return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(c.Offsets))
}

// numbers returns the numbers, which are in the slice that e says, as data of type t.
func numbers(t arrow.DataType, ints []int64, floats []float32, doubles []float64, e vector.Elem,
	valid *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	var values []byte
	n := len(ints)
	switch e.Physical() {
	case vector.Float32Values:
		n = len(floats)
		if t.ID() == arrow.FLOAT16 {
			half := make([]uint16, n)
			for i, v := range floats {
				half[i] = halfBits(v)
			}
			values = arrow.Uint16Traits.CastToBytes(half)
			break
		}
		values = arrow.Float32Traits.CastToBytes(floats)
	case vector.Float64Values:
		n = len(doubles)
		values = arrow.Float64Traits.CastToBytes(doubles)
	default:
		switch t.ID() {
		case arrow.BOOL:
			values = packBools(ints)
		case arrow.INT8:
			values = arrow.Int8Traits.CastToBytes(narrow[int8](ints))
		case arrow.INT16:
			values = arrow.Int16Traits.CastToBytes(narrow[int16](ints))
		case arrow.INT32, arrow.DATE32, arrow.TIME32:
			values = arrow.Int32Traits.CastToBytes(narrow[int32](ints))
		case arrow.UINT8:
			values = arrow.Uint8Traits.CastToBytes(narrow[uint8](ints))
		case arrow.UINT16:
			values = arrow.Uint16Traits.CastToBytes(narrow[uint16](ints))
		case arrow.UINT32:
			values = arrow.Uint32Traits.CastToBytes(narrow[uint32](ints))
		case arrow.DECIMAL128:
			wide := make([]decimal128.Num, n)
			for i, v := range ints {
				wide[i] = decimal128.FromI64(v)
			}
			values = arrow.Decimal128Traits.CastToBytes(wide)
		case arrow.INT64, arrow.UINT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
			values = arrow.Int64Traits.CastToBytes(ints)
		default:
			return nil, fmt.Errorf("no conversion of %v to %v", e, t)
		}
	}
	return array.NewData(t, n, []*memory.Buffer{valid, memory.NewBufferBytes(values)}, nil, nulls, 0), nil
}

func narrow[T int8 | int16 | int32 | uint8 | uint16 | uint32](in []int64) []T {
	out := make([]T, len(in))
	for i, v := range in {
		out[i] = T(v)
	}
	return out
}

func packBools(in []int64) []byte {
	out := make([]byte, (len(in)+7)/8)
	for i, v := range in {
		out[i>>3] |= byte(v&1) << (i & 7)
	}
	return out
}

// bytesData returns a column of bytes or strings.
func (l *leaf) bytesData(c *vector.Column, valid *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	width := 0
	var swap func(dst, src []byte)
	storage := l.elem
	if x, ok := storage.(arrow.ExtensionType); ok {
		storage = x.StorageType()
	}
	switch t := storage.(type) {
	case *arrow.FixedSizeBinaryType:
		width, swap = t.ByteWidth, func(dst, src []byte) { copy(dst, src) }
	case *arrow.Decimal128Type:
		width, swap = 16, swapDecimal128
	case *arrow.Decimal256Type:
		width, swap = 32, swapDecimal256
	default:
		buffers := []*memory.Buffer{valid, offsets(c), memory.NewBufferBytes(c.Data)}
		return array.NewData(l.arrow, c.Rows, buffers, nil, nulls, 0), nil
	}
	values := make([]byte, c.Rows*width)
	for r := range c.Rows {
		src := c.Data[c.Offsets[r]:c.Offsets[r+1]]
		if c.IsNull(r) {
			continue
		}
		if len(src) != width {
			return nil, fmt.Errorf("row %d of the batch has %d bytes, but %v has %d", r, len(src), l.arrow, width)
		}
		swap(values[r*width:(r+1)*width], src)
	}
	return array.NewData(l.arrow, c.Rows, []*memory.Buffer{valid, memory.NewBufferBytes(values)}, nil, nulls, 0), nil
}

// swapDecimal128 writes a big-endian number in Arrow's order.
func swapDecimal128(dst, src []byte) {
	hi, lo := binary.BigEndian.Uint64(src), binary.BigEndian.Uint64(src[8:])
	n := [1]decimal128.Num{decimal128.New(int64(hi), lo)}
	copy(dst, arrow.Decimal128Traits.CastToBytes(n[:]))
}

func swapDecimal256(dst, src []byte) {
	n := [1]decimal256.Num{decimal256.New(binary.BigEndian.Uint64(src), binary.BigEndian.Uint64(src[8:]),
		binary.BigEndian.Uint64(src[16:]), binary.BigEndian.Uint64(src[24:]))}
	copy(dst, arrow.Decimal256Traits.CastToBytes(n[:]))
}
