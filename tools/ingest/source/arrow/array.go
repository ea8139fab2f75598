package arrow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// A recordConverter makes arrays of the columns of a record, in parallel. The rows of a record may come in parts.
type recordConverter struct {
	limits  *column.Limits
	borrow  bool // numbers of our types are borrowed; else everything is copied
	threads int
	columns []converter // of the record at hand
}

// begin turns c to another record.
func (c *recordConverter) begin(columns int) {
	c.columns = column.Resize(c.columns, columns)
	for i := range c.columns {
		c.columns[i] = converter{limits: c.limits, borrow: c.borrow}
	}
}

// convert sets dst to the columns of part as arrays of nodes; those that wanted, unless it is nil, leaves out are left
// as they are. made, which may be nil, is called with each array, by any goroutine. An error is that of the first
// column that has one and names it.
func (c *recordConverter) convert(ctx context.Context, dst []*column.Array, part arrow.RecordBatch,
	nodes []*column.Type, wanted []bool,
	made func(i int, a *column.Array)) error {
	return column.Each(ctx, len(nodes), c.threads, func(_, i int) error {
		if wanted != nil && !wanted[i] {
			return nil
		}
		c.columns[i].size = 0
		a, err := c.columns[i].convert(part.Column(i), nodes[i])
		if err == nil {
			err = a.Check()
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", nodes[i].Name, err)
		}
		if dst[i] = a; made != nil {
			made(i, a)
		}
		return nil
	})
}

// A converter makes our arrays of those of one column of Arrow's. Decoded dictionaries are kept for the record.
type converter struct {
	limits       *column.Limits
	borrow       bool // see recordConverter
	dictionaries map[arrow.ArrayData]*column.Array
	size         int64 // bytes made for the column so far
}

// grow accounts for n more bytes of a column.
func (c *converter) grow(n int64) error {
	if c.size += n; c.size > c.limits.BatchBytes {
		return fmt.Errorf("the rows of a batch hold more than %d bytes", c.limits.BatchBytes)
	}
	return nil
}

// convert returns in as an array of type n.
func (c *converter) convert(in arrow.Array, n *column.Type) (*column.Array, error) {
	if n.Unread {
		return column.Unread(n, in.Len()), nil
	}
	a := &column.Array{Type: n, Len: in.Len()}
	if err := c.grow(8 * int64(in.Len())); err != nil {
		return nil, err
	}
	switch t := in.(type) {
	case *arrowarray.Null:
		return a, nil
	case *arrowarray.Dictionary:
		return c.dictionary(t, n)
	case *arrowarray.RunEndEncoded:
		return c.runs(t, n)
	case arrowarray.ExtensionArray:
		return c.convert(t.Storage(), n)
	}
	a.Valid = arrowValidity(in)
	var err error
	switch t := in.(type) {
	case *arrowarray.Boolean:
		a.Ints = make([]int64, a.Len)
		for i := range a.Ints {
			if t.Value(i) {
				a.Ints[i] = 1
			}
		}
	case *arrowarray.Float16:
		a.Floats = make([]float32, a.Len)
		for i, v := range t.Values() {
			a.Floats[i] = column.HalfValue(v.Uint16())
		}
	case *arrowarray.Float32:
		a.Floats = lend(c, a, t.Float32Values())
	case *arrowarray.Float64:
		a.Doubles = lend(c, a, t.Float64Values())
	case *arrowarray.Int64:
		a.Ints = lend(c, a, t.Int64Values())
	case *arrowarray.Decimal128:
		err = c.decimals(a, func(i int, b []byte) []byte {
			v := t.Value(i)
			b = binary.BigEndian.AppendUint64(b, uint64(v.HighBits()))
			return binary.BigEndian.AppendUint64(b, v.LowBits())
		})
	case *arrowarray.Decimal256:
		err = c.decimals(a, func(i int, b []byte) []byte {
			v := t.Value(i).Array()
			for k := range v {
				b = binary.BigEndian.AppendUint64(b, v[len(v)-1-k])
			}
			return b
		})
	case *arrowarray.String:
		err = cells(c, a, t.Value)
	case *arrowarray.LargeString:
		err = cells(c, a, t.Value)
	case *arrowarray.StringView:
		err = cells(c, a, t.Value)
	case *arrowarray.Binary:
		err = cells(c, a, t.Value)
	case *arrowarray.LargeBinary:
		err = cells(c, a, t.Value)
	case *arrowarray.BinaryView:
		err = cells(c, a, t.Value)
	case *arrowarray.FixedSizeBinary:
		err = cells(c, a, t.Value)
	case *arrowarray.Map:
		return c.lists(a, t.ValueOffsets, []arrow.Array{t.Keys(), t.Items()})
	case *arrowarray.FixedSizeList:
		return c.fixedList(a, t)
	case arrowarray.ListLike:
		return c.lists(a, t.ValueOffsets, []arrow.Array{t.ListValues()})
	case *arrowarray.Struct:
		for i, child := range n.Children {
			m, err := c.convert(t.Field(i), child)
			if err != nil {
				return nil, err
			}
			a.Children = append(a.Children, m)
		}
	default:
		if a.Ints = integers(in.Data()); a.Ints == nil {
			return nil, fmt.Errorf("type %v of Arrow is not supported", in.DataType())
		}
	}
	return a, err
}

