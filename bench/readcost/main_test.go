package main

import (
	"path/filepath"
	"testing"
)

// A small run comes to its end in every form, and again with what it left, and writes its results.
func TestReadcost(t *testing.T) {
	f := flags{
		Profile: "small", Rows: 300, Share: []float64{0.1, 1}, Threads: []int{1, 2}, Dedup: []string{"kjt", "ikjt", "windowed"},
		Rounds: 1, BatchSize: 100, Dir: t.TempDir(), Results: t.TempDir(),
	}
	for range 2 {
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Steady, f.Presence = true, true
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "readcost-*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
	f.Dedup = []string{"none"}
	if err := f.run(t.Context()); err == nil {
		t.Error("an unknown form is taken")
	}
}
