package source

import (
	"bytes"
	"compress/gzip"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogs reads text as programs other than Hive write it, and as Hive reads it where it is Hive's.
func TestLogs(t *testing.T) {
	const csv = `"text": {"quote": "\"", "header": true}`
	for _, tc := range []struct{ name, mapping, ddl, text, want string }{
		{"MovieLens .dat", `{"text": {"delimiter": "::", "columns": [{"name": "u", "type": "int"}, {"name": ` +
			`"title", "type": "string"}]}}`, "",
			"1::Se7en: a::b\n2::\n3\n", "line 1: 3 columns"},
		{"MovieLens .dat", `{"text": {"delimiter": "::", "columns": [{"name": "u", "type": "int"}, {"name": ` +
			`"title", "type": "string"}]}}`, "",
			"1::Se7en: a:\n2::\n3\n", "u=1 title=\"Se7en: a:\"\nu=2 title=\"\"\nu=3 title=null\n"},
		{"TPC-H's .tbl", `{"text": {"delimiter": "|", "columns": [{"name": "k", "type": "int"}, {"name": "d", ` +
			`"type": "date"}, {"name": "c", "type": "string"}]}}`, "",
			"1|1996-03-13| egular courts above the|\n2|1996-04-12||\n3\n",
			"k=1 d=9568 c=\" egular courts above the\"\nk=2 d=9598 c=\"\"\nk=3 d=null c=null\n"},
		{"TPC-H's .tbl by its DDL", "",
			"CREATE TABLE t (k bigint, p decimal(15,2)) ROW FORMAT DELIMITED FIELDS TERMINATED BY '|'",
			"1|17.50|\n2||\n", "k=1 p=1750\nk=2 p=null\n"},
		{"a delimiter at the end in CSV", `{` + csv + `}`, "", "a,b\n1,2,\n\"3\",,\n",
			"a=\"1\" b=\"2\"\na=\"3\" b=null\n"},
		{"an empty column more, in quotes", `{` + csv + `}`, "", "a,b\n1,2,\"\"\n",
			"line 2: 3 columns, the schema has 2"},
		{"two delimiters at the end", `{` + csv + `}`, "", "a,b\n1,2,,\n",
			`line 2: 4 columns, the schema has 2; "text": {"extra": "ignore"}`},
		{"more columns, left out", `{"text": {"quote": "\"", "header": true, "extra": "ignore"}}`, "", "a,b\n1,2,3,4\n",
			"a=\"1\" b=\"2\"\n"},
		{"more columns than Hive's table has", "", "CREATE TABLE t (a int, b string)", "1\x01x\x012\x01y\n",
			"a=1 b=\"x\"\n"},
		{"more members than Hive's struct has", "", "CREATE TABLE t (a struct<x:int>)", "1\x022\n", "a=1 a.x=1\n"},
		{"more columns than Hive's table has, bad", `{"text": {"extra": "bad"}}`, "CREATE TABLE t (a int, b string)",
			"1\x01x\x012\x01y\n", "line 1: 4 columns"},
		{"extra of another kind", `{"text": {"extra": "skip"}}`, "CREATE TABLE t (a int)", "1\n",
			`extra "skip" is neither bad nor ignore`},
		{"blanks around numbers", "",
			"CREATE TABLE t (i int, f double, d decimal(20,2), b boolean, t timestamp, a date, l array<int>, s string)",
			" 12 \x01 1.123 \x01\t2.50\x01true \x01 1970-01-01 00:00:00\x01 1970-01-02 \x01 1\x022 \x01 x \n \x01  " +
				"\x01 \x01\x01 \x01 \x01\x01 \n",
			"i=12 f=1.123 d=\"" + strings.Repeat(`\x00`,
				15) + `\xfa` + "\" b=1 t=0 a=1 l=[1,2] s=\" x \"\ni=null f=null d=null b=null t=null a=null l=[] " +
				"s=\" \"\n"},
		{"blanks around inferred numbers", `{"text": {"quote": "\"", "header": true, "infer": true}}`, "",
			"a,b,c,d\n 1, 1.5 ,\" x \", \n22 ,2,y,1\n",
			"a=1 b=1.5 c=\" x \" d=null\na=22 b=2 c=\"y\" d=1\n"},
		{"blanks within numbers", "", "CREATE TABLE t (i int)", "1 2\n", `"1 2" is no int32`},
		{"a delimiter of bytes and quotes", `{"text": {"delimiter": "¬¬", "quote": "\"", "header": true}}`, "",
			"a¬¬b\n\"x¬¬y\"¬¬z¬w\n", "a=\"x¬¬y\" b=\"z¬w\"\n"},
		{"a delimiter of bytes and an escape", `{"text": {"delimiter": "::", "escape": "\\", "header": true}}`, "",
			"a::b\nx\\::y::z\n", "a=\"x::y\" b=\"z\"\n"},
		{"no text is no number", `{"columns": {"l": {"optional": true}}}`,
			"CREATE TABLE t (i int, f double, d decimal(20,2), b boolean, s string, l array<int>)",
			"\x01\x01\x01\x01\x01\n1\x011.5\x012.5\x01true\x01x\x014\n",
			"i=null f=null d=null b=null s=\"\" l=[]\ni=1 f=1.5 d=\"" +
				strings.Repeat(`\x00`, 15) + `\xfa` + "\" b=1 s=\"x\" l=[4]\n"},
		{"no text is no number in a list", "", "CREATE TABLE t (l array<int>)", "1\x02\x023\n",
			`line 1, column "l": a null inside a list`},
		{"no text is no number in a struct", "", "CREATE TABLE t (i int, s struct<a:int,b:string>)",
			"1\x01\n2\x01\\N\n3\n",
			"i=1 s=1 s.a=null s.b=null\ni=2 s=null s.a=null s.b=null\ni=3 s=null s.a=null s.b=null\n"},
		{"no text is no number where null is a word",
			`{"text": {"quote": "\"", "header": true, "null": "NA"}, "columns": {"a": {"type": "int"}}}`, "",
			"a,b\n,\nNA,NA\n\"1\",\"NA\"\n", "a=null b=\"\"\na=null b=null\na=1 b=\"NA\"\n"},
		{"integers written as floats", `{` + csv + `, "columns": {"id": {"type": "bigint"}}}`, "",
			"id\n17850.0\n9007199254740993.00\n-3.0\n",
			"id=17850\nid=9007199254740993\nid=-3\n"},
		{"integers with a fraction", `{` + csv + `, "columns": {"id": {"type": "bigint"}}}`, "", "id\n1.5\n",
			`"1.5" is no int64`},
		{"a point without digits", `{` + csv + `, "columns": {"id": {"type": "bigint"}}}`, "", "id\n1.\n",
			`"1." is no int64`},
		{"line ends in quotes", `{` + csv + `}`, "", "a,b\r\n\"x\r\ny\nz\",1\r\n", "a=\"x\\r\\ny\\nz\" b=\"1\"\n"},
		{"a column without a name", `{` + csv + `, "columns": {"_c0": {"drop": true}}}`, "", ",a,\n0,x,y\n",
			"a=\"x\" _c2=\"y\"\n"},
		{"a header and no delimiter", `{"text": {"header": true}}`, "", "a,b\n1,2\n", "a=1 b=2\n"},
		{"empty lines below a header", `{"text": {"header": true, "delimiter": "\t"}}`, "", "a\tb\n1\t2\n\n",
			"a=\"1\" b=\"2\"\n"},
		{"empty lines of Hive", "", "CREATE TABLE t (a int, b string)", "\n1\x01\n", "a=null b=null\na=1 b=\"\"\n"},
		{"times with zones", `{` + csv + `, "columns": {"t": {"type": "timestamp"}}}`, "",
			"t\n1970-01-01 00:00:02.5+00:00\n1970-01-01 01:00:02+01:00\n1970-01-01T00:00:00Z\n" +
				"1970-01-01 00:00:03 UTC\n1970-01-01 00:00:04+00\n1970-01-01T01:00:05.000+0100\n",
			"t=2500000000\nt=2000000000\nt=0\nt=3000000000\nt=4000000000\nt=5000000000\n"},
		{"an empty column of OpenCSVSerde", "",
			"CREATE TABLE t (a string, b string) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' " +
				"WITH SERDEPROPERTIES ('serialization.format'='1')", ",\"\"\nx\n", "a=\"\" b=\"\"\na=\"x\" b=null\n"},
		{"OpenCSVSerde with a null", `{"text": {"null": ""}}`,
			"CREATE TABLE t (a string, b string) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'",
			",\"\"\n", "a=null b=\"\"\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := writeFiles(t, map[string]string{"m.json": tc.mapping, "t.sql": tc.ddl, "f.csv": tc.text})
			opts := Options{Format: "text"}
			if tc.mapping != "" {
				opts.MappingFile = filepath.Join(dir, "m.json")
			}
			if tc.ddl != "" {
				opts.DDLFile = filepath.Join(dir, "t.sql")
			}
			chunks, err := readPath(t, filepath.Join(dir, "f.csv"), opts)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			if got := dump(chunks); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestEmptyParts: writers leave parts that hold nothing, not even a header, which only their compression keeps from
// being files of no bytes.
func TestEmptyParts(t *testing.T) {
	var empty bytes.Buffer
	if err := gzip.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	for name, full := range map[string]string{"b.csv": "a,b\n1,2\n", "b.jsonl": `{"a": "1", "b": "2"}`} {
		dir := writeFiles(t, map[string]string{
			"m.json": `{"text": {"quote": "\"", "header": true}, "columns": {"a": {"role": "user_key"}}}`,
			"t/" + strings.Replace(name, "b", "a", 1) + ".gz": empty.String(), "t/" + name: full,
		})
		chunks, err := readPath(t, filepath.Join(dir, "t"), Options{MappingFile: filepath.Join(dir, "m.json"),
			SessionKey: "b"})
		if got := dump(chunks); err != nil || got != "a=\"1\" b=\"2\"\n" {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
}
