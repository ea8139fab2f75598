package main

import (
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A short run reads every order.
func TestShuffle(t *testing.T) {
	f := flags{
		Rows: 2000, Profile: "small", StripeRows: 256, BatchSize: 256, Share: 0.1, Buffers: []int{1, 4}, Threads: 1,
		Rounds: 1,
		Dir:    t.TempDir(), ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
