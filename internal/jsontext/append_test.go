package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// standard is what encoding/json makes of s.
func standard(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestStringsAreThoseOfEncodingJSON(t *testing.T) {
	all := []string{"", "user_history_00000", "<a&b>", "ä\u2028\u2029\uFFFD日本😀", "\xff", "a\xc3", "\xed\xa0\x80", `"\/`}
	for c := range 256 {
		all = append(all, string([]byte{byte(c)}), string([]byte{'x', byte(c), 'y'}))
	}
	for _, s := range all {
		if got, want := string(AppendString(nil, s)), standard(t, s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func FuzzString(f *testing.F) {
	f.Add("a\x00\xff\u2028\"")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := string(AppendString(nil, s)), standard(t, s); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	})
}

func TestMembers(t *testing.T) {
	b := append(AppendUint(AppendText([]byte("{"), "a", "x\n"), "b", 1<<64-1), '}')
	if want := `{"a":"x\n","b":18446744073709551615}`; string(b) != want {
		t.Errorf("%s, want %s", b, want)
	}
}
