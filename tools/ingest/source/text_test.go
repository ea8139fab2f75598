package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/format/vector"
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
	"WITH SERDEPROPERTIES ('field.delim'='|','colelction.delim'=',','mapkey.delim'='58','serialization.format'='|', 'escape.delim'='\\\\')\n" +
	"STORED AS INPUTFORMAT 'org.apache.hadoop.mapred.TextInputFormat'\n" +
	"OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat'\n" +
	"LOCATION 'hdfs://x/y'\nTBLPROPERTIES ('transient_lastDdlTime'='1')\n"

func TestHiveText(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"ddl.sql":            testDDL,
		"t/ds=a%2Fb/000000":  `1|al\|ice|1,2|k:1.5,l:2|30,Rome|12.50|2026-11-01` + "\n" + `2|\N||\N|\N|-0.01|\N` + "\n3\n",
		"t/ds=c/_SUCCESS":    "",
		"t/ds=c/part-00000":  "x|y\n",
		"t/.hidden/part":     "x",
		"t/ds=c/part-empty":  "",
		"t/ds=c/part-000001": "4|z|||||\n",
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
	const want = `ds=a%2Fb: id=1 name="al|ice" tags=[1,2] scores=1 scores.k=1.5 scores.l=2 who=1 who.age=30 who.city="Rome" price=1250 day=20758
ds=a%2Fb: id=2 name=null tags=[] scores=null scores.k=null scores.l=null who=null who.age=null who.city=null price=-1 day=null
ds=a%2Fb: id=3 name=null tags=null scores=null scores.k=null scores.l=null who=null who.age=null who.city=null price=null day=null
`
	if got := dump(chunks); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if len(bad) != 2 || !strings.Contains(bad[0], `t/ds=c/part-00000, line 1: id: "x" is no int64: invalid syntax`) ||
		!strings.Contains(bad[1], `part-000001, line 1: who: "" is no int32`) {
		t.Errorf("bad rows: %q", bad)
	}
}

func TestJSONLines(t *testing.T) {
	dir := writeFiles(t, map[string]string{"a.jsonl": `{"a": 1, "b": [1,2,3], "c": {"x": 1.5, "y": "z"}, "s": "h\u00e9\ud83d\ude00", "f": [1.5, 2]}
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
