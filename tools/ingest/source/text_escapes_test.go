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
	})
}
