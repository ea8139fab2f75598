package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// TestParquetRowsGrow: rows that are much larger than those before them make small batches, and not one that is too
// large: the reader has grown the number of rows by what the rows before took. Every row is there, in order, whichever
// columns are cut short.
func TestParquetRowsGrow(t *testing.T) {
	pool := memory.DefaultAllocator
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "html", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32},
			arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true})},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(pool, s)
	defer b.Release()
	const rows = 12_000
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		large := i >= 8000
		html, list := b.Field(1).(*array.StringBuilder), b.Field(2).(*array.ListBuilder)
		st, m := b.Field(3).(*array.StructBuilder), b.Field(4).(*array.MapBuilder)
		st.Append(true)
		st.FieldBuilder(0).(*array.Int32Builder).Append(int32(i))
		member := st.FieldBuilder(1).(*array.StringBuilder)
		if !large {
			html.AppendNull()
			list.AppendNull()
			member.AppendNull()
			m.AppendNull()
			continue
		}
		html.Append(strings.Repeat(fmt.Sprintf("%05d", i), 1200+i%7))
		list.Append(true)
		for j := range i % 300 {
			list.ValueBuilder().(*array.Int64Builder).Append(int64(i + j))
		}
		member.Append(strings.Repeat("y", 500+i%11))
		m.Append(true)
		for j := range i % 3 {
			m.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", j))
			m.ItemBuilder().(*array.Float64Builder).Append(float64(i))
		}
	}
	record := b.NewRecordBatch()
	defer record.Release()
	for name, props := range map[string][]parquet.WriterProperty{
		"dictionaries": {parquet.WithMaxRowGroupLength(10_000)},
		"plain":        {parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(20 << 10)},
		"large pages":  {parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(64 << 20)},
	} {
		data, err := writeParquet(record, props...)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := readBytes(t, "a.parquet", data, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := byRow(whole)
		for _, threads := range []int{1, 3} {
			chunks, err := readBytes(t, "a.parquet", data, Options{ChunkBytes: 64 << 10, Threads: threads,
				Limits: column.Limits{BatchBytes: 4 << 20}})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := byRow(chunks); len(got) != rows || !slices.Equal(got, want) {
				t.Fatalf("%s: %d rows that are others", name, len(got))
			}
			next := int64(0)
			for _, c := range chunks {
				if c.Place.Row != next {
					t.Fatalf("%s: a chunk begins with row %d, want %d", name, c.Place.Row, next)
				}
				next += int64(c.Rows)
			}
		}
	}
}

// byRow returns the rows of chunks, whose fields may differ, as text.
func byRow(chunks []*Chunk) []string {
	var out []string
	for _, c := range chunks {
		for r := range c.Rows {
			var cells []string
			for i, col := range c.Columns {
				if text := cellText(col, r); text != "null" {
					cells = append(cells, c.Fields[i].Name+"="+text)
				}
			}
			slices.Sort(cells)
			out = append(out, strings.Join(cells, " "))
		}
	}
	return out
}
