// Command growth measures whether anything grows that should not: opening, planning, the first batch, samples a second
// and rows at random places, over tables of 10^5, 10^6 and 10^7 rows of few features, and of 200 to 20,000 features, in
// alternating rounds of one process. Each round opens the store anew.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

type flags struct {
	Rows     []int64  `help:"Rows of the tables of few features." default:"100000,1000000,10000000"`
	Sparse   int      `help:"Id lists that those have." default:"2"`
	Dense    int      `help:"Numbers that those have." default:"6"`
	Profiles []string `help:"Generator's profiles of the tables of few rows." default:"narrow,wide,metawide"`
	WideRows int64    `help:"Rows of those." default:"256"`
	Plan     int      `help:"Features to read." default:"8"`
	Take     int      `help:"Rows to take at random places." default:"1000"`
	Threads  int      `help:"Threads." default:"1"`
	Memory   int64    `help:"Bytes of stripes in memory; 0: the reader's default."`
	Rounds   int      `help:"Rounds that count; one more runs before." default:"5"`
	Dir      string   `help:"Where the data lies; stores that are there are used, and dumps are removed." default:"out/growth"`
	program.ResultsFlag
}

// A sample is what one round of one table took.
type sample struct {
	OpenPlanMillis float64 `json:"open_plan_ms"`   // from nothing to a plan, its segments listed
	FirstMillis    float64 `json:"first_batch_ms"` // from there
	SamplesPerSec  float64 `json:"samples_per_second"`
	TakeMillis     float64 `json:"take_ms"` // of a new Taker
	OpenRequests   float64 `json:"open_requests"`
	FirstRequests  float64 `json:"first_requests"` // from there to the first batch, those begun ahead included
	AllocBytes     float64 `json:"alloc_bytes_a_row"`
	BytesPerRow    float64 `json:"bytes_a_row"` // read
}

// A tableResult is one table's medians.
type tableResult struct {
	Name     string `json:"name"`
	Rows     int64  `json:"rows"`
	Features int    `json:"features"` // of the table
	Read     int    `json:"read"`
	Segments int    `json:"segments"`
	sample
	Samples []sample `json:"samples"`
}

// A subject is a table to measure.
type subject struct {
	result   tableResult
	store    string
	features []workload.Feature
	digest   versus.Digest
}

func main() {
	var f flags
	program.Main(&f, "growth", "Measure what grows with a table's rows and features.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.Plan < 1 || f.Threads < 1 || f.Take < 1 {
		return errors.New("rounds, plan, threads and take: want at least 1 of each")
	}
	var subjects []*subject
	for _, n := range f.Rows {
		s, err := f.prepare(ctx, fmt.Sprintf("rows-%d", n), workload.Options{Rows: n, Sparse: f.Sparse, Dense: f.Dense,
			Order: workload.Clustered})
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	for _, p := range f.Profiles {
		s, err := f.prepare(ctx, p, workload.Options{Profile: p, Rows: f.WideRows, Order: workload.Clustered})
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	for round := range f.Rounds + 1 {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round, f.Rounds)
		for _, s := range subjects {
			m, err := f.measure(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.result.Name, err)
			}
			if round > 0 {
				s.result.Samples = append(s.result.Samples, m)
			}
		}
		slices.Reverse(subjects)
	}
	if f.Rounds%2 == 0 {
		slices.Reverse(subjects)
	}
	var results []tableResult
	for _, s := range subjects {
		s.result.sample = medians(s.result.Samples)
		results = append(results, s.result)
	}
	printResults(results)
	return f.WriteResults("growth", results)
}

// prepare makes the store of a table, unless it is there, and chooses its features.
func (f *flags) prepare(ctx context.Context, name string, o workload.Options) (*subject, error) {
	truth, err := workload.NewTruth(o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(f.Dir, name)
	s := &subject{store: filepath.Join(dir, "store")}
	s.result.Name, s.result.Rows, s.result.Features = name, truth.Rows(), len(truth.Features())
	done := filepath.Join(dir, "done") // written last
	if _, err := os.Stat(done); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %d rows of %d features\n", name, s.result.Rows, s.result.Features)
		dump, err := versus.Generate(ctx, filepath.Join(dir, "dump"), o)
		if err != nil {
			return nil, err
		}
		if _, err := versus.Ingest(ctx, s.store, dump, ingest.Options{}); err != nil {
			return nil, err
		}
		if err := errors.Join(os.RemoveAll(dump.Dir), os.WriteFile(done, nil, 0o666)); err != nil {
			return nil, err
		}
	}
	all, err := versus.Project(truth, 1, 0)
	if err != nil {
		return nil, err
	}
	for i := range min(f.Plan, len(all)) {
		s.features = append(s.features, all[i*len(all)/min(f.Plan, len(all))])
	}
	s.result.Read = len(s.features)
	// What is measured is read once for its content: every later epoch must give as much.
	s.digest, err = versus.DigestOf(ctx, &versus.StoreEngine{Dir: s.store, Features: s.features})
	if err == nil && s.digest.Rows != s.result.Rows {
		err = fmt.Errorf("%s: %d rows are read of %d", name, s.digest.Rows, s.result.Rows)
	}
	return s, err
}

