package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
)

// A small comparison runs to its end and writes its results.
func TestEmit(t *testing.T) {
	f := flags{
		TableFlags: versus.TableFlags{Profile: "small", Rows: 300, Dir: t.TempDir()}, Share: []float64{0.1, 1}, Threads: []int{1, 2}, Rounds: 1, BatchSize: 100,
		ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "emit*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
}