// integers returns the values of integers, of what is stored as integers: dates, times and short decimals, and nil of
// other types. Copied.
func integers(d arrow.ArrayData) []int64 {
	var raw []byte
	if b := d.Buffers(); len(b) > 1 && b[1] != nil {
		raw = b[1].Bytes()
	}
	switch d.DataType().ID() {
	case arrow.INT8:
		return widen(d, arrow.Int8Traits.CastFromBytes(raw))
	case arrow.INT16:
		return widen(d, arrow.Int16Traits.CastFromBytes(raw))
	case arrow.INT32, arrow.DATE32, arrow.TIME32, arrow.DECIMAL32:
		return widen(d, arrow.Int32Traits.CastFromBytes(raw))
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION, arrow.DECIMAL64, arrow.UINT64:
		return widen(d, arrow.Int64Traits.CastFromBytes(raw))
	case arrow.UINT8:
		return widen(d, arrow.Uint8Traits.CastFromBytes(raw))
	case arrow.UINT16:
		return widen(d, arrow.Uint16Traits.CastFromBytes(raw))
	case arrow.UINT32:
		return widen(d, arrow.Uint32Traits.CastFromBytes(raw))
	}
	return nil
}

// arrowValidity returns which entries of in are not null, nil where all are. The library's own count of nulls is kept
// where arrays that share their data find it: it would be written there while another column, converted at the same
// time, reads it.
func arrowValidity(in arrow.Array) vector.Bitmap {
	nulls := in.Data().NullN()
	if nulls == 0 || nulls < 0 && len(in.NullBitmapBytes()) == 0 {
		return nil
	}
	valid := arrowBits(in.NullBitmapBytes(), in.Data().Offset(), in.Len())
	if nulls < 0 && valid.Count() == in.Len() {
		return nil
	}
	return valid
}

// lend returns the numbers of an Arrow array: borrowed where c may, else copied.
func lend[T int64 | float32 | float64](c *converter, a *column.Array, in []T) []T {
	if c.borrow && len(in) > 0 {
		a.Borrowed = true
		return in[:len(in):len(in)]
	}
	return append(make([]T, 0, len(in)), in...)
}

func widen[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](d arrow.ArrayData, in []T) []int64 {
	out := make([]int64, d.Len())
	if len(out) > 0 {
		for i, v := range in[d.Offset():][:len(out)] {
			out[i] = int64(v)
		}
	}
	return out
}

