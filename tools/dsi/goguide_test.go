package dsi

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/internal/race"
	"github.com/dsistore/dsistore/tools/terminal"
)

// TestGoGuide compiles the program of docs/guide/go.md in a module of its own, and runs it on a table.
func TestGoGuide(t *testing.T) {
	if race.Enabled {
		t.Skip("not under the race detector: the program is not compiled with it")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(read("docs/guide/go.md"), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d programs, want 1", len(blocks))
	}
	dir := t.TempDir()
	// The requirements are ours: go mod tidy would look for newer ones, in the network.
	module := bytes.Replace(read("go.mod"), []byte("module github.com/dsistore/dsistore\n"),
		[]byte("module example.com/train\n"), 1)
	for name, text := range map[string][]byte{"main.go": blocks[0][1], "go.mod": module, "go.sum": read("go.sum")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOWORK=off", "DSISTORE_USAGE=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	run("go", "mod", "edit", "-require", "github.com/dsistore/dsistore@v0.0.0",
		"-replace", "github.com/dsistore/dsistore="+root)
	run("go", "vet", "-tags", "pebblegozstd,grpcnotrace", "-mod=mod", ".")
	run("go", "build", "-tags", "pebblegozstd,grpcnotrace", "-mod=mod", "-o", "train", ".")
	for _, args := range [][]string{{"generate", filepath.Join(dir, "dump"), "--rows", "3000"},
		{"ingest", filepath.Join(dir, "store"), "ads", filepath.Join(dir, "dump"), "--session-key", "session_id"}} {
		var out, errs strings.Builder
		if code := Run(t.Context(), args, strings.NewReader(""), &out, &errs); code != terminal.ExitDone {
			t.Fatalf("dsi %q: exit code %d: %s", args, code, errs.String())
		}
	}
	out := run(filepath.Join(dir, "train"), "store", "ads")
	for _, want := range []string{`(?m)^rows \d+, session \d+`, `(?m)^dense 1024x1, features 14, lists \d+, ids \d+$`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the program printed no %s:\n%s", want, out)
		}
	}
}