func (f *flags) measure(ctx context.Context, s *subject) (m sample, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	local, err := object.NewLocal(s.store)
	if err != nil {
		return m, err
	}
	blobs := object.NewCounted(local)
	engine := versus.StoreEngine{Blobs: blobs, Features: s.features}
	start := time.Now()
	layout, closeStore, err := engine.Layout(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	planned := time.Now()
	m.OpenPlanMillis, m.OpenRequests = result.Milliseconds(planned.Sub(start)), float64(blobs.Counts().Requests())
	s.result.Segments = layout.Segments()
	sc, err := layout.Open(reader.Options{Workers: f.Threads, MemoryBudget: f.Memory, Presence: true})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, sc.Close()) }()
	ids := int64(0)
	for {
		b, err := sc.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return m, err
		}
		if m.FirstMillis == 0 {
			m.FirstMillis, m.FirstRequests = result.Milliseconds(time.Since(planned)),
				float64(blobs.Counts().Requests())-m.OpenRequests
		}
		ids += int64(len(b.Tensors.Sparse.Values) + len(b.Tensors.Weighted.Values))
		b.Release()
	}
	rows := float64(s.result.Rows)
	st := sc.Stats()
	m.SamplesPerSec = rows / time.Since(planned).Seconds()
	runtime.ReadMemStats(&after)
	m.AllocBytes = float64(after.TotalAlloc-before.TotalAlloc) / rows
	m.BytesPerRow = float64(st.BytesNeeded+st.BytesUnneeded) / rows
	if int64(st.Rows) != s.result.Rows || ids != s.digest.IDs {
		return m, fmt.Errorf("%d rows and %d ids, want %d and %d", st.Rows, ids, s.result.Rows, s.digest.IDs)
	}
	m.TakeMillis, err = f.take(ctx, layout)
	return m, err
}

// take returns how long a new Taker takes for some rows.
func (f *flags) take(ctx context.Context, layout *reader.Layout) (float64, error) {
	rng := rand.New(rand.NewPCG(1, layout.Rows()))
	rows := make([]uint64, f.Take)
	for i := range rows {
		rows[i] = rng.Uint64N(layout.Rows())
	}
	start := time.Now()
	taker, err := layout.Taker(reader.Options{Workers: f.Threads})
	if err != nil {
		return 0, err
	}
	defer taker.Close()
	b, err := taker.Take(ctx, rows)
	if err != nil {
		return 0, err
	}
	b.Release()
	return result.Milliseconds(time.Since(start)), nil
}

func medians(all []sample) sample {
	of := func(field func(sample) float64) float64 { return result.MedianOf(all, field) }
	return sample{
		OpenPlanMillis: of(func(s sample) float64 { return s.OpenPlanMillis }),
		FirstMillis:    of(func(s sample) float64 { return s.FirstMillis }),
		SamplesPerSec:  of(func(s sample) float64 { return s.SamplesPerSec }),
		TakeMillis:     of(func(s sample) float64 { return s.TakeMillis }),
		OpenRequests:   of(func(s sample) float64 { return s.OpenRequests }),
		FirstRequests:  of(func(s sample) float64 { return s.FirstRequests }),
		AllocBytes:     of(func(s sample) float64 { return s.AllocBytes }),
		BytesPerRow:    of(func(s sample) float64 { return s.BytesPerRow }),
	}
}

func printResults(all []tableResult) {
	fmt.Printf("%-16s %10s %9s %9s %10s %9s %14s %10s %9s %9s\n",
		"table", "rows", "features", "segments", "open+plan", "first", "samples/s", "take", "requests", "B read")
	for _, r := range all {
		fmt.Printf("%-16s %10d %9d %9d %7.2f ms %6.2f ms %14.0f %7.2f ms %9.0f %9.2f\n", r.Name, r.Rows, r.Features,
			r.Segments,
			r.OpenPlanMillis, r.FirstMillis, r.SamplesPerSec, r.TakeMillis, r.OpenRequests+r.FirstRequests,
			r.BytesPerRow)
	}
}
