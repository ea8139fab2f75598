package source

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
)

// printedTypes are all types that a feature has, an embedding of a few lengths.
func printedTypes() []vector.Type {
	types := []vector.Type{{Kind: vector.Bytes}, {Kind: vector.String}}
	for e := vector.Bool; e <= vector.Float64; e++ {
		types = append(types, vector.Type{Kind: vector.Dense, Elem: e}, vector.Type{Kind: vector.Sparse, Elem: e},
			vector.Type{Kind: vector.Embedding, Elem: e, Dim: 2},
			vector.Type{Kind: vector.Weighted, Elem: e, Score: vector.Float32},
			vector.Type{Kind: vector.Weighted, Elem: e, Score: vector.Float64})
	}
	return types
}

// TestPrintedTypesInMappings: the type of a feature as dsi prints it makes such a feature of a column of text.
func TestPrintedTypesInMappings(t *testing.T) {
	for _, typ := range printedTypes() {
		if typ.Validate() != nil {
			continue
		}
		one := "1"
		if typ.Elem == vector.Bool {
			one = "true"
		}
		value := map[vector.Kind]string{vector.Dense: one, vector.Sparse: one + "|" + one, vector.Bytes: "x",
			vector.Embedding: one + "|" + one, vector.Weighted: one + ":0.5", vector.String: "x"}[typ.Kind]
		for _, logical := range []string{"", "date32", "timestamp[ms]", "timestamp[us, tz=UTC]", "decimal(8, 2)"} {
			text, v := typ.String(), value
			switch {
			case logical == "":
			case typ.Kind != vector.Dense || logical == "date32" && typ.Elem != vector.Int32 ||
				logical != "date32" && typ.Elem != vector.Int64:
				continue
			case logical == "decimal(8, 2)":
				text += ", " + logical
			default:
				text, v = text+", "+logical, "2026-11-01"
			}
			m := `{"text": {"items": "|", "map_keys": ":"}, "columns": {"a": {"type": "` + text + `"}}}`
			dir := writeFiles(t, map[string]string{"m.json": m, "f.csv": "id,a\n1," + v + "\n"})
			chunks, err := readPath(t, dir+"/f.csv", Options{MappingFile: dir + "/m.json"})
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			f := chunks[0].Fields[1]
			if f.Type != typ || logical != "" && f.Logical != logical {
				t.Errorf("%s of %s is %v, %s", text, v, f.Type, f.Logical)
			}
			if got := dump(chunks); strings.Contains(got, "null") {
				t.Errorf("%s of %s: %s", text, v, got)
			}
		}
	}
}
