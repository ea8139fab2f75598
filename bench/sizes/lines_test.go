package main

import (
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
)

// All stored bytes are accounted for, and no family takes less than its lower bound.
func TestLines(t *testing.T) {
	f := flags{Rows: 2000, Profile: "small", Features: true, Workers: 1, Rounds: 1, Steps: []string{"groups"},
		Dir: t.TempDir(), ResultsFlag: program.ResultsFlag{Results: t.TempDir()}}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	dump, err := versus.Generate(t.Context(), f.Dir+"/dump", workload.Options{Profile: f.Profile, Rows: f.Rows})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := f.lines(t.Context(), f.Dir+"/store", dump, 1e6)
	if err != nil {
		t.Fatal(err)
	}
	all := lines[len(lines)-1]
	if got := all.Stored.total(); got < 1e6-1 || got > 1e6+1 {
		t.Errorf("%v bytes/row in all, want what was given", got)
	}
	if all.Stored["dictionary"] <= 0 || all.Stored["values"] < all.Bound["values"]/2 ||
		all.Stored.total() < all.Bound.total() {
		t.Errorf("stored %v, lower bound %v", all.Stored, all.Bound)
	}
}
