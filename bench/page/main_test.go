package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/internal/browser"
)

// A short run measures the page of 20,000 features: it draws few of them.
func TestPage(t *testing.T) {
	if _, err := browser.Find(); errors.Is(err, browser.ErrNone) {
		t.Skipf("THE PAGE IS NOT MEASURED: %v", err)
	}
	f := flags{Features: []int{20_000}, Rounds: 1, ResultsFlag: program.ResultsFlag{Results: t.TempDir()}}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(f.Results, "page*.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("results %v, %v", found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Result []sizeResult }
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if r := out.Result[0]; r.Rows < 15 || r.Rows > 48 || r.Elements > 8000 || r.ReadyMillis <= 0 ||
		r.ScrollMillis <= 0 {
		t.Errorf("measured %+v", r.sample)
	}
}
