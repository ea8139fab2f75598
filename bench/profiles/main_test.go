package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A small run ends and leaves a page and its results.
func TestProfiles(t *testing.T) {
	dir := t.TempDir()
	f := flags{
		Rows: 600, Weights: []float64{30}, Rounds: 1, Dir: filepath.Join(dir, "data"),
		Page: filepath.Join(dir, "page.md"), ResultsFlag: program.ResultsFlag{Results: dir},
	}
	if err := os.WriteFile(f.Page, []byte("before\n<!-- profiles -->\n<!-- /profiles -->\nafter\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Page)
	if err != nil || !strings.Contains(string(text), "| size | 125 |") || !strings.Contains(string(text), "after") {
		t.Errorf("page %s: %v", text, err)
	}
	if found, err := filepath.Glob(filepath.Join(dir, "profiles*")); err != nil || len(found) != 1 {
		t.Errorf("made %v, %v", found, err)
	}
}
