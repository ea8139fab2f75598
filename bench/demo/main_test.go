package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The demo runs to its end on a small table and leaves its store where it says.
func TestDemo(t *testing.T) {
	f := flags{Dir: t.TempDir(), Rows: 400, Share: 0.1, Rounds: 1, Dsi: "dsi"}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, "store", "tables")); err != nil {
		t.Error(err)
	}
	if err := (&flags{Dir: t.TempDir(), Rows: -1, Share: 0.1, Rounds: 1}).run(t.Context()); err == nil {
		t.Error("a negative number of rows was accepted")
	}
}
