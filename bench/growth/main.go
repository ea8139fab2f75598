// Command growth measures whether anything grows that should not: opening, planning, the first batch, samples/s and
// rows at random positions, over tables of 10^5, 10^6 and 10^7 rows with few features, and of 200 to 20,000 features,
// in alternating rounds. Each round opens the store anew, with --new-process in a new process and without the page
// cache: what a job pays before its first byte of data.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/ingest"
)

type flags struct {
	Rows       []int64  `help:"Rows of the tables of few features." default:"100000,1000000,10000000"`
	Sparse     int      `help:"Id lists that those have." default:"2"`
	Dense      int      `help:"Numbers that those have." default:"6"`
	Profiles   []string `help:"Generator's profiles of the tables of few rows." default:"narrow,wide,metawide"`
	WideRows   int64    `help:"Rows of those." default:"256"`
	Plan       int      `help:"Features to read." default:"8"`
	Take       int      `help:"Rows to take at random positions." default:"1000"`
	Threads    int      `help:"Threads." default:"1"`
	Memory     int64    `help:"Bytes of stripes in memory; 0: the reader's default."`
	Rounds     int      `help:"Rounds that count; one more runs before." default:"5"`
	NewProcess bool     `help:"Measure each round of a table in a new process, and fetch the indexes of its segments when planning."`
	Warm       bool     `help:"With --new-process: keep the store's files in the page cache between rounds."`
	Dir        string   `help:"Where the data lies; stores that are there are used, and dumps are removed." default:"out/growth"`
	program.ResultsFlag
	Child []string `help:"Internal: the store and the features of one measurement." hidden:""`
}

// A sample is what one round of one table took.
type sample struct {
	OpenPlanMillis float64 `json:"open_plan_ms"`   // from nothing to a plan, its segments listed
	FirstMillis    float64 `json:"first_batch_ms"` // from there
	SamplesPerSec  float64 `json:"samples_per_second"`
	TakeMillis     float64 `json:"take_ms"` // of a new Taker
	OpenRequests   float64 `json:"open_requests"`
	OpenBytes      float64 `json:"open_bytes"`
	OpenAllocs     float64 `json:"open_allocs"`
	OpenAllocBytes float64 `json:"open_alloc_bytes"`
	FirstRequests  float64 `json:"first_requests"` // from there to the first batch, those begun ahead included
	AllocBytes     float64 `json:"alloc_bytes_per_row"`
	BytesPerRow    float64 `json:"bytes_per_row"`        // read
	ProcessMillis  float64 `json:"process_ms,omitempty"` // with NewProcess: from before it began to after it ended
	Segments       float64 `json:"segments"`
	IDs            int64   `json:"ids"`
}