// each calls add to append each entry of a, whose length and validity are set.
func (c *converter) each(a *column.Array, add func(i int, valid bool) error) error {
	n, valid := a.Len, a.Valid
	a.Len, a.Valid = 0, nil
	for i := range n {
		if err := add(i, valid == nil || valid.Get(i)); err != nil {
			return err
		}
	}
	a.Valid = valid
	return nil
}

// cells copies byte strings.
func cells[T string | []byte](c *converter, a *column.Array, cell func(int) T) error {
	a.Offsets = append(make([]int32, 0, a.Len+1), 0)
	return c.each(a, func(i int, valid bool) error {
		var v T
		if valid {
			v = cell(i)
		}
		if err := c.grow(int64(len(v))); err != nil {
			return err
		}
		return column.AppendCell(a, v, c.limits)
	})
}

// decimals takes numbers that are appended as big-endian two's complement.
func (c *converter) decimals(a *column.Array, number func(i int, to []byte) []byte) error {
	if a.Type.Shape == column.Bytes {
		a.Offsets = append(make([]int32, 0, a.Len+1), 0)
	}
	width := column.DecimalWidth(a.Type)
	var wide [32]byte
	return c.each(a, func(i int, valid bool) error {
		v := []byte{0}
		if valid {
			v = number(i, wide[:0])
		}
		return column.AppendDecimal(a, v, width, c.limits)
	})
}

// lists copies lists whose entries may lie anywhere in the child arrays, in any order and overlapping, as list views
// do.
func (c *converter) lists(a *column.Array, bounds func(int) (int64, int64), children []arrow.Array) (*column.Array,
	error) {
	length := int64(children[0].Len())
	for _, ch := range children[1:] {
		if int64(ch.Len()) != length {
			return nil, errors.New("a map with more keys than values")
		}
	}
	a.Offsets = append(make([]int32, 0, a.Len+1), 0)
	contiguous := true
	first, next, total := int64(-1), int64(0), int64(0)
	valid := func(i int) (lo, hi int64) {
		if a.Valid == nil || a.Valid.Get(i) {
			return bounds(i)
		}
		return 0, 0
	}
	for i := range a.Len {
		lo, hi := valid(i)
		if lo < 0 || hi < lo || hi > length {
			return nil, fmt.Errorf("a list of entries [%d, %d) of %d", lo, hi, length)
		}
		if hi-lo > c.limits.CellValues {
			return nil, fmt.Errorf("row of more than %d values", c.limits.CellValues)
		}
		if hi > lo {
			if first < 0 {
				first, next = lo, lo
			}
			contiguous = contiguous && lo == next
			next = hi
		}
		if total += hi - lo; total > math.MaxInt32 {
			return nil, errors.New("more than 2^31-1 values in a batch")
		}
		a.Offsets = append(a.Offsets, int32(total))
	}
	if first < 0 {
		first, next = 0, 0
	}
	for k, ch := range children {
		var child *column.Array
		var err error
		if contiguous {
			part := arrowarray.NewSlice(ch, first, next)
			child, err = c.convert(part, a.Type.Children[k])
			part.Release()
		} else if child, err = c.convert(ch, a.Type.Children[k]); err == nil {
			row, at, end := -1, int64(0), int64(0)
			child, err = c.gather(child, int(total), func(int) (int, error) {
				for at++; at >= end; {
					row++
					at, end = valid(row)
				}
				return int(at), nil
			})
		}
		if err != nil {
			return nil, err
		}
		a.Children = append(a.Children, child)
	}
	return a, nil
}

func (c *converter) fixedList(a *column.Array, t *arrowarray.FixedSizeList) (*column.Array, error) {
	dim := int64(a.Type.Dim)
	offset := int64(t.Data().Offset())
	values := t.ListValues()
	lo, hi := offset*dim, (offset+int64(a.Len))*dim
	if dim > c.limits.CellValues || hi > int64(values.Len()) {
		return nil, fmt.Errorf("lists of %d values: %d for %d rows", dim, values.Len(), a.Len)
	}
	part := arrowarray.NewSlice(values, lo, hi)
	defer part.Release()
	child, err := c.convert(part, a.Type.Children[0])
	a.Children = []*column.Array{child}
	return a, err
}

