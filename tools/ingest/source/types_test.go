package source

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

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

// TestTypesThatNothingTakes: a type in a mapping file is refused where it changes nothing, and not left out silently.
func TestTypesThatNothingTakes(t *testing.T) {
	const refused = "A mapping file gives types to columns of text, and to columns and members of JSON"
	given := func(column, typ string) string { return `{"columns": {"` + column + `": {"type": "` + typ + `"}}}` }
	runText(t, []textCase{
		{"DDL", "f.txt", given("w", "string"), "CREATE TABLE t (w int)", "1\n",
			`column "w": type "string": the source says int32. ` + refused},
		{"the DDL's own", "f.txt", given("w", "int32"), "CREATE TABLE t (w int)", "1\n", "w=1\n"},
		{"a member of text", "", given("o.w", "string"), "CREATE TABLE t (o struct<w:int>)", "1\n",
			`column "o.w": type "string": the source says int32`},
		{"a member whose parent has a type", "f.jsonl",
			`{"columns": {"o": {"type": "struct<w:int>"}, "o.w": {"type": "string"}}}`, "",
			`{"o": {"w": 1}}` + "\n", `column "o.w": type "string": the source says int32`},
		{"a key of a map", "f.jsonl", `{"columns": {"m": {"map": "explode"}, "m.k": {"type": "string"}}}`, "",
			`{"m": {"k": 1}}` + "\n", `type of the key "k": give it to the column, for all keys`},
	})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "w", Type: arrow.PrimitiveTypes.Int64},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}}}, nil))
	b.Field(0).(*array.Int64Builder).Append(1)
	b.Field(1).(*array.TimestampBuilder).Append(1000)
	file, err := writeParquet(b.NewRecordBatch())
	if err != nil {
		t.Fatal(err)
	}
	for mapping, want := range map[string]string{
		given("w", "string"): `column "w": type "string": the source says int64. ` +
			refused,
		given("w", "int32"):                                 `type "int32": the source says int64`,
		given("w", "array<bigint>"):                         `type "array<bigint>": the source says int64`,
		given("at", "date"):                                 `type "date": the source says timestamp[ns]`,
		given("w", "bigint"):                                "",
		given("at", "timestamp"):                            "",
		`{"columns": {"w": {"type": "int", "drop": true}}}`: "",
	} {
		dir := writeFiles(t, map[string]string{"m.json": mapping, "f.parquet": string(file)})
		_, err := readPath(t, dir+"/f.parquet", Options{MappingFile: dir + "/m.json"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", mapping, err, want)
		}
	}
}
