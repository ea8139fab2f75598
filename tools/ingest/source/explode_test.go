package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestMapsOfManyKeys: each key of a map is a column that has a value for every row of a batch. Batches are small where
// each row has few of many keys, and stay as they are where rows have most of the keys.
func TestMapsOfManyKeys(t *testing.T) {
	const rows, chunkBytes = 6000, 64 << 10
	record := func(keysOf func(row int) []int) arrow.RecordBatch {
		b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
			{Name: "id", Type: arrow.PrimitiveTypes.Int64},
			{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "m", Nullable: true,
				Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64)})},
			{Name: "n", Type: arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.ListOf(arrow.PrimitiveTypes.Int64))},
		}, nil))
		defer b.Release()
		for i := range rows {
			b.Field(0).(*array.Int64Builder).Append(int64(i))
			st := b.Field(1).(*array.StructBuilder)
			st.Append(true)
			m, n := st.FieldBuilder(0).(*array.MapBuilder), b.Field(2).(*array.MapBuilder)
			n.Append(true)
			if i%10 == 3 {
				m.AppendNull()
				continue
			}
			m.Append(true)
			for _, k := range keysOf(i) {
				m.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", k))
				m.ItemBuilder().(*array.Float64Builder).Append(float64(i))
				n.KeyBuilder().(*array.Int32Builder).Append(int32(k))
				n.ItemBuilder().(*array.ListBuilder).Append(true)
				n.ItemBuilder().(*array.ListBuilder).ValueBuilder().(*array.Int64Builder).Append(int64(i))
			}
		}
		return b.NewRecordBatch()
	}
	for name, c := range map[string]struct {
		keys  func(row int) []int
		most  int // bytes of a chunk
		least int // rows of the first chunk
	}{
		"one of 1000": {func(i int) []int { return []int{i * 7 % 1000} }, 8 * chunkBytes, 50},
		"one, late": {func(i int) []int {
			if i < 5000 {
				return nil
			}
			return []int{i * 7 % 1000}
		}, 12 * chunkBytes, 1000},
		"all of 10": {func(int) []int { return []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} }, 1 << 20, 256},
	} {
		rec := record(c.keys)
		data, err := writeParquet(rec)
		rec.Release()
		if err != nil {
			t.Fatal(err)
		}
		chunks, err := readBytes(t, "a.parquet", data, Options{ChunkBytes: chunkBytes})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i := range rows {
			cells := []string{fmt.Sprint("id=", i), "n=1", "s=1"}
			if i%10 != 3 {
				cells = append(cells, "s.m=1")
				for _, k := range c.keys(i) {
					cells = append(cells, fmt.Sprintf("s.m.k%d=%d", k, i), fmt.Sprintf("n.%d=[%d]", k, i))
				}
			}
			slices.Sort(cells)
			want = append(want, strings.Join(cells, " "))
		}
		if got := byRow(chunks); !slices.Equal(got, want) {
			t.Fatalf("%s: %d rows that are others: %q, want %q", name, len(got), got[0], want[0])
		}
		next := int64(0)
		for _, ch := range chunks {
			size := 0
			for _, col := range ch.Columns {
				size += col.SizeBytes()
			}
			if size > c.most || ch.Place.Row != next {
				t.Fatalf("%s: row %d, want %d, %d rows of %d bytes", name, ch.Place.Row, next, ch.Rows, size)
			}
			next += int64(ch.Rows)
		}
		if chunks[0].Rows < c.least {
			t.Fatalf("%s: a first chunk of %d rows", name, chunks[0].Rows)
		}
	}
}
