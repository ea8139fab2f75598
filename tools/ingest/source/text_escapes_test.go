package source

import "testing"

// TestEscapes: what a backslash, or another escape character, does in CSV. Who says the layout says the rules.
func TestEscapes(t *testing.T) {
	const opencsv = "CREATE TABLE t (id int, name string, qty int) ROW FORMAT SERDE " +
		"'org.apache.hadoop.hive.serde2.OpenCSVSerde' WITH SERDEPROPERTIES ('quoteChar'='\"','escapeChar'='"
	runText(t, []textCase{
		// An escape character equal to the quote means doubled quotes.
		{"the quote escapes", "", `{"text": {"quote": "\"", "escape": "\"", "header": true}}`, "",
			"id,name,qty\n1,pipe 12\",5\n2,\"ok \"\"x\"\"\",6\n",
			"id=\"1\" name=\"pipe 12\\\"\" qty=\"5\"\nid=\"2\" name=\"ok \\\"x\\\"\" qty=\"6\"\n"},
		{"the quote escapes in OpenCSVSerde", "", "", opencsv + "\"')", "1,pipe 12\",5\n2,\"ok \"\"x\"\"\",6\n",
			"id=1 name=\"pipe 12\\\"\" qty=5\nid=2 name=\"ok \\\"x\\\"\" qty=6\n"},
		{"the quote escapes in Spark", "", "", "CREATE TABLE t (id int, name string, qty int) USING csv OPTIONS " +
			"(escape '\"')", "1,pipe 12\",5\n2,\"ok \"\"x\"\" \\\"\n", "id=1 name=\"pipe 12\\\"\" qty=5\nid=2 " +
			"name=\"ok \\\"x\\\" \\\\\" qty=null\n"},
		// A null is what is in the file, before it is unescaped.
		{"MySQL's null", "", `{"text": {"quote": "\"", "escape": "\\", "null": "\\N", "header": true}, "columns": ` +
			`{"n": {"type": "bigint"}}}`, "", "id,n,note\n1,\\N,\"he said \\\"hi\\\"\"\n2,7,\\\\N\n3,\\N,\"\\\\N\"\n",
			"id=\"1\" n=null note=\"he said \\\"hi\\\"\"\nid=\"2\" n=7 note=\"\\\\N\"\n" +
				"id=\"3\" n=null note=\"\\\\N\"\n"},
		{"MySQL's null in a layout that is found", "", `{"text": {"null": "\\N"}}`, "",
			"id,n,note\n1,\\N,\"he said \\\"hi\\\"\"\n2,7,\"\\\\N\"\n3,\\N,\\N\n",
			"id=1 n=null note=\"he said \\\"hi\\\"\"\nid=2 n=7 note=\"\\\\N\"\nid=3 n=null note=null\n"},
		// Spark, and what is found: in quotes, before a quote or another backslash.
		{"paths beside escaped quotes", "", "", "",
			"id,path,note\n1,C:\\temp\\new,\"a \\\"b\\\"\"\n2,D:\\x,\"c:\\new \\\\\"\n",
			"id=1 path=\"C:\\\\temp\\\\new\" note=\"a \\\"b\\\"\"\nid=2 path=\"D:\\\\x\" note=\"c:\\\\new \\\\\"\n"},
		{"paths in Spark's", "", "", "CREATE TABLE t (id int, path string, qty int) USING csv OPTIONS (header 'true')",
			"id,path,qty\n1,C:\\temp\\,5\n2,\"D:\\x \\\"y\\\" \\\\\",6\n",
			"id=1 path=\"C:\\\\temp\\\\\" qty=5\nid=2 path=\"D:\\\\x \\\"y\\\" \\\\\" qty=6\n"},
		{"a null of MySQL's that nobody says", "", "", "", "id,n\n1,\\N\n2,\"\\\"\"\n",
			"id=1 n=\"\\\\N\"\nid=2 n=\"\\\"\"\n"},
		{"MySQL's line ends", "", "", "", "id,note\n1,\"a\\\nb\"\n2,\"x \\\" y\"\n",
			"id=1 note=\"a\\nb\"\nid=2 note=\"x \\\" y\"\n"},
		// A mapping file's escape character escapes any other, with quotes and without, as in pandas.
		{"the mapping file's", "", `{"text": {"quote": "\"", "escape": "\\", "header": true}}`, "",
			"a,b\nx\\,y\\z,\"\\q\\\"\"\n\"p\\\nq\",1\n", "a=\"x,yz\" b=\"q\\\"\"\na=\"p\\nq\" b=\"1\"\n"},
		// OpenCSVSerde drops all backslashes that escape, and Hive's own text has rules of its own.
		{"OpenCSVSerde's", "", "", opencsv + "\\\\')", "1,C:\\temp,5\n2,\"D:\\x \\\"y\\\" \\\\\",6\n",
			"id=1 name=\"C:temp\" qty=5\nid=2 name=\"D:x \\\"y\\\" \\\\\" qty=6\n"},
		{"Hive's", "", "", "CREATE TABLE t (a string, b string) ROW FORMAT DELIMITED FIELDS TERMINATED BY '|' " +
			"ESCAPED BY '\\\\'", "x\\|\\n\\y|\\N\n", "a=\"x|\\ny\" b=null\n"},
	})
}
