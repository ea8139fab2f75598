package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsistore/dsistore/bench/jobs"
	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/usage"
)

func testFlags(t *testing.T) flags {
	return flags{
		TableFlags: versus.TableFlags{Profile: "narrow", Dir: t.TempDir()}, Jobs: 5, Days: 4, Runs: 3, RunZipf: 0.8,
		MinShare: 0.09, MaxShare: 0.11,
		FeatureZipf: 0.9, SparseFavour: 3, BatchSize: 100, Threads: 1, Rounds: 1, Latency: time.Millisecond,
		Only:     []string{"check", "pack", "cost"},
		CostRows: 200, CostReads: 1, CostBlocks: 3, ResultsFlag: program.ResultsFlag{Results: t.TempDir()},
	}
}

// A short month ends with no difference, and packs by popularity make its reads no worse.
func TestMonth(t *testing.T) {
	f := testFlags(t)
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(f.Results, "month*.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Result results }
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	r := &out.Result
	if r.Month.Compared < 100 || len(r.Month.Mismatches) != 0 || len(r.Pack.States) != 4 || len(r.Cost) != 5 {
		t.Fatalf("%+v", r)
	}
	if last := r.Month.Curve[len(r.Month.Curve)-1]; last.Traffic != 1 || last.Bytes <= 0 || last.Bytes > 1 {
		t.Errorf("all of the traffic comes from %+v", last)
	}
}

// The interval of a median has it as often as it says, but for the chance that 2,000 tries leave, and not by being
// everything.
func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, tries = 101, 2000
	missed, width := 0, 0.0
	for range tries {
		v := make([]float64, n)
		for i := range v {
			v[i] = r.ExpFloat64()
		}
		s := spreadOf(v)
		if s.Low > math.Ln2 || s.High < math.Ln2 {
			missed++
		}
		width += (s.High - s.Low) / tries
		if s.Low > s.Median || s.Median > s.High {
			t.Fatalf("%+v", s)
		}
	}
	if missed > tries/16 || width > 0.5 {
		t.Errorf("%d of %d intervals do not have the median; they are %.2f wide", missed, tries, width)
	}
	if s := spreadOf([]float64{3}); s != (spread{3, 3, 3}) {
		t.Errorf("of one value: %+v", s)
	}
}

// A record too many, as of a reader that nobody knows of, is seen in everything that counts it.
func TestCheckSeesWhatDiffers(t *testing.T) {
	ctx, f := t.Context(), testFlags(t)
	f.Only = []string{"check"}
	truth, err := workload.NewTruth(f.Options(workload.Clustered))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(ctx); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Dir, "narrow-256-0", "month")
	store, err := versus.OpenStore(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	table, err := store.Table(ctx, versus.Table)
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	list := jobs.New(truth, first, jobs.Shape{Jobs: f.Jobs, Days: f.Days, Runs: f.Runs, RunZipf: f.RunZipf,
		MinShare: f.MinShare, MaxShare: f.MaxShare,
		FeatureZipf: f.FeatureZipf, SparseFavour: f.SparseFavour, Seed: f.JobSeed}, []string{workload.ClickColumn})
	day := slices.IndexFunc(list.Jobs[0].Runs, func(n int) bool { return n > 0 })
	w, err := usage.NewWriter(table, usage.Options{Now: func() time.Time { return list.Day(day).Add(time.Hour) },
		User: list.Jobs[0].User, Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(ctx)
	snap, err := table.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	feet, err := footprintOf(ctx, snap)
	if err != nil {
		t.Fatal(err)
	}
	name := list.Jobs[0].Features[0]
	w.Add(&usage.Record{
		Key:      usage.Key{Job: list.Jobs[0].Name, User: list.Jobs[0].User, Program: "go"},
		Counters: usage.Counters{Readers: 1, Rows: 7, BytesNeeded: 5},
		Features: []usage.FeatureUse{{ID: feet.ids[name], Name: name, Readers: 1, Stripes: 1, Rows: 7, BytesNeeded: 5}},
	})
	if err := w.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	s, err := usage.Load(ctx, table, list.First, list.Day(list.Days))
	if err != nil {
		t.Fatal(err)
	}
	ran := &month{byJob: map[string]*reader.Stats{}}
	for i := range list.Jobs {
		ran.byJob[list.Jobs[i].Name] = &reader.Stats{}
	}
	var c checker
	c.check(list, feet, ran, s)
	var all strings.Builder
	for _, m := range c.found {
		all.WriteString(m.What + "\n")
	}
	for _, want := range []string{"readers\n", "rows\n", name + ": readers\n", name + ": stripes\n", name + ": rows\n",
		list.Jobs[0].Name + ": readers\n",
		list.Jobs[0].Name + ": bytes needed\n", fmt.Sprintf("day %d: readers\n", day)} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("not seen: %s", want)
		}
	}
}
