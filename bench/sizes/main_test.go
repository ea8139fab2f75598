package main

import (
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A short run takes every step once.
func TestSteps(t *testing.T) {
	f := flags{Rows: 2000, Profile: "small", Workers: 1, Rounds: 2,
		Steps: []string{"off", "runs", "slots", "partial", "groups"}, Dir: t.TempDir(),
		ResultsFlag: program.ResultsFlag{Results: t.TempDir()}}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
