package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
)

// A small run ends, its takes equal to a scan, and writes its results.
func TestTake(t *testing.T) {
	f := flags{TableFlags: versus.TableFlags{Profile: "small", Rows: 300, Dir: t.TempDir()}, Share: 0.1,
		Take: []int{1, 50}, Threads: 2, Rounds: 1, ResultsFlag: program.ResultsFlag{Results: t.TempDir()}}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "take*.json")); err != nil || len(found) != 1 {
		t.Errorf("results %v, %v", found, err)
	}
}