func (c *converter) dictionary(t *arrowarray.Dictionary, n *column.Type) (*column.Array, error) {
	values := c.dictionaries[t.Data().Dictionary()]
	if values == nil || values.Type != n {
		var err error
		if values, err = c.convert(t.Dictionary(), n); err != nil {
			return nil, err
		}
		if c.dictionaries == nil {
			c.dictionaries = map[arrow.ArrayData]*column.Array{}
		}
		c.dictionaries[t.Data().Dictionary()] = values
	}
	return c.gather(values, t.Len(), func(i int) (int, error) {
		if t.IsNull(i) {
			return -1, nil
		}
		k := t.GetValueIndex(i)
		if k < 0 || k >= values.Len {
			return 0, fmt.Errorf("entry %d of a dictionary of %d", k, values.Len)
		}
		return k, nil
	})
}

func (c *converter) runs(t *arrowarray.RunEndEncoded, n *column.Type) (*column.Array, error) {
	values, err := c.convert(t.Values(), n)
	if err != nil {
		return nil, err
	}
	ends := integers(t.RunEndsArr().Data())
	offset, run := int64(t.Data().Offset()), 0
	return c.gather(values, t.Len(), func(i int) (int, error) {
		for run < len(ends) && ends[run] <= offset+int64(i) {
			run++
		}
		if run >= min(len(ends), values.Len) {
			return 0, errors.New("run ends before the last row")
		}
		return run, nil
	})
}

// gather returns n entries of src: entry i is the one that at names, null where that is -1.
func (c *converter) gather(src *column.Array, n int, at func(i int) (int, error)) (*column.Array, error) {
	out := column.NewArray(src.Type)
	null := nullBytes(src.Type)
	for i := range n {
		k, err := at(i)
		if err != nil {
			return nil, err
		}
		if k < 0 || src.IsNull(k) {
			if err := c.grow(null); err != nil {
				return nil, err
			}
			out.AppendNull()
			continue
		}
		if err := c.grow(src.SizeBytesOf(k, k+1)); err != nil {
			return nil, err
		}
		if c.size > math.MaxInt32 {
			return nil, errors.New("more than 2^31-1 bytes in a batch")
		}
		out.AppendFrom(src, k, k+1)
	}
	return out, nil
}

// nullBytes returns about how many bytes AppendNull appends to an array of a type, at most 2^31-1. The elements of
// fixed lists and the members of structs are null too, and few bytes may say that there are many.
func nullBytes(n *column.Type) int64 {
	size := int64(8)
	switch n.Shape {
	case column.FixedList:
		size += int64(n.Dim) * nullBytes(n.Children[0])
	case column.Struct:
		for _, child := range n.Children {
			size = min(size+nullBytes(child), math.MaxInt32)
		}
	}
	return min(size, math.MaxInt32)
}

// arrowBits returns bits [offset, offset+n) of an Arrow bitmap. Copied.
func arrowBits(bits []byte, offset, n int) vector.Bitmap {
	out := make(vector.Bitmap, vector.BitmapWords(n))
	bits = bits[offset>>3:]
	shift := uint(offset) & 7
	for i := range out {
		var w uint64
		for k, b := range bits[8*i : min(8*i+8, len(bits))] {
			w |= uint64(b) << (8 * k)
		}
		if w >>= shift; shift > 0 && 8*i+8 < len(bits) {
			w |= uint64(bits[8*i+8]) << (64 - shift)
		}
		out[i] = w
	}
	if r := n & 63; r != 0 {
		out[len(out)-1] &= math.MaxUint64 >> (64 - uint(r))
	}
	return out
}
