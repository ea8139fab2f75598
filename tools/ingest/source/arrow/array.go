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

// An converter makes our arrays of those of one column of Arrow's. Decoded dictionaries are kept for the record.
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
	case *arrowarray.Int8:
		a.Ints = widenInts(t.Int8Values())
	case *arrowarray.Int16:
		a.Ints = widenInts(t.Int16Values())
	case *arrowarray.Int32:
		a.Ints = widenInts(t.Int32Values())
	case *arrowarray.Int64:
		a.Ints = lend(c, a, t.Int64Values())
	case *arrowarray.Uint8:
		a.Ints = widenInts(t.Uint8Values())
	case *arrowarray.Uint16:
		a.Ints = widenInts(t.Uint16Values())
	case *arrowarray.Uint32:
		a.Ints = widenInts(t.Uint32Values())
	case *arrowarray.Uint64:
		a.Ints = widenInts(t.Uint64Values())
	case *arrowarray.Date32:
		a.Ints = widenInts(t.Date32Values())
	case *arrowarray.Date64:
		a.Ints = widenInts(t.Date64Values())
	case *arrowarray.Time32:
		a.Ints = widenInts(t.Time32Values())
	case *arrowarray.Time64:
		a.Ints = widenInts(t.Time64Values())
	case *arrowarray.Timestamp:
		a.Ints = widenInts(t.TimestampValues())
	case *arrowarray.Duration:
		a.Ints = widenInts(t.DurationValues())
	case *arrowarray.Float16:
		a.Floats = make([]float32, a.Len)
		for i, v := range t.Values() {
			a.Floats[i] = column.HalfValue(v.Uint16())
		}
	case *arrowarray.Float32:
		a.Floats = lend(c, a, t.Float32Values())
	case *arrowarray.Float64:
		a.Doubles = lend(c, a, t.Float64Values())
	case *arrowarray.Decimal32:
		a.Ints = make([]int64, a.Len)
		for i := range a.Ints {
			a.Ints[i] = int64(t.Value(i))
		}
	case *arrowarray.Decimal64:
		a.Ints = make([]int64, a.Len)
		for i := range a.Ints {
			a.Ints[i] = int64(t.Value(i))
		}
	case *arrowarray.Decimal128:
		err = c.decimals(a, 16, func(i int, b []byte) {
			v := t.Value(i)
			binary.BigEndian.PutUint64(b, uint64(v.HighBits()))
			binary.BigEndian.PutUint64(b[8:], v.LowBits())
		})
	case *arrowarray.Decimal256:
		err = c.decimals(a, 32, func(i int, b []byte) {
			v := t.Value(i).Array()
			for k, w := range v {
				binary.BigEndian.PutUint64(b[24-8*k:], w)
			}
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
		return nil, fmt.Errorf("type %v of Arrow is not supported", in.DataType())
	}
	return a, err
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

func widenInts[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](in []T) []int64 {
	out := make([]int64, len(in))
	for i, v := range in {
		out[i] = int64(v)
	}
	return out
}

// cells copies byte strings.
func cells[T string | []byte](c *converter, a *column.Array, cell func(int) T) error {
	n, valid := a.Len, a.Valid
	a.Len, a.Valid, a.Offsets = 0, nil, append(make([]int32, 0, n+1), 0)
	for i := range n {
		var v T
		if valid == nil || valid.Get(i) {
			v = cell(i)
		}
		if err := c.grow(int64(len(v))); err != nil {
			return err
		}
		if err := column.AppendCell(a, v, c.limits); err != nil {
			return err
		}
	}
	a.Valid = valid
	return nil
}

// decimals takes numbers of width bytes, which put writes as big-endian two's complement.
func (c *converter) decimals(a *column.Array, width int, put func(int, []byte)) error {
	var wide [32]byte
	if a.Type.Shape == column.Bytes {
		precisionWidth := 16
		if width == 32 {
			precisionWidth = column.DecimalWidthOf(a.Type.Logical)
		}
		n, valid := a.Len, a.Valid
		a.Len, a.Valid, a.Offsets = 0, nil, append(make([]int32, 0, n+1), 0)
		for i := range n {
			clear(wide[:])
			if valid == nil || valid.Get(i) {
				put(i, wide[:width])
			}
			v := wide[:width]
			if len(column.TrimDecimal(v)) > precisionWidth {
				a.Fault(fmt.Errorf("%x is no %s", v, a.Type.Logical))
			}
			if err := column.AppendCell(a, v[width-precisionWidth:], c.limits); err != nil {
				return err
			}
		}
		a.Valid = valid
		return nil
	}
	a.Ints = make([]int64, a.Len)
	for i := range a.Ints {
		if a.Valid != nil && !a.Valid.Get(i) {
			continue
		}
		put(i, wide[:width])
		if v := column.TrimDecimal(wide[:width]); len(v) > 8 {
			a.Faults = append(a.Faults, column.Fault{Entry: i, Err: fmt.Errorf("%x is no %s", v, a.Type.Logical)})
			continue
		}
		a.Ints[i] = int64(binary.BigEndian.Uint64(wide[width-8:]))
	}
	return nil
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
		if contiguous {
			part := arrowarray.NewSlice(ch, first, next)
			child, err := c.convert(part, a.Type.Children[k])
			part.Release()
			if err != nil {
				return nil, err
			}
			a.Children = append(a.Children, child)
			continue
		}
		whole, err := c.convert(ch, a.Type.Children[k])
		if err != nil {
			return nil, err
		}
		picked := column.NewArray(whole.Type)
		for row := range a.Len {
			lo, hi := valid(row)
			for i := lo; i < hi; i++ {
				if err := c.pick(picked, whole, int(i)); err != nil {
					return nil, err
				}
			}
		}
		a.Children = append(a.Children, picked)
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
	out := column.NewArray(n)
	for i := range t.Len() {
		if t.IsNull(i) {
			out.AppendNull()
			continue
		}
		k := t.GetValueIndex(i)
		if k < 0 || k >= values.Len {
			return nil, fmt.Errorf("entry %d of a dictionary of %d", k, values.Len)
		}
		if err := c.pick(out, values, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *converter) runs(t *arrowarray.RunEndEncoded, n *column.Type) (*column.Array, error) {
	values, err := c.convert(t.Values(), n)
	if err != nil {
		return nil, err
	}
	ends := t.RunEndsArr()
	end := func(i int) int64 {
		switch e := ends.(type) {
		case *arrowarray.Int16:
			return int64(e.Value(i))
		case *arrowarray.Int32:
			return int64(e.Value(i))
		case *arrowarray.Int64:
			return e.Value(i)
		}
		return -1
	}
	out := column.NewArray(n)
	offset, run := int64(t.Data().Offset()), 0
	for i := range int64(t.Len()) {
		for run < ends.Len() && end(run) <= offset+i {
			run++
		}
		if run >= ends.Len() || run >= values.Len {
			return nil, errors.New("run ends before the last row")
		}
		if err := c.pick(out, values, run); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pick appends entry i of src to dst.
func (c *converter) pick(dst, src *column.Array, i int) error {
	if src.IsNull(i) {
		dst.AppendNull()
		return nil
	}
	if err := c.grow(src.SizeBytesOf(i, i+1)); err != nil {
		return err
	}
	if c.size > math.MaxInt32 {
		return errors.New("more than 2^31-1 bytes in a batch")
	}
	dst.AppendFrom(src, i, i+1)
	return nil
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
