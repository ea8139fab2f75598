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
			"id=\"1\" n=null note=\"he said \\\"hi\\\"\"\nid=\"2\" n=7 note=\"\\\\N\"\nid=\"3\" n=null note=\"\\\\N\"\n"},
		{"MySQL's null in a layout that is found", "", `{"text": {"null": "\\N"}}`, "",
			"id,n,note\n1,\\N,\"he said \\\"hi\\\"\"\n2,7,\"\\\\N\"\n3,\\N,\\N\n",
			"id=1 n=null note=\"he said \\\"hi\\\"\"\nid=2 n=7 note=\"\\\\N\"\nid=3 n=null note=null\n"},
	})
}
