package arrowbatch

import (
	"encoding/base64"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// rowGroupBytes is the compressed size at which a Parquet row group ends.
const rowGroupBytes = 64 << 20

// A parquetWriter gathers records in row groups.
//
// Parquet has neither durations nor lists of fixed size, and arrow-go writes neither (of the latter, none with a null):
// durations go in as the integers that they are, lists of fixed size as lists. The Arrow schema that readers find
// beside the data says what they were, as pyarrow does it.
type parquetWriter struct {
	w      *pqarrow.FileWriter
	schema *arrow.Schema // with what Parquet has
}

func newParquetWriter(w io.Writer, schema *arrow.Schema) (*parquetWriter, error) {
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		f.Type = parquetType(f.Type)
		fields[i] = f
	}
	p := &parquetWriter{schema: arrow.NewSchema(fields, nil)}
	props, err := parquetProperties(p.schema)
	if err != nil {
		return nil, err
	}
	// The writer closes what can be closed.
	p.w, err = pqarrow.NewFileWriter(p.schema, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	full := flight.SerializeSchema(schema, memory.DefaultAllocator)
	return p, p.w.AppendKeyValueMetadata("ARROW:schema", base64.StdEncoding.EncodeToString(full))
}

// parquetProperties leaves floats without dictionaries: arrow-go makes one entry of all NaNs there, and so one sign and
// one payload.
func parquetProperties(schema *arrow.Schema) (*parquet.WriterProperties, error) {
	options := []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Zstd)}
	s, err := pqarrow.ToParquet(schema, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	for i := range s.NumColumns() {
		switch c := s.Column(i); c.PhysicalType() {
		case parquet.Types.Float, parquet.Types.Double:
			options = append(options, parquet.WithDictionaryPath(c.ColumnPath(), false))
		}
	}
	return parquet.NewWriterProperties(options...), nil
}

func (p *parquetWriter) Write(rec arrow.RecordBatch) error {
	columns := make([]arrow.Array, 0, rec.NumCols())
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i, c := range rec.Columns() {
		d, err := retyped(c.Data(), p.schema.Field(i).Type)
		if err != nil {
			return err
		}
		columns = append(columns, array.MakeFromData(d))
		d.Release()
	}
	out := array.NewRecordBatch(p.schema, columns, rec.NumRows())
	defer out.Release()
	if err := p.w.WriteBuffered(out); err != nil {
		return err
	}
	if p.w.RowGroupTotalBytesWritten() >= rowGroupBytes {
		return p.w.NewBufferedRowGroupChecked()
	}
	return nil
}

func (p *parquetWriter) Close() error { return p.w.Close() }

// parquetType returns t with int64 in place of every duration and a list in place of every list of fixed size.
func parquetType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.DurationType:
		return arrow.PrimitiveTypes.Int64
	case *arrow.ListType:
		return arrow.ListOf(parquetType(t.Elem()))
	case *arrow.FixedSizeListType:
		return arrow.ListOf(parquetType(t.Elem()))
	case *arrow.MapType:
		return arrow.MapOf(t.KeyType(), parquetType(t.ItemType()))
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			f.Type = parquetType(f.Type)
			fields[i] = f
		}
		return arrow.StructOf(fields...)
	}
	return t
}

// retyped returns d as data of type t, which has the same layout, or is a list where d is of fixed size. It shares d's
// memory where it can; the caller releases it.
func retyped(d arrow.ArrayData, t arrow.DataType) (arrow.ArrayData, error) {
	if list, ok := t.(*arrow.ListType); ok && d.DataType().ID() == arrow.FIXED_SIZE_LIST {
		return variableLists(d, list)
	}
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		child, err := retyped(c, childType(t, i))
		if err != nil {
			return nil, err
		}
		defer child.Release()
		children[i] = child
	}
	return array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset()), nil
}

// variableLists returns lists of fixed size as lists of type t, in which a null has no values.
func variableLists(d arrow.ArrayData, t *arrow.ListType) (arrow.ArrayData, error) {
	fixed := array.NewFixedSizeListData(d)
	defer fixed.Release()
	n := int64(fixed.DataType().(*arrow.FixedSizeListType).Len())
	values, base := fixed.ListValues(), int64(d.Offset())
	offsets := make([]int32, 1, fixed.Len()+1)
	parts := []arrow.Array{array.NewSlice(values, 0, 0)}
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	present := make([]byte, bitutil.BytesForBits(int64(fixed.Len())))
	for row := 0; row < fixed.Len(); {
		if fixed.IsNull(row) {
			offsets = append(offsets, offsets[row])
			row++
			continue
		}
		first := row
		for ; row < fixed.Len() && fixed.IsValid(row); row++ {
			offsets = append(offsets, offsets[row]+int32(n))
			bitutil.SetBit(present, row)
		}
		parts = append(parts, array.NewSlice(values, (base+int64(first))*n, (base+int64(row))*n))
	}
	joined, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer joined.Release()
	child, err := retyped(joined.Data(), t.Elem())
	if err != nil {
		return nil, err
	}
	defer child.Release()
	buffers := []*memory.Buffer{memory.NewBufferBytes(present),
		memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets))}
	return array.NewData(t, fixed.Len(), buffers, []arrow.ArrayData{child}, fixed.NullN(), 0), nil
}

func childType(t arrow.DataType, i int) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Field(i).Type
	case *arrow.MapType:
		return t.Elem()
	case arrow.ListLikeType:
		return t.Elem()
	}
	return t
}
