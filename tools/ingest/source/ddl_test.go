package source

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignDDL reads one line of text by what Hive's and Spark's shells print of its table.
func TestForeignDDL(t *testing.T) {
	const row = "1\x01x"
	for _, tc := range []struct{ name, ddl, mapping, text, want string }{
		{"beeline", "+-----------------+\n|  createtab_stmt |\n+-----------------+\n| CREATE TABLE `t`(  |\n|   " +
			"`a` int,  |\n|   `s` string COMMENT 'a | b')  |\n+---------+\n",
			"", row, `a=1 s="x"`},
		{"the hive shell", "OK\ncreatetab_stmt\nCREATE TABLE `t`(\n  `a` int, \n  `s` string)\nTime taken: 0.06 " +
			"seconds, Fetched: 13 row(s)\n", "", row, `a=1 s="x"`},
		{"a script", "USE db; SET x='a;b';\nDROP TABLE IF EXISTS t; CREATE TABLE t (a int, s string);\nMSCK REPAIR " +
			"TABLE t;\n", "", row, `a=1 s="x"`},
		{"two tables", "CREATE TABLE t (a int);\nCREATE EXTERNAL TABLE u (a int);", "", row,
			"more than one CREATE TABLE"},
		{"backticks", "CREATE TABLE t (`a``b ` int, `c.d` string)", "", row, "a`b =1 c.d=\"x\""},
		{"Spark csv", "CREATE TABLE spark_catalog.default.t (\n  a INT COMMENT 'x',\n  s STRING)\nUSING " +
			"csv\nOPTIONS (\n  'header' = 'true',\n  sep ';;', nullValue '-')\nTBLPROPERTIES (\n  'comment' = " +
			"'y')",
			"", "q;;r\n1;;-\n", "a=1 s=null"},
		{"Spark option", "CREATE TABLE t (a INT) USING csv OPTIONS (dateFormat 'yyyy')", "", row,
			`the option "dateFormat" is not supported`},
		{"Spark parquet", "CREATE TABLE t (a INT) USING parquet", "", row, "stored as parquet, this one is text"},
		{"Spark json", "CREATE TABLE t (a INT) USING json", "", row, "--format jsonl"},
		{"Spark partition keys", "CREATE TABLE t (a INT, s STRING, ds DATE) USING hive PARTITIONED BY (ds)", "", row,
			`ds=7: a=1 s="x"`},
		{"no such partition key", "CREATE TABLE t (a INT) PARTITIONED BY (ds)", "", row,
			`partitioned by "ds", which is no column`},
		{"no type", "CREATE TABLE t (a, b int)", "", row, `column "a" has no type`},
		{"constraints", "CREATE TABLE t (a int NOT NULL ENABLE COMMENT 'k', s string COLLATE UTF8_BINARY DEFAULT " +
			"concat('a,)', 'b'), CONSTRAINT c FOREIGN KEY (a) REFERENCES u(b) DISABLE NOVALIDATE, PRIMARY " +
			"KEY (a) DISABLE)",
			"", row, `a=1 s="x"`},
		{"members", "CREATE TABLE t (a int, s struct<$x-y:string COMMENT 'p:q>', `z``z`: int NOT NULL, w bigint>)", "",
			"1\x01p\x022\x023", "a=1 s=1 s.$x-y=\"p\" s.z`z=2 s.w=3"},
		{"types without a place", "CREATE TABLE t (a int, u uniontype<int,array<string>>, i interval day to " +
			"second, z timestamp with local time zone, s struct<v:uniontype<int>,w:int>, n void)",
			`{"columns": {"u": {"drop": true}, "i": {"drop": true}, "z": {"drop": true}, "s.v": {"drop": true}}}`,
			"1\x01a\x01b\x01c\x01d\x025\x01\\N", "a=1 s=1 s.w=5 n=null"},
		{"a union", "CREATE TABLE t (a int, u uniontype<int>)", "", row,
			`column "u": a union has no place in a table; drop it`},
		{"an interval", "CREATE TABLE t (a int, u interval_day_time)", "", row,
			`column "u": intervals have no place in a table; drop it`},
		{"CTAS", "CREATE TABLE t STORED AS TEXTFILE AS SELECT 1", "", row, "the statement names no columns"},
		{"LIKE", "CREATE TABLE t LIKE u", "", row, "the statement names no columns"},
		{"directories", "CREATE TABLE t (a int, s string) SKEWED BY (a) ON ((1), (2)) STORED AS DIRECTORIES", "", row,
			`a=1 s="x"`},
		{"links", "CREATE TABLE t (a int) STORED AS INPUTFORMAT " +
			"'org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat' OUTPUTFORMAT " +
			"'x'", "", row, "SymlinkTextInputFormat, this one is text"},
		{"MultiDelimitSerDe", "CREATE TABLE t (a int, s string) ROW FORMAT SERDE " +
			"'org.apache.hadoop.hive.serde2.MultiDelimitSerDe' WITH SERDEPROPERTIES ('field.delim'='::')",
			"", "1::x", `a=1 s="x"`},
		{"a delimiter in doubt", "CREATE TABLE t (a int, s string) ROW FORMAT DELIMITED FIELDS TERMINATED BY '::'", "",
			"1::x", `separated by "::", of which Hive itself takes the first`},
		{"a delimiter that the mapping makes sure",
			"CREATE TABLE t (a int, s string) ROW FORMAT DELIMITED FIELDS TERMINATED BY '::'",
			`{"text": {"delimiter": "::"}}`, "1::x", `a=1 s="x"`},
		{"GBK", "CREATE TABLE t (a int, s string) ROW FORMAT SERDE " +
			"'org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe' WITH SERDEPROPERTIES (" +
			"'serialization.encoding'='GBK')",
			"", "1\x01\xd6\xd0", `a=1 s="中"`},
		{"Spark's encoding", "CREATE TABLE t (a int, s string) USING csv OPTIONS (encoding 'Shift_JIS')", "",
			"1,\x83\x5c", `a=1 s="ソ"`},
		{"no encoding", "CREATE TABLE t (a int) USING csv OPTIONS (encoding 'cp037')", "", row, `encoding "cp037" is ` +
			`none of big5`},
		{"lines", "CREATE TABLE t (a int) TBLPROPERTIES ('textinputformat.record.delimiter'='#')", "", row,
			"is not supported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := "t/f"
			if strings.Contains(tc.ddl, "PARTITIONED BY") {
				file = "t/ds=7/f"
			}
			dir := writeFiles(t, map[string]string{"m.json": tc.mapping, "t.sql": tc.ddl, file: tc.text})
			opts := Options{Format: "text", DDLFile: filepath.Join(dir, "t.sql")}
			if tc.mapping != "" {
				opts.MappingFile = filepath.Join(dir, "m.json")
			}
			chunks, err := readPath(t, filepath.Join(dir, "t"), opts)
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			if got := dump(chunks); got != tc.want+"\n" {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestDroppedMembers: a member of an object that is dropped may hold what has no place.
func TestDroppedMembers(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"m.json":  `{"columns": {"s.big": {"drop": true}}}`,
		"a.jsonl": `{"s": {"big": 123456789012345678901234567890, "b": 1}}` + "\n" + `{"s": {"big": null, "b": 2}}`,
	})
	chunks, err := readPath(t, filepath.Join(dir, "a.jsonl"), Options{MappingFile: filepath.Join(dir, "m.json")})
	if got := dump(chunks); err != nil || got != "s=1 s.b=1\ns=1 s.b=2\n" {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestNamesLikeMembers: what a table keeps of a struct is its path, so that another column must not have one that says
// it is in the struct.
func TestNamesLikeMembers(t *testing.T) {
	const refused = "its name says that it is a member of the struct"
	for text, want := range map[string]string{
		`{"s": {"y": 1}, "s.x": 2}`:                      "s=1 s.y=1 s.x=2\n",
		`{"s": {"x": 1}, "s.x": 2}`:                      "two columns have this name",
		`{"s": {"y": 1}, "s.x": {"z": 2}}`:               `column "s.x": ` + refused + ` "s"`,
		`{"s.x": {"z": 2}, "s": {"y": 1}}`:               `column "s.x": ` + refused + ` "s"`,
		`{"s": {"y": 1}, "s.m": {"1": 2.5}}`:             `column "s.m": ` + refused + ` "s"`,
		`{"s": {"a": {"c": 1}, "a.b": {"d": 2}}}`:        `column "s.a.b": ` + refused + ` "s.a"`,
		`{"s": {"a": 1, "a.b": {"d": 2}}}`:               "s=1 s.a=1 s.a.b=1 s.a.b.d=2\n",
		`{"s": {"a": {"b": {"c": 1}}}, "t.u": {"v": 1}}`: "s=1 s.a=1 s.a.b=1 s.a.b.c=1 t.u=1 t.u.v=1\n",
	} {
		dir := writeFiles(t, map[string]string{"a.jsonl": text,
			"m.json": `{"columns": {"s.m": {"map": "explode", "optional": true}}}`})
		chunks, err := readPath(t, filepath.Join(dir, "a.jsonl"), Options{MappingFile: filepath.Join(dir, "m.json")})
		if got := dump(chunks); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, %swant %s", text, err, got, want)
		}
	}
}
