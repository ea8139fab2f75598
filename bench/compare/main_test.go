package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
)

// A small comparison runs to its end, twice on the same data, and writes its results.
func TestCompare(t *testing.T) {
	f := flags{
		TableFlags: versus.TableFlags{Profile: "small", Rows: 300, Dir: t.TempDir()}, Share: []float64{0.1, 1}, Threads: []int{1, 2}, Rounds: 1, BatchSize: 100, Clustered: true,
		ResultsFlag: program.ResultsFlag{Results: t.TempDir()}, IngestBytes: 1 << 28,
	}
	for range 2 {
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.KeepStore = true
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "compare*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
}
