package source

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/tools/ingest/source/column"
	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// dump prints the chunks row by row, for tests.
func dump(chunks []*Chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		for r := range c.Rows {
			if p := c.Partition.String(); p != "" {
				b.WriteString(p + ": ")
			}
			for i, col := range c.Columns {
				if i > 0 {
					b.WriteString(" ")
				}
				fmt.Fprintf(&b, "%s=%s", c.Fields[i].Name, cellText(col, r))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func cellText(c *vector.Column, row int) string {
	if c.IsNull(row) {
		return "null"
	}
	lo, hi := c.RowRange(row)
	switch c.Type.Kind {
	case vector.Bytes, vector.String:
		return fmt.Sprintf("%q", c.Data[lo:hi])
	}
	var parts []string
	for i := lo; i < hi; i++ {
		s := ""
		switch c.Type.Physical() {
		case vector.Float32Values:
			s = fmt.Sprint(c.Floats[i])
		case vector.Float64Values:
			s = fmt.Sprint(c.Doubles[i])
		default:
			if s = fmt.Sprint(c.Ints[i]); c.Type.Elem == vector.Uint64 {
				s = fmt.Sprint(uint64(c.Ints[i]))
			}
		}
		if c.Type.Kind == vector.Weighted {
			if c.Type.Score == vector.Float64 {
				s += ":" + fmt.Sprint(c.ScoreDoubles[i])
			} else {
				s += ":" + fmt.Sprint(c.ScoreFloats[i])
			}
		}
		parts = append(parts, s)
	}
	if c.Type.Kind == vector.Dense {
		return parts[0]
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// writeFiles writes files below a new directory and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readPath reads all files below a path.
func readPath(t *testing.T, path string, opts Options) ([]*Chunk, error) {
	t.Helper()
	files, err := Discover(context.Background(), []string{path}, opts)
	if err != nil {
		return nil, err
	}
	var out []*Chunk
	for _, f := range files {
		s, err := f.Open(context.Background())
		if err != nil {
			return out, err
		}
		chunks, err := readAll(t, s)
		out = append(out, chunks...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

const testDDL = "CREATE EXTERNAL TABLE IF NOT EXISTS `db`.`t`(\n" +
	"  `id` bigint COMMENT 'it''s, (odd)', -- a comment\n" +
	"  `name` string,\n" +
	"  `tags` array<int>,\n" +
	"  `scores` map<string,double>,\n" +
	"  `who` struct<age:int, city:string>,\n" +
	"  price decimal(10,2),\n" +
	"  `day` date)\n" +
	"COMMENT 'x'\nPARTITIONED BY (`ds` string COMMENT 'day')\n" +
	"CLUSTERED BY (id) SORTED BY (id ASC) INTO 4 BUCKETS\n" +
	"ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe'\n" +
	"WITH SERDEPROPERTIES " +
	"('field.delim'='|','colelction.delim'=',','mapkey.delim'='58','serialization.format'='|', " +
	"'escape.delim'='\\\\')\n" +
	"STORED AS INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat'\n" +
	"OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat'\n" +
	"LOCATION 'hdfs://x/y'\nTBLPROPERTIES ('transient_lastDdlTime'='1')\n"

func TestHiveText(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"ddl.sql": testDDL,
		"t/ds=a%2Fb/000000": `1|al\|ice|1,2|k:1.5,l:2|30,Rome|12.50|2026-11-01` + "\n" + `2|\N||\N|\N|-0.01|\N` +
			"\n3\n",
		"t/ds=c/_SUCCESS":    "",
		"t/ds=c/part-00000":  "x|y\n",
		"t/.hidden/part":     "x",
		"t/ds=c/part-empty":  "",
		"t/ds=c/part-000001": "4|z||||x|\n",
	})
	opts := Options{DDLFile: filepath.Join(dir, "ddl.sql"), Format: "text"}
	var bad []string
	opts.OnBadRow = func(p Place, column string, err error) {
		bad = append(bad, strings.TrimPrefix(p.String(), dir+"/")+": "+column+": "+err.Error())
	}
	chunks, err := readPath(t, filepath.Join(dir, "t"), opts)
	if err != nil {
		t.Fatal(err)
	}
	const want = `ds=a%2Fb: id=1 name="al|ice" tags=[1,2] scores=1 scores.k=1.5 scores.l=2 who=1 who.age=30 ` +
		`who.city="Rome" price=1250 day=20758
ds=a%2Fb: id=2 name=null tags=[] scores=null scores.k=null scores.l=null who=null who.age=null ` +
		`who.city=null price=-1 day=null
ds=a%2Fb: id=3 name=null tags=null scores=null scores.k=null scores.l=null who=null who.age=null ` +
		`who.city=null price=null day=null
`
	if got := dump(chunks); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if len(bad) != 2 || !strings.Contains(bad[0], `t/ds=c/part-00000, line 1: id: "x" is no int64`) ||
		!strings.Contains(bad[1], `part-000001, line 1: price: "x" is no decimal(10, 2)`) {
		t.Errorf("bad rows: %q", bad)
	}
}

func TestJSONLines(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": `{"a": 1, "b": [1,2,3], "c": {"x": 1.5, "y": "z"}, "s": ` +
		`"h\u00e9\ud83d\ude00", "f": [1.5, 2]}
{"a": null, "b": [], "c": null, "s": null}

{"a": -5, "b": null, "c": {"x": 2, "y": null}, "big": 18446744073709551615, "s": "after a null"}
`})
	chunks, err := readPath(t, dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `a=1 b=[1,2,3] c=1 c.x=1.5 c.y="z" s="hé😀" f=[1.5,2] big=null
a=null b=[] c=null c.x=null c.y=null s=null f=null big=null
a=-5 b=null c=1 c.x=2 c.y=null s="after a null" f=null big=18446744073709551615
`
	if got := dump(chunks); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestCSV(t *testing.T) {
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	fmt.Fprint(w, "a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\r\n\r\n2,\"\",q\r\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{
		"m.json":     `{"text": {"quote": "\"", "header": true}, "columns": {"a": {"type": "tinyint"}}}`,
		"t/a.csv.gz": gz.String(),
	})
	opts := Options{MappingFile: filepath.Join(dir, "m.json")}
	chunks, err := readPath(t, filepath.Join(dir, "t"), opts)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := dump(chunks), "a=1 b=\"x, \\\"y\\\"\\nz\" c=null\na=2 b=\"\" c=\"q\"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for text, want := range map[string]string{
		"a,b\n300,x\n": `line 2, column "a": "300" is out of the range of int8`,
		"a,b\n1,2,3\n": "line 2: 3 columns, the schema has 2",
		"a,b\n1,\"x\n2,y\n": "line 2: a quoted column without its closing quote: the 2 lines from here to the end " +
			"are in it",
		"a,b\n1,\"x\"y\n": "after the closing quote of column 2",
		"a,a\n": `line 1: two columns have the name "a": give all of them names with {"text": ` +
			`{"skip_lines": 1, "columns": [{"name": "..."}, ...]}} in a mapping file`,
		"a;b\n1;2\n":     `line 1: its only column would be "a;b": text.delimiter`,
		"a\xe9,b\n1,2\n": `line 1: the name "a\xe9" is not UTF-8: text.encoding`,
	} {
		dir := writeFiles(t, map[string]string{"a.csv": text})
		if _, err := readPath(t, dir, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestJSONTypes: a type that the mapping file gives takes numbers as strings, as writers put 64-bit ids and infinities,
// and strings as numbers.
func TestJSONTypes(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.json": `{"columns": {"id": {"type": "bigint"}, "x": {"type": "double"}, "s": {"type": "string"}, "l": ` +
			`{"type": "array<bigint>"},
			"b": {"type": "boolean"}, "m": {"map": "explode"}, "n": {"type": "map<string,array<int>>",
				"map": "explode"}}}`,
		"a.jsonl": `{"id": "9223372036854775807", "x": "-Infinity", "s": 12.50, "l": ["1", 2], "b": "true", "m": ` +
			`{"k": [1, 2]}, "n": {"k": [3]}}
{"id": 7, "x": 1.5, "s": "q", "l": [], "b": false, "m": {}, "n": null}
{"id": "7.5"}
`})
	opts := Options{MappingFile: filepath.Join(dir, "m.json")}
	bad := ""
	opts.OnBadRow = func(_ Place, column string, err error) { bad += column + ": " + err.Error() }
	chunks, err := readPath(t, filepath.Join(dir, "a.jsonl"), opts)
	const want = `id=9223372036854775807 x=-Inf s="12.50" l=[1,2] b=1 m=1 m.k=[1,2] n=1 n.k=[3]
id=7 x=1.5 s="q" l=[] b=0 m=1 m.k=null n=null n.k=null
`
	if got := dump(chunks); err != nil || got != want || bad != `id: "7.5" is no int64` {
		t.Errorf("%v, %s, got\n%swant\n%s", err, bad, got, want)
	}
}

func TestJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1}` + "\n" + `{"a": "x"}`:                `line 2: a string where lines before it have a number`,
		`{"a": 1, "a": 2}`:                              `line 1, column "a": the key twice`,
		`{"a": 1} x`:                                    `line 1: 'x' at byte 9 where the end of the line should be`,
		`{"a": 01}`:                                     "where the end of a number should be",
		`{"a": "\ud800"}`:                               "surrogate",
		`{"a": 123456789012345678901234567890}`:         "64 bits",
		`{"a": 1.5}` + "\n" + `{"a": 9007199254740993}`: "not exact",
		`{"l": [[1]]}`: `"l": values of type list<list<int64>> have no place in ` +
			`a table: lists of numbers and list<struct<id: integer, score: float>> have; ` +
			`{"columns": {"l": {"type": "string"}}} keeps its JSON text; drop it`,
		`{"l": {}}`: `"l": a struct without members has no values to store; ` +
			`drop it`,
		strings.Repeat(`{"a": 9007199254740993, "b": "`+strings.Repeat("x", 1<<20)+`"}`+"\n",
			5) + `{"a": 1.5}`: `line 6, column "a": "1.5" where the lines before it have integers; give`,
		strings.Repeat(`{"a": -1, "b": "`+strings.Repeat("x", 1<<20)+`"}`+"\n",
			5) + `{"a": 18446744073709551615}`: `column "a": "18446744073709551615" is out of the range of int64`,
		`[1]`:              "a list where an object should be",
		`{"a": [1, null]}`: "a null inside a list",
		`{"a": ` + strings.Repeat("[", 100) + "}": "nested deeper",
	} {
		dir := writeFiles(t, map[string]string{"a.jsonl": text})
		if _, err := readPath(t, dir, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestLongLine(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": `{"a": "` + strings.Repeat("x", 1000) + `"}`})
	if _, err := readPath(t, dir, Options{Limits: column.Limits{LineBytes: 100}}); err == nil ||
		!strings.Contains(err.Error(), "line 1 is longer than 100 bytes") {
		t.Errorf("got %v", err)
	}
}

// TestDroppedNulls: nulls in lists and under keys of maps are left out where the mapping file says so, and nowhere
// else.
func TestDroppedNulls(t *testing.T) {
	const text = `{"l": [1, null, 2, null], "w": {"7": 0.5, "8": null}, "m": {"a": null, "b": 3}, "n": {"k": ` +
		`[null, 4]}, "p": [{"id": 1, "s": 0.5}, null], "h": [null, "x"]}
{"l": [null], "w": {"9": null}, "m": {"a": null}, "n": {"k": [null]}, "p": [null, {"id": 2, "s": 1.5}], "h": []}
{"l": [3], "w": {}, "m": {}, "n": {"k": null}, "p": [], "h": null}
{"l": null, "w": null, "m": null, "n": null, "p": null, "h": ["y"]}
`
	const rest = `"w": {"map": "weighted"%s}, "m": {"map": "explode"%[1]s}, "n": {"map": "explode"%[1]s}, "p": ` +
		`{"kind": "weighted"%[1]s}, "h": {"kind": "sparse", "hash": true%[1]s}}}`
	dir := writeFiles(t, map[string]string{
		"a.jsonl": text, "drop.json": fmt.Sprintf(`{"columns": {"l": {"nulls": "drop"}, `+rest, `, "nulls": "drop"`),
		"bad.json":     fmt.Sprintf(`{"columns": {"l": {"nulls": "bad"}, `+rest, ""),
		"odd.json":     `{"columns": {"l": {"nulls": "keep"}}}`,
		"vector.json":  `{"columns": {"l": {"kind": "embedding", "dim": 2, "nulls": "drop"}}}`,
		"vector.jsonl": `{"l": [1, 2]}`,
	})
	opts := func(mapping string) Options { return Options{MappingFile: filepath.Join(dir, mapping)} }
	chunks, err := readPath(t, filepath.Join(dir, "a.jsonl"), opts("drop.json"))
	want := fmt.Sprintf(`l=[1,2] w=[7:0.5] m=1 m.b=3 n=1 n.k=[4] p=[1:0.5] h=[%d]
l=[] w=[] m=1 m.b=null n=1 n.k=[] p=[2:1.5] h=[]
l=[3] w=[] m=1 m.b=null n=1 n.k=null p=[] h=null
l=null w=null m=null m.b=null n=null n.k=null p=null h=[%d]
`, mapping.HashString([]byte("x")), mapping.HashString([]byte("y")))
	if got := dump(chunks); err != nil || got != want {
		t.Errorf("%v, got\n%swant\n%s", err, got, want)
	}
	bad := opts("bad.json")
	rows := 0
	bad.OnBadRow = func(_ Place, column string, err error) {
		if rows++; !strings.Contains(err.Error(), `"nulls": "drop"`) {
			t.Errorf("column %s: %v", column, err)
		}
	}
	if _, err := readPath(t, filepath.Join(dir, "a.jsonl"), bad); err != nil || rows != 3 {
		t.Errorf("%d bad rows, %v; want 3", rows, err)
	}
	for mapping, want := range map[string]string{"odd.json": `nulls "keep" is neither bad nor drop`,
		"vector.json": "whose length is fixed"} {
		if _, err := readPath(t, filepath.Join(dir, "vector.jsonl"), opts(mapping)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", mapping, err, want)
		}
	}
}
