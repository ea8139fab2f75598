package arrowbatch

import (
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
