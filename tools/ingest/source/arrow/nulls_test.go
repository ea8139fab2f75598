package arrow

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowarray "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// Others have no decimals of a negative scale: neither what is exported to, nor what reads Arrow.
func TestNegativeScale(t *testing.T) {
	n := typeOf(&arrow.Decimal128Type{Precision: 7, Scale: -2}, 0)
	if n.Shape != column.Refused || !strings.Contains(n.Reason, "cast it to decimal(9, 0)") {
		t.Errorf("%+v", n)
	}
}

// TestNullsTakeMemory: a null of a fixed list or a struct has null elements or members, which count: an index or a run
// of a few bytes may stand for any number of them.
func TestNullsTakeMemory(t *testing.T) {
	mem := memory.DefaultAllocator
	const dim, rows = 1 << 16, 100
	var fields []arrow.Field
	for range 1 << 12 {
		fields = append(fields, arrow.Field{Name: "f", Type: arrow.FixedSizeListOf(1<<4, arrow.PrimitiveTypes.Int64)})
	}
	for _, of := range []arrow.DataType{
		arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Int64),
		arrow.FixedSizeListOf(1<<31-1, arrow.FixedSizeListOf(1<<31-1, arrow.FixedSizeListOf(1<<31-1, arrow.Null))),
		arrow.StructOf(fields...),
	} {
		values := arrowarray.NewBuilder(mem, of)
		index := arrowarray.NewInt8Builder(mem)
		index.AppendNulls(rows)
		dictionary := arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: of}
		in := arrowarray.NewDictionaryArray(&dictionary, index.NewArray(), values.NewArray())
		limits := column.Limits{BatchBytes: 1 << 20, CellValues: 1 << 40}.WithDefaults()
		c := converter{limits: &limits}
		a, err := c.convert(in, fieldType(arrow.Field{Type: &dictionary}, 0))
		if err == nil || !strings.Contains(err.Error(), "hold more than 1048576 bytes") {
			t.Errorf("%.60v: %d nulls take %d bytes, the limit is %d: %v", of, rows, a.SizeBytes(),
				limits.BatchBytes, err)
		}
	}
}
