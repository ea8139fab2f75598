package arrowbatch

import (
	"encoding/base64"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
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
// Parquet has no durations and arrow-go does not write them: they go in as the integers that they are. The Arrow schema
// that readers find beside the data says what they were, as pyarrow does it.
type parquetWriter struct {
	w      *pqarrow.FileWriter
	schema *arrow.Schema // with what Parquet has
}

func newParquetWriter(w io.Writer, schema *arrow.Schema) (*parquetWriter, error) {
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))
	fields := make([]arrow.Field, schema.NumFields())
	for i, f := range schema.Fields() {
		f.Type = withoutDurations(f.Type)
		fields[i] = f
	}
	p := &parquetWriter{schema: arrow.NewSchema(fields, nil)}
	var err error
	// The writer closes what can be closed.
	p.w, err = pqarrow.NewFileWriter(p.schema, struct{ io.Writer }{w}, props, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	full := flight.SerializeSchema(schema, memory.DefaultAllocator)
	return p, p.w.AppendKeyValueMetadata("ARROW:schema", base64.StdEncoding.EncodeToString(full))
}

func (p *parquetWriter) Write(rec arrow.RecordBatch) error {
	columns := make([]arrow.Array, rec.NumCols())
	for i, c := range rec.Columns() {
		d := retyped(c.Data(), p.schema.Field(i).Type)
		columns[i] = array.MakeFromData(d)
		d.Release()
	}
	out := array.NewRecordBatch(p.schema, columns, rec.NumRows())
	defer out.Release()
	for _, c := range columns {
		c.Release()
	}
	if err := p.w.WriteBuffered(out); err != nil {
		return err
	}
	if p.w.RowGroupTotalBytesWritten() >= rowGroupBytes {
		return p.w.NewBufferedRowGroupChecked()
	}
	return nil
}

func (p *parquetWriter) Close() error { return p.w.Close() }

// withoutDurations returns t with int64 in place of every duration.
func withoutDurations(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.DurationType:
		return arrow.PrimitiveTypes.Int64
	case *arrow.ListType:
		return arrow.ListOf(withoutDurations(t.Elem()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOf(t.Len(), withoutDurations(t.Elem()))
	case *arrow.MapType:
		return arrow.MapOf(t.KeyType(), withoutDurations(t.ItemType()))
	case *arrow.StructType:
		fields := make([]arrow.Field, t.NumFields())
		for i, f := range t.Fields() {
			f.Type = withoutDurations(f.Type)
			fields[i] = f
		}
		return arrow.StructOf(fields...)
	}
	return t
}

// retyped returns d as data of type t, which has the same layout. It shares d's memory; the caller releases it.
func retyped(d arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		children[i] = retyped(c, childType(t, i))
		defer children[i].Release()
	}
	return array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
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
