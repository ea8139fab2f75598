package main

import (
	"path/filepath"
	"testing"
)

// A small run ends, its takes equal to a scan, and writes its results.
func TestTake(t *testing.T) {
	f := flags{Profile: "small", Rows: 300, Share: 0.1, Take: []int{1, 50}, Threads: 2, Rounds: 1, Dir: t.TempDir(), Results: t.TempDir()}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "take-*.json")); err != nil || len(found) != 1 {
		t.Errorf("results %v, %v", found, err)
	}
}
