package main

import (
	"path/filepath"
	"testing"
)

// A small comparison runs to its end and writes its results.
func TestEmit(t *testing.T) {
	f := flags{
		Profile: "small", Rows: 300, Share: []float64{0.1, 1}, Threads: []int{1, 2}, Rounds: 1, BatchSize: 100,
		Dir: t.TempDir(), Results: t.TempDir(),
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "emit-*.json")); err != nil || len(found) == 0 {
		t.Errorf("results %v, %v", found, err)
	}
}
