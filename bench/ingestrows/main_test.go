package main

import (
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/internal/workload"
)

// A small run ends, with rows that are equal, twice on the same data, and writes its results.
func TestIngestRows(t *testing.T) {
	f := flags{
		Workload: "small", Rows: 300, Orders: []workload.Order{workload.Clustered, workload.Interleaved},
		Workers: []int{1, 2}, Rounds: 2,
		Check: true, Dir: t.TempDir(), ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	for range 2 {
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Stream, f.MemoryMiB = true, 1
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "ingestrows*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
}
