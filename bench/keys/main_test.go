package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A small run ends and writes its results.
func TestKeys(t *testing.T) {
	f := flags{
		Segments: 12, Rows: 1000, Stripe: 400, Keys: 20, Rounds: 1, Erase: true,
		Dir: filepath.Join(t.TempDir(), "keys"), ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "keys*.json")); err != nil || len(found) != 1 {
		t.Errorf("results %v, %v", found, err)
	}
}
