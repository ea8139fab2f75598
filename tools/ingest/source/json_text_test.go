package source

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// readJSON reads JSON lines with a mapping file; empty: none.
func readJSON(t *testing.T, mapping, text string, opts Options) (string, error) {
	t.Helper()
	dir := writeFiles(t, map[string]string{"m.json": mapping, "a.jsonl": text})
	if mapping != "" {
		opts.MappingFile = filepath.Join(dir, "m.json")
	}
	chunks, err := readPath(t, filepath.Join(dir, "a.jsonl"), opts)
	return dump(chunks), err
}

// TestJSONAsText: a column to which the mapping file gives the type string takes any value, lists and objects as their
// JSON; that is what the refusal of values of several types says.
func TestJSONAsText(t *testing.T) {
	const text = `{"a": 1, "d": "x"}
{"a": 2, "d":  ["x", {"y": null}] }
{"d": {"k": "\u00e9"}, "a": 3}
{"a": 4, "d": true}
{"a": 5, "d": null}
{"a": 6, "d": 1.50}
`
	_, err := readJSON(t, "", text, Options{})
	if want := `line 2: a list where lines before it have a string; {"columns": {"d": {"type": "string"}}} in a ` +
		`mapping file takes all of them, lists and objects as their JSON`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	got, err := readJSON(t, `{"columns": {"d": {"type": "string"}}}`, text, Options{})
	const want = `a=1 d="x"
a=2 d="[\"x\", {\"y\": null}]"
a=3 d="{\"k\": \"\\u00e9\"}"
a=4 d="true"
a=5 d=null
a=6 d="1.50"
`
	if err != nil || got != want {
		t.Errorf("%v, got\n%swant\n%s", err, got, want)
	}
	got, err = readJSON(t, `{"columns": {"o.d": {"type": "string"}}}`, `{"o": {"d": [1]}}`+"\n"+`{"o": {"d": "x"}}`,
		Options{})
	if err != nil || got != "o=1 o.d=\"[1]\"\no=1 o.d=\"x\"\n" {
		t.Errorf("%v, got\n%s", err, got)
	}
	// What the refusal says works for the values of a map, too.
	const m = `{"columns": {"m": {"map": "explode"}%s}}`
	if _, err = readJSON(t, fmt.Sprintf(m, ""), `{"m": {"k": 1}}`+"\n"+`{"m": {"k": "x"}}`, Options{}); err == nil ||
		!strings.Contains(err.Error(), `{"columns": {"m.*": {"type": "string"}}}`) {
		t.Errorf("got %v", err)
	}
	got, err = readJSON(t, fmt.Sprintf(m, `, "m.*": {"type": "string"}`), `{"m": {"k": 1}}`+"\n"+`{"m": {"k": "x"}}`,
		Options{})
	if err != nil || got != "m=1 m.k=\"1\"\nm=1 m.k=\"x\"\n" {
		t.Errorf("%v, got\n%s", err, got)
	}
	// A list in a list of strings is no string.
	_, err = readJSON(t, `{"columns": {"l": {"type": "array<string>", "hash": true}}}`, `{"l": [["x"]]}`, Options{})
	if err == nil || !strings.Contains(err.Error(), "a list where the schema has string") {
		t.Errorf("got %v", err)
	}
}

// TestJSONMessages: what is wrong with a string names its column, and one list of everything says what to do.
func TestJSONMessages(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "t": "\ud83d"}`:              `line 1, column "t": half of a surrogate pair in a string`,
		`{"a": 1, "o": {"t": "\ud83d"}}`:       `line 1, column "o": half of a surrogate pair in a string`,
		`{'asin': '0001', 'price': None}`:      `Python's notation; python3 -c "import ast, json, sys;`,
		`{"asin": None}`:                       `Python's notation`,
		`[{"a": "` + strings.Repeat("x", 1000): `jq -c '.[]' FILE where the file is one list`,
	} {
		if _, err := readJSON(t, "", text, Options{Limits: column.Limits{LineBytes: 500}}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %s", text, err, want)
		}
	}
}
