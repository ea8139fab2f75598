package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A small run ends and writes its results; the second uses the stores of the first.
func TestGrowth(t *testing.T) {
	f := flags{
		Rows: []int64{200, 400}, Sparse: 2, Dense: 3, Profiles: []string{"narrow"}, WideRows: 50, Plan: 3, Take: 10,
		Threads: 1, Rounds: 1,
		Dir: t.TempDir(), ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	for range 2 {
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "growth*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
}
