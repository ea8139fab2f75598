package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
)

// A small run ends, its parts equal to what a scan of all rows selects, and writes its results.
func TestFilter(t *testing.T) {
	f := flags{
		TableFlags: versus.TableFlags{Profile: "small", Rows: 400, Dir: t.TempDir()}, Share: 0.05,
		Select: []float64{0.01, 0.3, 1}, Dedup: "kjt", Threads: 2,
		By:     []string{"session_id", "event_time", "sample", "list"},
		Rounds: 1, ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "filter*.json")); err != nil || len(found) != 1 {
		t.Errorf("results %v, %v", found, err)
	}
}
