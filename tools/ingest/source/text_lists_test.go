package source

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/mapping"
)

// TestListsOfStrings: lists of quoted strings as Python and JSON write them are lists.
func TestListsOfStrings(t *testing.T) {
	const hashed = `"columns": {"tags": {"type": "array<string>", "kind": "sparse", "hash": true}}}`
	ids := func(items ...string) string {
		var out []string
		for _, s := range items {
			out = append(out, fmt.Sprint(mapping.HashString([]byte(s))))
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	for _, tc := range []struct{ name, text, value, want string }{
		{"Python", "", `"['Action', 'Indie']"`, ids("Action", "Indie")},
		{"one", "", `"['Action']"`, ids("Action")},
		{"none", "", `"[]"`, "[]"},
		{"none, and a blank", "", `"[ ]"`, "[]"},
		{"none, without quotes", "", `[]`, "[]"},
		{"null", "", ``, "null"},
		{"JSON", "", `"[""Action"", ""a, b"",""\u00e9\ud83d\ude00\/\""""]"`, ids("Action", "a, b", `é😀/"`)},
		{"Python's escapes", "", `"['it\'s', ""it's"", '\\', 'a\nb', '\xe9\U0001F600', '\d']"`,
			ids("it's", "it's", `\`, "a\nb", "é😀", `\d`)},
		{"blanks around", "", `" [ 'a' , 'b' ] "`, ids("a", "b")},
		{"numbers", "", `"[1, 2.5, -3]"`, ids("1", "2.5", "-3")},
		{"a null", "", `"['a', None]"`, `a null inside a list`},
		{"a null of JSON's", "", `"[null, ""a""]"`, `a null inside a list`},
		{"words without quotes", "", `"[Action, Indie]"`, `"[Action, Indie]" is no list of quoted strings`},
		{"no commas", "", `['a' 'b']`, `"['a' 'b']" is no list of quoted strings`},
		{"no end of a string", "", `['a]`, `"['a]" is no list of quoted strings`},
		{"a comma at the end", "", `"['a',]"`, ids("a")},
		{"half of a pair", "", `"['\ud83d']"`, `is no list of quoted strings`},
		{"one item without brackets", "", `Action`, ids("Action")},
		{"items that the mapping file says", `"text": {"items": "|"}, `, `a|b`, ids("a", "b")},
		{"brackets and items that the mapping file says", `"text": {"items": "|"}, `, `[a]|[b]`, ids("[a]", "[b]")},
		{"quoted brackets and items that the mapping file says", `"text": {"items": "|"}, `, `"['a|b', 'c']"`,
			ids("a|b", "c")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := textCase{mapping: "{" + tc.text + hashed, text: "id,tags\n1," + tc.value + "\n2,x\n"}
			got, err := c.read(t, Options{})
			if want := "id=1 tags=" + tc.want + "\n"; err == nil && !strings.HasPrefix(got, want) ||
				err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, got\n%swant\n%s", err, got, want)
			}
		})
	}
	runText(t, []textCase{
		{"tabs", "f.tsv", "{" + hashed, "", "id\ttags\n1\t['a', \"b\"]\n2\t[]\n",
			"id=1 tags=" + ids("a", "b") + "\nid=2 tags=[]\n"},
		{"tabs that the mapping file says", "f.tsv", `{"text": {"delimiter": "\t", "header": true}, ` + hashed, "",
			"id\ttags\n1\t['a', \"b\"]\n2\t[]\n", "id=\"1\" tags=" + ids("a", "b") + "\nid=\"2\" tags=[]\n"},
		{"Hive's own text", "f.txt", `{` + hashed, "CREATE TABLE t (id int, tags array<string>)",
			"1\x01['a', 'b']\n2\x01[]\n", "id=1 tags=" + ids("['a', 'b']") + "\nid=2 tags=" + ids("[]") + "\n"},
	})
}

// TestColumnsThatLookLikeLists: of a column of text that looks like lists, the hint is a mapping file with which it is
// read as lists.
func TestColumnsThatLookLikeLists(t *testing.T) {
	hash := func(s string) string { return fmt.Sprint(mapping.HashString([]byte(s))) }
	many := strings.Repeat("1,7\n", 1500)
	for _, tc := range []struct{ name, file, mapping, text, want string }{
		{"brackets", "", "", "id,l\n1,\"[398056, 827037]\"\n2,[]\n3,\n4,[-5]\n", "[398056,827037] [] null [-5]"},
		{"bars", "", "", "id,l\n1,390|231|242\n2,7\n3,\n", "[390,231,242] [7] null"},
		{"semicolons", "", "", "id,l\n1,1;2\n", "[1,2]"},
		{"blanks", "", "", "id,l\n1,10 20\n2,3\n", "[10,20] [3]"},
		{"commas", "", "", "id,l\n1,\"1,2,3\"\n2,\"4,5\"\n", "[1,2,3] [4,5]"},
		{"commas in a file with tabs", "f.tsv", "", "id\tl\n1\t1,2,3\n2\t[4]\n", ""},
		{"commas between tabs", "f.tsv", "", "id\tl\n1\t1,2,3\n2\t4\n", "[1,2,3] [4]"},
		{"fractions", "", "", "id,l\n1,\"[0.5, 2]\"\n2,[1e3]\n", "[0.5,2] [1000]"},
		{"fractions between bars", "", "", "id,l\n1,0.5|2\n", "[0.5,2]"},
		{"64 bits", "", "", "id,l\n1,18446744073709551615|1\n", "[18446744073709551615,1]"},
		{"more than 64 bits", "", "", "id,l\n1,18446744073709551616|1\n",
			"[" + hash("18446744073709551616") + "," + hash("1") + "]"},
		{"nulls", "", "", "id,l\n1,\"[4, null]\"\n2,\"[None, 5]\"\n", "[4] [5]"},
		{"a word for null", "", "", "id,l\n1,1|2\n2,NA\n3,3\n", "[1,2] null [3]"},
		{"strings in quotes", "", "", "id,l\n1,\"['a', 'b']\"\n2,[]\n",
			"[" + hash("a") + "," + hash("b") + "] []"},
		{"numbers in the quotes of strings", "", "", "id,l\n1,\"['a, 0.5, b', None]\"\n",
			"[" + hash("a, 0.5, b") + "]"},
		{"strings between bars", "", "", "id,l\n1,a|b\n2,c d\n",
			"[" + hash("a") + "," + hash("b") + "] [" + hash("c d") + "]"},
		{"items that the mapping file says", "", `{"text": {"items": ";"}}`, "id,l\n1,1;2\n", "[1,2]"},
		{"after more than is looked at", "", "", "id,l\n" + many + "2,8|9\n", "[8,9]"},
		{"in the table's own words", "", "", "\"i\"\"d\",\"the \"\"l\"\"\"\n1,1|2\n", "[1,2]"},

		{"other items than the mapping file says", "", `{"text": {"items": ";"}}`, "id,l\n1,1|2\n", ""},
		{"decimal commas", "", "", "id,l\n1,\"1,5\"\n2,\"2,25\"\n", ""},
		{"thousands", "", "", "id,l\n1,\"1,234,567\"\n2,\"2,250\"\n", ""},
		{"times of the day", "", "", "id,l\n1,01.11. 10:00\n", ""},
		{"words", "", "", "id,l\n1,one two\n2,\"a, b, c\"\n", ""},
		{"a word without brackets", "", "", "id,l\n1,\"[1]\"\n2,x\n", ""},
		{"a bar in one of many texts", "", "", "id,l\n1,a|b\n2,c\n3,d\n", ""},
		{"words without quotes", "", "", "id,l\n1,\"[a, b]\"\n", ""},
		{"integers beyond float64 among fractions", "", "", "id,l\n1,\"[9007199254740993, 0.5]\"\n", ""},
		{"two bars", "", "", "id,l\n1,1||2\n", ""},
		{"a string that the mapping file says", "", `{"columns": {"l": {"type": "string"}}}`, "id,l\n1,1|2\n", ""},
		{"Hive's own text, which has no brackets", "f.txt", `{"text": {"infer": true, "columns": [` +
			`{"name": "id", "type": "int"}, {"name": "l"}]}}`, "1\x01[1]\n2\x01[3, 4]\n", ""},
		{"bars in Hive's own text", "f.txt", `{"text": {"infer": true, "items": "|", "columns": [{"name": "id", ` +
			`"type": "int"}, {"name": "l"}]}}`, "1\x013|4\n", "[3,4]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var hint string
			c := textCase{file: tc.file, mapping: tc.mapping, text: tc.text}
			if _, err := c.read(t, Options{Inferred: func(i Inferred) {
				for _, col := range i.Columns {
					hint += col.Hint
				}
			}}); err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if hint != "" {
					t.Fatal(hint)
				}
				return
			}
			found := regexp.MustCompile(`^looks like lists: (\{.*\}) in a mapping file \(--mapping\) reads them$`).
				FindStringSubmatch(hint)
			if found == nil {
				t.Fatalf("told %q", hint)
			}
			if c.mapping = found[1]; tc.mapping != "" { // beside what is there
				c.mapping = strings.TrimSuffix(tc.mapping, "}") + ", " + strings.TrimPrefix(found[1], "{")
			}
			got, err := c.read(t, Options{})
			if err != nil {
				t.Fatalf("%s: %v", c.mapping, err)
			}
			var values []string
			for line := range strings.Lines(strings.ReplaceAll(got, " =", "=")) {
				values = append(values, strings.TrimSpace(line[strings.LastIndexByte(line, '=')+1:]))
			}
			if got := strings.Join(values, " "); !strings.HasSuffix(got, tc.want) {
				t.Errorf("%s gives %s, want %s", c.mapping, got, tc.want)
			}
		})
	}
}

