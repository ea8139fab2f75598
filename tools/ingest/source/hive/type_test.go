package hive

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// TestPrintedTypes: what prints a column's type is read as that type.
func TestPrintedTypes(t *testing.T) {
	var leaves []*column.Type
	for _, name := range []string{"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string",
		"binary", "date", "decimal(8,2)", "decimal(38,4)", "timestamp[s]", "timestamp[us, tz=UTC]", "void", "uint8",
		"uint16", "uint32", "uint64"} {
		n, err := ParseType(name, 32)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, n)
	}
	nested := func(shape column.Shape, dim int, children ...*column.Type) *column.Type {
		n := &column.Type{Shape: shape, Dim: dim}
		for i, c := range children {
			c = c.Clone()
			if shape == column.Struct {
				c.Name = string(rune('a' + i))
			}
			n.Children = append(n.Children, c)
		}
		return n
	}
	types := leaves
	for _, n := range leaves {
		types = append(types, nested(column.List, 0, n), nested(column.List, 8, n),
			nested(column.Map, 0, leaves[4], n), nested(column.Struct, 0, n, nested(column.List, 0, n), n))
	}
	for _, n := range types {
		got, err := ParseType(n.String(), 32)
		if err != nil || got.String() != n.String() || got.Shape != n.Shape || got.Elem != n.Elem ||
			got.Logical != n.Logical || got.Dim != n.Dim || len(got.Children) != len(n.Children) {
			t.Errorf("%v is read as %v, %v", n, got, err)
		}
	}
	for text, want := range map[string]string{
		"int64[": "want the length of an embedding", "int64[0]": "1 to 65536", "string[4]": `"[4]" after its end`,
		"list<int64:float32": "want '>'", "timestamp[h]": `unit "h"`, "timestamp[us, tz=CET]": "want tz=UTC",
		"int64, date32": "date32 is no logical type of int64", "int64, int64": "int64 is no logical type",
		"int33": `did you mean "int32"`, "list<int64": "want '>'", "int64,": "unknown type",
		"list<" + strings.Repeat("list<", 100): "nested deeper than 32",
	} {
		if n, err := ParseType(text, 32); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %s", text, n, err, want)
		}
	}
}

func FuzzType(f *testing.F) {
	f.Add("list<int64:float32>")
	f.Add("struct<a: timestamp[us, tz=UTC], b: map<int64, float32[4]>>")
	f.Add("list<int64>, timestamp[ms]")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseType(text, 8)
		if err == nil && n.Dim > vector.MaxDim {
			t.Fatal(n)
		}
	})
}
