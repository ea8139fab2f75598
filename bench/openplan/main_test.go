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

// A short run measures both tables in processes of their own.
func TestOpenPlan(t *testing.T) {
	f := flags{Narrow: "narrow", Wide: "narrow", Plan: 10, Rounds: 2, Dir: t.TempDir(),
		ResultsFlag: program.ResultsFlag{Results: t.TempDir()}}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "openplan*.json")); err != nil || len(found) != 1 {
		t.Errorf("results %v, %v", found, err)
	}
}
