package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
)

// A small run comes to its end in every form, and again with what it left, and writes its results.
func TestReadcost(t *testing.T) {
	f := flags{
		TableFlags: versus.TableFlags{Profile: "small", Rows: 300, Dir: t.TempDir()}, Share: []float64{0.1, 1},
		Threads: []int{1, 2}, Dedup: []string{"kjt", "ikjt", "partial"},
		Rounds: 1, BatchSize: 100, ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	for range 2 {
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Steady, f.Presence = true, true
	}
	if found, err := filepath.Glob(filepath.Join(f.Results, "readcost*.json")); err != nil || len(found) == 0 {
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
		TableFlags: versus.TableFlags{Profile: "small", Rows: 3000, Dir: dir}, Share: []float64{1}, Threads: []int{1},
		Dedup: []string{"kjt"}, Rounds: 1, BatchSize: 500,
		CPUProfile: filepath.Join(dir, "cpu"), Flame: filepath.Join(dir, "flame.svg"),
	}
	var profile, svg []byte
	for range 10 { // a profile of a busy machine has few samples
		err := f.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if profile, err = os.ReadFile(f.CPUProfile); err != nil {
			t.Fatal(err)
		}
		if svg, err = os.ReadFile(f.Flame); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(svg), "Batch).make") {
			break
		}
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
	if !strings.Contains(string(svg), "Batch).make") || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("not a drawing of a read: %.200s", svg)
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
