package source

import (
	"fmt"
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
