package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// The test binary is its own child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--child=") {
		main()
		return
	}
	os.Exit(m.Run())
}

// A small run ends and writes its results; the second uses the stores of the first, in new processes.
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
		f.NewProcess = true
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "growth*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
}