// TestListsThatAreNone: what is no list as it is read says how lists are read.
func TestListsThatAreNone(t *testing.T) {
	runText(t, []textCase{
		{"bars", "", `{"columns": {"l": {"type": "array<bigint>"}}}`, "", "id,l\n1,390|231|242\n",
			`"390|231|242" is no int64; {"text": {"items": "|"}} in a mapping file takes what is between "|" for ` +
				`items`},
		{"Hive's own text", "f.txt", "", "CREATE TABLE t (id int, l array<int>)", "1\x011;2\n",
			`"1;2" is no int32; {"text": {"items": ";"}} in a mapping file takes what is between ";" for items`},
		{"no numbers", "", `{"columns": {"l": {"type": "array<bigint>"}}}`, "", "id,l\n1,x y\n", `"x y" is no int64`},
		{"a kind", "", `{"columns": {"l": {"kind": "sparse"}}}`, "", "id,l\n1,\"[1, 2]\"\n",
			`values of type string cannot be sparse; in CSV and text, "type": "array<bigint>" in a mapping file ` +
				`reads lists such as [1, 2], and with {"text": {"items": "|"}} also 1|2`},
	})
}

// TestNullsInLists: null in the brackets of a list of numbers is null, as in JSON lines.
func TestNullsInLists(t *testing.T) {
	const drops = `{"columns": {"l": {"type": "array<bigint>", "nulls": "drop"}}}`
	runText(t, []textCase{
		{"dropped", "", drops, "", "id,l\n1,\"[4, null]\"\n2,\"[None , 5]\"\n3,[null]\n",
			"id=1 l=[4]\nid=2 l=[5]\nid=3 l=[]\n"},
		{"bad", "", `{"columns": {"l": {"type": "array<bigint>"}}}`, "", "id,l\n1,\"[4, null]\"\n",
			`a null inside a list; "nulls": "drop" in a mapping file leaves it out`},
		{"of fractions", "", strings.Replace(drops, "bigint", "double", 1), "", "id,l\n1,\"[0.5, null]\"\n",
			"id=1 l=[0.5]\n"},
		{"not without brackets", "", strings.Replace(drops, "{", `{"text": {"items": "|"}, `, 1), "",
			"id,l\n1,4|null\n", `"null" is no int64`},
	})
}
