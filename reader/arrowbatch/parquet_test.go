package arrowbatch

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Lists of fixed size lose the values of their nulls on the way to Parquet, which has none; a slice keeps its own rows.
func TestVariableLists(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	b := array.NewFixedSizeListBuilder(pool, 2, arrow.PrimitiveTypes.Float32)
	defer b.Release()
	values := b.ValueBuilder().(*array.Float32Builder)
	for row := range 7 {
		if row == 0 || row == 3 || row == 6 {
			b.AppendNull()
			continue
		}
		b.Append(true)
		values.AppendValues([]float32{float32(row), float32(-row)}, nil)
	}
	fixed := b.NewArray()
	defer fixed.Release()
	for _, c := range []struct {
		lo, hi int64
		want   string
	}{
		{0, 7, "[(null) [1 -1] [2 -2] (null) [4 -4] [5 -5] (null)]"},
		{2, 5, "[[2 -2] (null) [4 -4]]"},
		{3, 4, "[(null)]"},
		{4, 4, "[]"},
	} {
		part := array.NewSlice(fixed, c.lo, c.hi)
		d, err := retyped(part.Data(), parquetType(part.DataType()))
		if err != nil {
			t.Fatal(err)
		}
		lists := array.NewListData(d)
		if got := lists.String(); got != c.want {
			t.Errorf("rows %d to %d: %s, want %s", c.lo, c.hi, got, c.want)
		}
		if n := len(lists.ListValues().(*array.Float32).Float32Values()); n != 2*(lists.Len()-lists.NullN()) {
			t.Errorf("rows %d to %d: %d values for %d lists, %d null", c.lo, c.hi, n, lists.Len(), lists.NullN())
		}
		lists.Release()
		d.Release()
		part.Release()
	}
}

// TestParquetOfManyColumns: what is held of a table of many columns is about what a row group and open pages take,
// however many rows there are: a page of each column is open at once.
func TestParquetOfManyColumns(t *testing.T) {
	const groupBytes, rows, records = 2 << 20, 1000, 20
	for _, c := range []struct {
		columns int
		typ     arrow.DataType
	}{{250, arrow.PrimitiveTypes.Float32}, {150, arrow.PrimitiveTypes.Int64}, {750, arrow.PrimitiveTypes.Float32}} {
		fields := make([]arrow.Field, c.columns)
		for i := range fields {
			fields[i] = arrow.Field{Name: fmt.Sprint("f", i), Type: c.typ, Nullable: true}
		}
		schema := arrow.NewSchema(fields, nil)
		w, err := newParquetWriter(io.Discard, schema, groupBytes)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(c.columns)))
		before, most := liveBytes(), int64(0)
		for range records {
			b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
			for i := range fields {
				for range rows {
					switch f := b.Field(i).(type) {
					case *array.Float32Builder:
						f.Append(rng.Float32())
					case *array.Int64Builder:
						f.Append(rng.Int64())
					}
				}
			}
			rec := b.NewRecordBatch()
			if err := w.Write(rec); err != nil {
				t.Fatal(err)
			}
			rec.Release()
			b.Release()
			most = max(most, liveBytes()-before)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		decoded := int64(records * rows * c.columns * c.typ.(arrow.FixedWidthDataType).Bytes())
		t.Logf("%d columns of %v: %d MiB decoded, at most %d MiB held", c.columns, c.typ, decoded>>20, most>>20)
		// Written pages, open ones, and what they are compressed from and to; and some kilobytes for each column.
		if want := int64(5*groupBytes + c.columns*16<<10); most > want {
			t.Errorf("%d columns of %v: %d bytes of %d are held, want at most %d", c.columns, c.typ, most, decoded,
				want)
		}
	}
}

// liveBytes returns what is reachable in the heap.
func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