// A tableResult is one table's medians.
type tableResult struct {
	Name     string `json:"name"`
	Rows     int64  `json:"rows"`
	Features int    `json:"features"` // of the table
	Read     int    `json:"read"`
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
	start := time.Now()
	program.Main(&f, "growth", "Measure what grows with a table's rows and features.", func(ctx context.Context) error {
		if len(f.Child) < 2 {
			return f.run(ctx)
		}
		m, err := f.measure(ctx, start, f.Child[0], f.Child[1:])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(m)
	})
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
			m, err := f.round(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.result.Name, err)
			}
			if m.IDs != s.digest.IDs {
				return fmt.Errorf("%s: %d ids, want %d", s.result.Name, m.IDs, s.digest.IDs)
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

// round measures a table once.
func (f *flags) round(ctx context.Context, s *subject) (m sample, err error) {
	names := make([]string, len(s.features))
	for i, x := range s.features {
		names[i] = x.Name
	}
	if !f.NewProcess {
		return f.measure(ctx, time.Now(), s.store, names)
	}
	if !f.Warm {
		if err := evict(s.store); err != nil {
			return m, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	cmd := exec.CommandContext(ctx, self, "--child="+strings.Join(append([]string{s.store}, names...), ","),
		"--new-process", fmt.Sprint("--take=", f.Take), fmt.Sprint("--threads=", f.Threads),
		fmt.Sprint("--memory=", f.Memory))
	cmd.Stderr = os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(out, &m)
	m.ProcessMillis = program.Milliseconds(time.Since(start))
	return m, err
}

// evict asks the system to drop the files under dir from the page cache. It may decline.
func evict(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(forget(file), file.Close())
	})
}

// measure opens a store, plans and reads the features.
func (f *flags) measure(ctx context.Context, start time.Time, dir string, features []string) (m sample, err error) {
	var before, opened, after runtime.MemStats
	if !f.NewProcess {
		runtime.GC()
		start = time.Now()
	}
	runtime.ReadMemStats(&before)
	local, err := object.NewLocal(dir)
	if err != nil {
		return m, err
	}
	blobs := object.NewCounted(local)
	engine := versus.StoreEngine{Blobs: blobs}
	for _, name := range features {
		engine.Features = append(engine.Features, workload.Feature{Name: name})
	}
	layout, closeStore, err := engine.Layout(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	if f.NewProcess {
		// Needs the stripes of all segments.
		if _, err := layout.Cost(ctx, reader.Options{}); err != nil {
			return m, err
		}
	}
	planned, counts := time.Now(), blobs.Counts()
	runtime.ReadMemStats(&opened)
	m.OpenPlanMillis, m.OpenRequests = program.Milliseconds(planned.Sub(start)), float64(counts.Requests())
	m.OpenBytes, m.OpenAllocs = float64(counts.BytesRead), float64(opened.Mallocs-before.Mallocs)
	m.Segments, m.OpenAllocBytes = float64(layout.Segments()), float64(opened.TotalAlloc-before.TotalAlloc)
	planned = time.Now()
	sc, err := layout.Open(reader.Options{Workers: f.Threads, MemoryBudget: f.Memory, Presence: true})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, sc.Close()) }()
	err = versus.Drain(ctx, sc, func(b *reader.Batch) error {
		if m.FirstMillis == 0 {
			m.FirstMillis, m.FirstRequests = program.Milliseconds(time.Since(planned)),
				float64(blobs.Counts().Requests())-m.OpenRequests
		}
		m.IDs += int64(len(b.Tensors.Sparse.Values) + len(b.Tensors.Weighted.Values))
		return nil
	})
	if err != nil {
		return m, err
	}
	rows, st := float64(layout.Rows()), sc.Stats()
	m.SamplesPerSec = rows / time.Since(planned).Seconds()
	runtime.ReadMemStats(&after)
	m.AllocBytes = float64(after.TotalAlloc-before.TotalAlloc) / rows
	m.BytesPerRow = float64(st.BytesNeeded+st.BytesUnneeded) / rows
	if st.Rows != layout.Rows() {
		return m, fmt.Errorf("%d rows, want %d", st.Rows, layout.Rows())
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
	return program.Milliseconds(time.Since(start)), nil
}

func medians(all []sample) sample {
	of := func(field func(sample) float64) float64 { return program.MedianOf(all, field) }
	return sample{
		OpenPlanMillis: of(func(s sample) float64 { return s.OpenPlanMillis }),
		FirstMillis:    of(func(s sample) float64 { return s.FirstMillis }),
		SamplesPerSec:  of(func(s sample) float64 { return s.SamplesPerSec }),
		TakeMillis:     of(func(s sample) float64 { return s.TakeMillis }),
		OpenRequests:   of(func(s sample) float64 { return s.OpenRequests }),
		OpenBytes:      of(func(s sample) float64 { return s.OpenBytes }),
		OpenAllocs:     of(func(s sample) float64 { return s.OpenAllocs }),
		OpenAllocBytes: of(func(s sample) float64 { return s.OpenAllocBytes }),
		FirstRequests:  of(func(s sample) float64 { return s.FirstRequests }),
		AllocBytes:     of(func(s sample) float64 { return s.AllocBytes }),
		BytesPerRow:    of(func(s sample) float64 { return s.BytesPerRow }),
		Segments:       of(func(s sample) float64 { return s.Segments }),
		ProcessMillis:  of(func(s sample) float64 { return s.ProcessMillis }),
	}
}

func printResults(all []tableResult) {
	fmt.Printf("%-16s %10s %9s %9s %10s %9s %14s %10s %9s %9s %9s %9s %9s\n", "table", "rows", "features", "segments",
		"open+plan", "first", "samples/s", "take", "requests", "open", "open kB", "B/row", "process")
	for _, r := range all {
		fmt.Printf("%-16s %10d %9d %9.0f %7.2f ms %6.2f ms %14.0f %7.2f ms %9.0f %9.0f %9.1f %9.2f %6.2f ms\n", r.Name,
			r.Rows,
			r.Features, r.Segments, r.OpenPlanMillis, r.FirstMillis, r.SamplesPerSec, r.TakeMillis,
			r.OpenRequests+r.FirstRequests, r.OpenRequests, r.OpenBytes/1e3, r.BytesPerRow, r.ProcessMillis)
	}
}
