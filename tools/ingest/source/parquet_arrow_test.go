package source

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// TestArrowSchemaInParquet: what Parquet's schema cannot say comes from the Arrow schema that Arrow's writers leave.
func TestArrowSchemaInParquet(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "e", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "z", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Rome"}, Nullable: true},
	}, nil)
	b := arrowarray.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	e := b.Field(0).(*arrowarray.FixedSizeListBuilder)
	e.Append(true)
	e.ValueBuilder().(*arrowarray.Float32Builder).AppendValues([]float32{1, 2}, nil)
	e.Append(true)
	e.ValueBuilder().(*arrowarray.Float32Builder).AppendValues([]float32{3, 4}, nil)
	b.Field(1).(*arrowarray.TimestampBuilder).AppendValues([]arrow.Timestamp{1, 2}, nil)
	rec := b.NewRecordBatch()
	defer rec.Release()
	for _, stored := range []bool{true, false} {
		var opts []pqarrow.WriterOption
		want := "list<float32>"
		if stored {
			opts, want = append(opts, pqarrow.WithStoreSchema()), "float32[2]"
		}
		var buf bytes.Buffer
		w, err := pqarrow.NewFileWriter(schema, &buf, parquet.NewWriterProperties(),
			pqarrow.NewArrowWriterProperties(opts...))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		chunks, err := readBytes(t, "x.parquet", buf.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		f := chunks[0].Fields
		if got := f[0].Type.String(); got != want || f[1].Logical != "timestamp[us, tz=UTC]" {
			t.Errorf("stored %v: got %s and %s, want %s", stored, got, f[1].Logical, want)
		}
		if got := dump(chunks); got != "e=[1,2] z=1\ne=[3,4] z=2\n" {
			t.Errorf("stored %v: %s", stored, got)
		}
	}
}
