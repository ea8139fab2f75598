package commandline

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each command has a man page, which says what its help says.
func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	p := &Program{Name: "prog", Description: "Tries things.", Version: "v1.2",
		Vars: map[string]string{"what": "tables"}}
	if err := p.Man(&grammar{}, dir); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, page := range pages {
		names = append(names, filepath.Base(page))
	}
	want := []string{"prog-copy.1", "prog-tables-drop.1", "prog-tables-list.1", "prog-tables.1", "prog.1"}
	if !slices.Equal(names, want) {
		t.Errorf("%s, want %s", names, want)
	}
	text, err := os.ReadFile(filepath.Join(dir, "prog-copy.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".TH \"PROG\\-COPY\" 1 \"\" \"prog v1.2\"\n", "prog\\-copy \\- Copy files\n",
		"\\fBprog copy\\fP <store> <table> <file> ... [flags]\n", ".TP\n\\fI<store>\\fP\nThe store.\n",
		"\nMore of it.\n",
		"\\fB\\-n\\fP, \\fB\\-\\-rows\\fP ROWS\nHow many rows. (default 10)\n", "\\fB\\-\\-json\\fP\nAs JSON.\n",
		".nf\nprog copy s t x\n.fi\n", "SEE ALSO\n\\fBprog\\fP(1)\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(string(text), "in\\-memory") {
		t.Error("a hidden flag is shown")
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("no groff here to read the pages")
	}
	for _, page := range pages {
		cmd := exec.Command("groff", "-man", "-ww", "-Tascii", page)
		var wrong bytes.Buffer
		cmd.Stderr = &wrong
		if out, err := cmd.Output(); err != nil || wrong.Len() > 0 || !bytes.Contains(out, []byte("[flags]")) {
			t.Errorf("%s: %v: %s\n%s", page, err, &wrong, out)
		}
	}
}

// What begins with a period or an apostrophe, or has a backslash, is no request to the formatter.
func TestRoff(t *testing.T) {
	for text, want := range map[string]string{".x": `\&.x`, "'x": `\&'x`, `a\b-c "d"`: `a\eb\-c \(dqd\(dq`,
		"a\n.b": "a\n\\&.b"} {
		if got := roff(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
