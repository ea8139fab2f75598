package dsi

import (
	"strings"
	"testing"

	"github.com/dsistore/dsistore/tools/terminal"
)

// TestNotUTF8: names that are no text are refused; they would all become one.
func TestNotUTF8(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"tables", dir + "\xff"}, {"ingest", dir, "a\xfe", "dump"},
		{"describe", dir, "\xc3\x28"}} {
		var out, err strings.Builder
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &err); code != terminal.ExitUsage ||
			!strings.Contains(err.String(), "is not UTF-8") {
			t.Errorf("%q: exit code %d: %s", args, code, err.String())
		}
	}
}
