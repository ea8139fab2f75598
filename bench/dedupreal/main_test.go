package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The tables are ingested, and their histories are found to be partial duplicates of each other: newest first and
// oldest first, ids and scores.
func TestDedupReal(t *testing.T) {
	data := os.Getenv("DSISTORE_TESTDATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "shared", "testdata")
	}
	if _, err := os.Stat(filepath.Join(data, "recsys", "derived")); err != nil {
		t.Skipf("no data sets (DSISTORE_TESTDATA): %v", err)
	}
	if testing.Short() {
		t.Skip("ingests six tables")
	}
	f := flags{Data: data, Dir: t.TempDir()}
	reports, err := f.tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Most of their slots must be partial duplicates. A basket grows at its end, the others at their head, where the
	// oldest fall off. Those of the session table begin anew with each session: few of its slots are partial duplicates
	// that are cheaper than values of few bits.
	want := map[string]float64{"movielens strict hist_item_ids": 0.8, "movielens strict hist_item_scores": 0.8,
		"movielens session hist_item_scores": 0.02, "retail basket": 0.8}
	for _, r := range reports {
		t.Logf("%s: %.1f B/row, %.1f without dedup, %v", r.Table, r.BytesPerRow, r.OffPerRow, r.Baselines)
		if r.BytesPerRow > r.OffPerRow {
			t.Errorf("%s: %.1f B/row, %.1f without dedup", r.Table, r.BytesPerRow, r.OffPerRow)
		}
		for _, x := range r.Features {
			if least, ok := want[r.Table+" "+x.Name]; ok {
				if float64(x.Partial) < least*float64(x.Slots) {
					t.Errorf("%s: %+v", r.Table, x)
				}
				delete(want, r.Table+" "+x.Name)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}
