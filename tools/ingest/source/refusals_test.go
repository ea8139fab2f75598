package source

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/ingest/source/column"
)

// TestRefusalsAtOnce: all columns that have no place are named by one error, with a mapping file's entries that drop
// them.
func TestRefusalsAtOnce(t *testing.T) {
	many := make([]string, 50)
	for i := range many {
		many[i] = `"k` + string(rune('a'+i/26)) + string(rune('a'+i%26)) + `":["x"]`
	}
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"two", `{"a":1,"b":["x"],"c":{"d":{},"e":2}}`, []string{"2 columns cannot be stored",
			`column "b": lists of string are not stored`, `column "c.d": a struct without members`,
			`: {"columns": {"c.d": {"drop": true}}} in a mapping file`}},
		{"one", `{"a":1,"b":["x"]}`, []string{`a.jsonl: column "b": lists of string are not stored`}},
		{"many", "{" + strings.Join(many, ",") + "}", []string{`50 columns cannot be stored`, `column "kaa"`,
			`column "kat"`, "and 30 more"}},
		{"of several types", `{"a":1,"b":2,"c":3}` + "\n" + `{"a":"x","b":true,"c":3}` + "\n" + `{"a":[]}`,
			[]string{"2 columns have values of several types",
				`column "a": line 2: a string where lines before it have a number`, `column "b": line 2: a boolean`}},
	} {
		dir := writeFiles(t, map[string]string{"a.jsonl": tc.text})
		_, err := readPath(t, filepath.Join(dir, "a.jsonl"), Options{})
		if err == nil || !errors.Is(err, column.ErrRefused) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", tc.name, err)
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", tc.name, err, want)
			}
		}
	}
}

// TestDamagedFooters: what is wrong with which file is said in plain words, whatever is wrong with its footer.
func TestDamagedFooters(t *testing.T) {
	whole := string(parquetOf(t, []string{"a"}, nil, nil))
	file := func(footer string) string {
		n := len(footer)
		return "PAR1" + footer + string([]byte{byte(n), byte(n >> 8), 0, 0}) + "PAR1"
	}
	for name, tc := range map[string]struct{ data, want string }{
		"nothing in it":     {file(""), "the Parquet footer is damaged"},
		"an empty struct":   {file("\x00"), "it does not say its"},
		"only a version":    {file("\x15\x02\x00"), "it does not say its"},
		"zeros":             {file(strings.Repeat("\x00", 100)), "it does not say its"},
		"text":              {file(strings.Repeat("some text, ", 10)), "the Parquet footer is damaged"},
		"longer than it is": {"PAR1xxxx" + "\xff\xff\xff\x7f" + "PAR1", "the Parquet footer is damaged"},
		"cut short":         {whole[:len(whole)-20], "does not end with PAR1"},
		"no metadata of a column": {file("\x15\x02\x19\x2c\x48\x01r\x15\x02\x00\x15\x02\x25\x00\x18\x01a\x00" +
			"\x16\x02\x19\x1c\x19\x1c\x00\x16\x00\x16\x02\x00\x00"), "the Parquet footer is damaged"},
	} {
		_, err := readBytes(t, "x.parquet", []byte(tc.data), Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "x.parquet: ") ||
			strings.HasPrefix(err.Error(), "footer:") {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
