package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
)

// A short sweep writes its table into the page. What is stored is near what the formula says.
func TestDedupSweep(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("before\n<!-- sweep -->\nold\n<!-- /sweep -->\nafter\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	f := flags{
		Rows: 2000, Sparse: 10, Dense: 8, Samples: []float64{1, 16.5}, Unchanged: []float64{0, 0.8}, Rounds: 1,
		BatchSize: 500,
		Dir:       t.TempDir(), Page: page, ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
	for range 2 { // what was written is replaced
		if err := f.run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); !strings.HasPrefix(s, "before\n<!-- sweep -->\n") ||
		!strings.HasSuffix(s, "<!-- /sweep -->\nafter\n") || strings.Contains(s, "old") ||
		strings.Count(s, "| 0.80 |") != 2 {
		t.Errorf("%s", s)
	}
	p, err := f.point(t.Context(), 16.5, 0.8)
	if err != nil {
		t.Fatal(err)
	}
	// Nulls repeat from session to session, so that a little more is found.
	if r := p.SlotFactor / p.Formula; r < 0.9 || r > 2 {
		t.Errorf("%+v", p)
	}
	if got := formula(16.5, 0.8); math.Abs(got-4.02) > 0.01 {
		t.Errorf("formula %v", got)
	}
}
