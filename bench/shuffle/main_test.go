package main

import "testing"

// A short run reads every order.
func TestShuffle(t *testing.T) {
	f := flags{
		Rows: 2000, Profile: "small", StripeRows: 256, BatchSize: 256, Share: 0.1, Windows: []int{1, 4}, Threads: 1, Rounds: 1,
		Dir: t.TempDir(), Results: t.TempDir(),
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
}
