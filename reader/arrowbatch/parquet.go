package arrowbatch

import (
	"encoding/base64"
	"io"
	"math"

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

// A page of a column ends at maxPageBytes of values, before they are compressed. In tables of many columns it ends
// earlier, because a page of each column is open at once: all open pages take about as much as a row group. Below
// minPageBytes pages would be all header. Finished pages of few bytes take more memory than arrow-go counts, so a row
// group with pages below maxPageBytes ends at decodedGroups times its size, before compression.
const (
	maxPageBytes  = 1 << 20
	minPageBytes  = 8 << 10
	decodedGroups = 16
)

// A parquetWriter gathers records in row groups. It holds one, with the open pages and dictionaries of all columns.
//
// Parquet has neither durations nor lists of fixed size, and arrow-go writes neither (of the latter, none with a null):
// durations go in as the integers that they are, lists of fixed size as lists. The Arrow schema that readers find
// beside the data says what they were, as pyarrow does it.
type parquetWriter struct {
	w      *pqarrow.FileWriter
	schema *arrow.Schema // with what Parquet has
	// A row group ends at groupBytes, or at decodedBytes before compression; decoded are those of the one being
	// written.
	groupBytes, decodedBytes, decoded int64
}

// newParquetWriter returns the writer of a file whose row groups end at groupBytes, compressed.
func newParquetWriter(w io.Writer, schema *arrow.Schema, groupBytes int64) (*parquetWriter, error) {
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		f.Type = parquetType(f.Type)
		fields[i] = f
	}
	p := &parquetWriter{schema: arrow.NewSchema(fields, nil), groupBytes: groupBytes, decodedBytes: math.MaxInt64}
	props, columns, err := parquetProperties(p.schema, groupBytes)
	if err != nil {
		return nil, err
	}
	if columns*maxPageBytes > groupBytes {
		p.decodedBytes = decodedGroups * groupBytes
	}
	// The writer closes what can be closed.
	p.w, err = pqarrow.NewFileWriter(p.schema, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	full := flight.SerializeSchema(schema, memory.DefaultAllocator)
	return p, p.w.AppendKeyValueMetadata("ARROW:schema", base64.StdEncoding.EncodeToString(full))
}

// parquetProperties also returns the number of columns. It leaves floats without dictionaries: arrow-go makes one entry
// of all NaNs there, and so one sign and one payload.
//
// arrow-go counts finished pages alone, and 1 MiB of values make a page. Of 10,000 columns of float32 it held 10 GB
// before the first page, and of integers, with the hash tables of their dictionaries, several times that.
func parquetProperties(schema *arrow.Schema, groupBytes int64) (*parquet.WriterProperties, int64, error) {
	options := []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Zstd)}
	s, err := pqarrow.ToParquet(schema, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, 0, err
	}
	columns := int64(s.NumColumns())
	each := min(groupBytes/max(columns, 1), maxPageBytes)
	dictionary := each
	if each < maxPageBytes {
		dictionary = max(each/4, 1) // with its hash table it takes several times its values
	}
	options = append(options, parquet.WithDataPageSize(max(each, minPageBytes)),
		parquet.WithDictionaryPageSizeLimit(dictionary))
	for i := range s.NumColumns() {
		switch c := s.Column(i); c.PhysicalType() {
		case parquet.Types.Float, parquet.Types.Double:
			options = append(options, parquet.WithDictionaryPath(c.ColumnPath(), false))
		}
	}
	return parquet.NewWriterProperties(options...), columns, nil
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
	for _, c := range columns {
		p.decoded += decodedBytes(c.Data())
	}
	if p.w.RowGroupTotalBytesWritten() >= p.groupBytes || p.decoded >= p.decodedBytes {
		p.decoded = 0
		return p.w.NewBufferedRowGroupChecked()
	}
	return nil
}

// decodedBytes returns the bytes of the buffers of d.
func decodedBytes(d arrow.ArrayData) (n int64) {
	for _, b := range d.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += decodedBytes(c)
	}
	return n
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
