package hive

import (
	"fmt"
	"strings"
	"testing"
)

func TestDDL(t *testing.T) {
	for _, tc := range []struct{ ddl, want string }{
		{"CREATE TABLE t (a int)", "a int32 | \"\" \"\" \"\" csv=false esc=\"\" by=[]"},
		{"create table db.t(`a b` map<int,array<double>>, c struct<x:decimal(20,3),`y z`:char(3)>) partitioned by " +
			"(ds string, hr int) stored as textfile",
			"a b map<int32, list<float64>>, c struct<x: decimal(20, 3), y z: string> | \"\" \"\" \"\" csv=false " +
				"esc=\"\" by=[ds hr]"},
		{"CREATE TABLE t (a double precision COMMENT 'x;)') ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\001' " +
			"ESCAPED BY '\\\\' COLLECTION ITEMS TERMINATED BY '\\u0002' MAP KEYS TERMINATED BY '3' LINES " +
			"TERMINATED BY '\\n' NULL DEFINED AS '' STORED AS TEXTFILE;",
			"a float64 | \"\\x01\" \"\\x02\" \"\\x03\" csv=false esc=\"\\\\\" by=[]"},
		{"CREATE EXTERNAL TABLE t (a string) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH " +
			"SERDEPROPERTIES ('separatorChar'='\\t', 'quoteChar'='\\'') TBLPROPERTIES ('skip.header.line.count'='1')",
			"a string | \"\\t\" \"\" \"\" csv=true esc=\"\\\\\" by=[] skip=1"},
		{"CREATE TABLE t (a int", "line 1: want , or )"},
		{"CREATE TABLE t (a inz)", `unknown type "inz"; did you mean "int"?`},
		{"CREATE TABLE t (a int, A int)", "two columns"},
		{"CREATE TABLE t (a int) ROW FORMAT SERDE 'x.RegexSerDe'", "SerDe x.RegexSerDe is not supported"},
		{"CREATE TABLE t (a int) FROBNICATE", "want a clause of CREATE TABLE, got \"FROBNICATE\""},
		{"SELECT 1", "want CREATE TABLE"},
		{"CREATE TABLE t (a " + strings.Repeat("array<", 100), "nested deeper than 32"},
	} {
		d, err := ParseTable(tc.ddl, 32)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var cols []string
			for _, c := range d.Columns {
				cols = append(cols, c.Name+" "+c.String())
				if r := c.Refused(); r != nil {
					got = r.Reason
				}
			}
			got += fmt.Sprintf("%s | %q %q %q csv=%v esc=%q by=%v", strings.Join(cols, ", "), d.Text.Delimiter,
				d.Text.Items, d.Text.MapKeys, d.Text.CSV, d.Text.Escape, d.PartitionBy)
			if d.Text.SkipLines > 0 {
				got += fmt.Sprintf(" skip=%d", d.Text.SkipLines)
			}
		}
		if got != tc.want && (err == nil && !strings.HasPrefix(got, "unknown type") ||
			!strings.Contains(got, tc.want)) {
			t.Errorf("%s\ngot  %s\nwant %s", tc.ddl, got, tc.want)
		}
	}
}

func TestOddDDL(t *testing.T) {
	for text, want := range map[string]string{
		"\xef\xbb\xbfCREATE TABLE t (a int)":             "",
		"/* x */ CREATE TABLE t (a int /* y */) -- z":    "",
		"CREATE VIEW v AS SELECT 1":                      "a view, which has no files",
		"":                                               "want CREATE TABLE",
		"CREATE TABLE t (a int) /* no end":               "",
		"CREATE TABLE t STORED AS ORC AS SELECT 1":       "the statement names no columns",
		"CREATE TABLE t (a int) TBLPROPERTIES ('x'='y')": "",
		"CREATE TABLE t (a int) TBLPROPERTIES ('x'='y'":  "want , or )",
		"CREATE TABLE t (a int COMMENT 'no end)":         "the end of a quoted text",
	} {
		_, err := ParseTable(text, 32)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzDDL(f *testing.F) {
	f.Add("CREATE EXTERNAL TABLE IF NOT EXISTS `db`.`t`(\n  `id` bigint COMMENT 'an id', `price` decimal(10,2))\n" +
		"PARTITIONED BY (`ds` string)\nROW FORMAT DELIMITED FIELDS TERMINATED BY '|' ESCAPED BY '\\\\'\n" +
		"STORED AS TEXTFILE\nLOCATION 'hdfs://x/t'")
	f.Add("CREATE TABLE t (a struct<`x y`:map<int,array<double precision>>>) /* */ -- z")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseTable(text, 32); err == nil && len(d.Columns) == 0 {
			t.Fatal("a table without columns")
		}
	})
}

func FuzzPartition(f *testing.F) {
	f.Add("ds=a%2Fb")
	f.Fuzz(func(t *testing.T, name string) {
		v, ok, err := PartitionValue(name)
		if err == nil && ok && v.Key == "" {
			t.Fatal("a partition key without a name")
		}
	})
}
