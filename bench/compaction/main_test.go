package main

import (
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A short run makes every table and compares them.
func TestCompaction(t *testing.T) {
	f := flags{Rows: 600, Profile: "narrow", Ingests: 6, Share: 0.1, Threads: 1, Rounds: 1, Dir: t.TempDir(),
		ResultsFlag: program.ResultsFlag{Results: t.TempDir()}}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
