package mapping

import (
	"strings"
	"testing"
)

func TestMappingSyntax(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "nothing in it: want a JSON object",
		" \n":                                 "nothing in it: want a JSON object",
		"{\n\"columns\": {":                   "line 2: not JSON: unexpected end",
		"{\"columns\": {},\n}":                "line 2: not JSON: invalid character '}'",
		`{"text": {"columns": {}}}`:           "text.columns: object where array is wanted",
		`{"columns": {"a": {"drop": "yes"}}}`: "columns.a.drop: string where true or false is wanted",
		`{"columns": {"a": {"dim": -1}}}`:     "number from 0 on is wanted",
		"\xef\xbb\xbf" + `{"text": {"quote": "ab"}}`: "text.quote: \"ab\": want one byte",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzMapping(f *testing.F) {
	f.Add(`{"text": {"delimiter": "1"}, "columns": {"a": {"kind": "sparse", "hash": true, "type": "array<string>"}}}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = Parse([]byte(text))
	})
}
