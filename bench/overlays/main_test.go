package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
)

// A small run finds the same rows through every stack of overlays, and writes its results.
func TestOverlays(t *testing.T) {
	for _, dedup := range []string{"kjt", "ikjt", "partial"} {
		f := flags{
			TableFlags: versus.TableFlags{Profile: "small", Rows: 300, Dir: t.TempDir()}, Share: 0.1,
			Stacks: []int{1, 2}, BatchSize: 100, Dedup: dedup,
			Threads: 1, Rounds: 1, ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
		}
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, err := filepath.Glob(filepath.Join(f.Results, "overlays*.json")); err != nil || len(found) != 1 {
			t.Errorf("results %v, %v", found, err)
		}
	}
}
