package source

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

const inferringCSV = `{"text": {"quote": "\"", "header": true, "infer": true}}`

// TestInferredText: text.infer gives columns the narrowest type that holds all their values, in all files.
func TestInferredText(t *testing.T) {
	for _, tc := range []struct{ name, values, want string }{
		{"integers", "1,-2,,9223372036854775807", "int64 1 -2 null 9223372036854775807"},
		{"unsigned", "1,18446744073709551615", "uint64 1 18446744073709551615"},
		{"fractions", "1,2.5,-1e3,NaN,-inf", "float64 1 2.5 -1000 NaN -Inf"},
		{"fractions beside ids", "1.5,9007199254740993", `string "1.5" "9007199254740993"`},
		{"codes", "007,1", `string "007" "1"`},
		{"signs", "+1,2", `string "+1" "2"`},
		{"a minus before nothing", "-0,2", `string "-0" "2"`},
		{"a minus before nothing, beside fractions", "-0,0.5", "float64 -0 0.5"},
		{"integers with zeros after the point", "1234567890123456789.0,1.5",
			`string "1234567890123456789.0" "1.5"`},
		{"zeros", "0,-1", "int64 0 -1"},
		{"codes with a point", "00.5,1", `string "00.5" "1"`},
		{"too large", "1e999,1", `string "1e999" "1"`},
		{"booleans", "true,FALSE,", "bool 1 0 null"},
		{"booleans and numbers", "true,1", `string "true" "1"`},
		{"dates", "2020-01-02,1969-12-31", "int32 18263 -1"},
		{"times", "2020-01-02,1970-01-01 00:00:01", "int64 1577923200000000000 1000000000"},
		{"no date", "2020-02-30", `string "2020-02-30"`},
		{"text", "x,1", `string "x" "1"`},
		{"nothing", ",", "bool null null"},
		{"nothing but quotes", `"",`, `string "" null`},
		{"quotes", `"1",""`, "int64 1 null"},
		{"a minus", "-,1", `string "-" "1"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			// The last value is in a file of its own.
			values := strings.Split(tc.values, ",")
			text := "k,a\n"
			for i, v := range values[:len(values)-1] {
				text += fmt.Sprintf("%d,%s\n", i, v)
			}
			dir := writeFiles(t, map[string]string{
				"m.json":  `{"columns": {"k": {"type": "string"}}, ` + inferringCSV[1:],
				"d/a.csv": text, "d/b.csv": "a,k\n" + values[len(values)-1] + ",x\n", "d/c.csv": "k,a\n",
			})
			files, err := Discover(t.Context(), []string{filepath.Join(dir, "d")},
				Options{MappingFile: filepath.Join(dir, "m.json")})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range files {
				s, err := f.Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				chunks, err := readAll(t, s)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range chunks {
					for i, f := range c.Fields {
						if f.Name != "a" {
							continue
						}
						if got == "" {
							got = f.Type.String()
						}
						for r := range c.Rows {
							got += " " + cellText(c.Columns[i], r)
						}
					}
				}
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// TestInferredTextGivesWay: what the mapping file or the table says of a column comes first.
func TestInferredTextGivesWay(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.json": `{"columns": {"a": {"type": "string"}, "b": {"hash": true}, "c": {"rename": ` +
			`"C"}}, ` + inferringCSV[1:],
		"a.csv": "a,b,c,d,e,f32,large,exact\n1,2,3,4,5,16777216,1,1\n1,2,3,4,5,0.1,1e39,16777217\n",
	})
	files, err := Discover(t.Context(), []string{filepath.Join(dir, "a.csv")}, Options{
		MappingFile: filepath.Join(dir, "m.json"),
		Known: func() []catalog.Feature {
			return []catalog.Feature{
				{Name: "C", Type: vector.Type{Kind: vector.Dense, Elem: vector.Float64}},
				{Name: "d", Type: vector.Type{Kind: vector.String}},
				{Name: "f32", Type: vector.Type{Kind: vector.Dense, Elem: vector.Float32}},
				{Name: "large", Type: vector.Type{Kind: vector.Dense, Elem: vector.Float32}},
				{Name: "exact", Type: vector.Type{Kind: vector.Dense, Elem: vector.Float32}},
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := ""
	for _, f := range s.Fields() {
		got += fmt.Sprintf("%s %v, ", f.Name, f.Type)
	}
	if want := "a string, b int64, C float64, d string, e int64, f32 float32, large float64, exact " +
		"float64, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
