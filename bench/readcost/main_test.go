package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
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

// A profile becomes shares that add up to one, and a drawing with the functions of a read.
func TestFlame(t *testing.T) {
	dir := t.TempDir()
	f := flags{
		Profile: "small", Rows: 3000, Share: []float64{1}, Threads: []int{1}, Dedup: []string{"kjt"}, Rounds: 1, BatchSize: 500,
		Dir: dir, CPUProfile: filepath.Join(dir, "cpu"), Flame: filepath.Join(dir, "flame.svg"),
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	profile, err := os.ReadFile(f.CPUProfile)
	if err != nil {
		t.Fatal(err)
	}
	found, err := shares(profile)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, v := range found {
		sum += v
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("shares add up to %v", sum)
	}
	svg, err := os.ReadFile(f.Flame)
	if err != nil || !strings.Contains(string(svg), "Batch).make") || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("%v, or not a drawing of a read: %.200s", err, svg)
	}
	for n := range profile {
		if n%97 == 0 && stacks(profile[:n], func([]string, int64) {}) == nil {
			t.Errorf("the first %d bytes of a profile are taken for one", n)
		}
	}
	f.Threads = []int{1, 2}
	if err := f.run(t.Context()); err == nil {
		t.Error("a profile of two kinds of reads is made")
	}
}
