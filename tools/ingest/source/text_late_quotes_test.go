package source

import (
	"fmt"
	"strings"
	"testing"
)

// TestLateQuotes: where a file that is not separated by commas begins with 1 MiB in which no value has quotes, one that
// is not closed in its line is a bad row, and takes no others with it.
func TestLateQuotes(t *testing.T) {
	plain := strings.Repeat("1\t"+strings.Repeat("x", 100)+"\n", 12_000) // more than is looked at
	quoted := "1\t\"x\"\n"
	const stray = "2\t\"Rome\n3\ty\n4\tthe \"Hague\"\n5\t\"z\"\n6\t\"\n7\tw\n"
	for _, tc := range []struct {
		name, mapping, text string
		rows                int
		last                string // rows
		bad                 []string
	}{
		{"a stray quote", "", plain + stray, 12_004, "id=3 city=\"y\"\nid=4 city=\"the \\\"Hague\\\"\"\nid=5 " +
			"city=\"z\"\nid=7 city=\"w\"\n", []string{
			`line 12002: the quote before column 2 is not closed in its line, ` +
				`and no column in the text's first lines has quotes: {"text": {"quote": ""}} in a mapping file takes ` +
				`quotes for text, {"text": {"quote": "\""}} takes quoted columns over line ends`,
			"line 12006: the quote"}},
		{"quotes are text", `{"text": {"quote": ""}}`, plain + stray, 12_006,
			"id=6 city=\"\\\"\"\nid=7 city=\"w\"\n", nil},
		{"quotes are quotes", `{"text": {"quote": "\""}}`, plain + "2\t\"Rome\n3\"\n4\ty\n", 12_002,
			"id=2 city=\"Rome\\n3\"\nid=4 city=\"y\"\n", nil},
		{"some value has quotes", "", quoted + plain + "2\t\"Rome\n3\"\n4\ty\n", 12_003,
			"id=2 city=\"Rome\\n3\"\nid=4 city=\"y\"\n", nil},
		{"a quote that is not closed", "", quoted + plain + "2\t\"Rome\n3\tb\n4\t\"Paris\"\n", 12_001, "\"\n", []string{
			"'P' after the closing quote of column 2, a row that has lines 12003 to 12005 in it"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var bad []string
			c := textCase{file: "f.tsv", mapping: tc.mapping, text: "id\tcity\n" + tc.text}
			got, err := c.read(t, Options{OnBadRow: func(p Place, column string, err error) {
				bad = append(bad, fmt.Sprintf("%v: %v", p, err))
			}})
			if err != nil || strings.Count(got, "\n") != tc.rows || !strings.HasSuffix(got, tc.last) {
				t.Errorf("%v, %d rows, the last %s; want %d, %s", err, strings.Count(got, "\n"), got[max(0,
					len(got)-200):], tc.rows, tc.last)
			}
			if len(bad) != len(tc.bad) {
				t.Fatalf("bad rows: %q, want %q", bad, tc.bad)
			}
			for i := range bad {
				if !strings.Contains(bad[i], tc.bad[i]) {
					t.Errorf("bad row %s, want %s", bad[i], tc.bad[i])
				}
			}
		})
	}
	one := textCase{text: "b\n" + strings.ReplaceAll(plain, "\t", " ") + "\"p\nq\"\n"}
	if got, err := one.read(t, Options{}); err != nil || !strings.HasSuffix(got, "b=\"p\\nq\"\n") {
		t.Errorf("one column: %v", err)
	}
	// The quotes of names are quotes, and so are those between commas, and one that the first bytes end within.
	for name, text := range map[string]string{
		"commas":          "a,b\n" + strings.ReplaceAll(plain, "\t", ",") + "2,\"p\nq\"\n",
		"names in quotes": "\"a\",\"b\"\n" + strings.ReplaceAll(plain, "\t", ",") + "2,\"p\nq\"\n",
		"cut in quotes":   "a,b\n1,\"x\n" + strings.Repeat("y\n", 1<<20) + "\"\n2,\"p\nq\"\n",
	} {
		c := textCase{text: text}
		if got, err := c.read(t, Options{}); err != nil || !strings.HasSuffix(got, "a=2 b=\"p\\nq\"\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
