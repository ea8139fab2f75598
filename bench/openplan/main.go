// Command openplan measures what a job pays before its first byte of data: opening a table and planning ten features in
// a new process, at 200 features and at 20,000. The two must be alike: the cost follows the projection, not the table.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	Narrow string `help:"Profile of the smaller table." default:"narrow"`
	Wide   string `help:"Profile of the larger table." default:"metawide"`
	Plan   int    `help:"Features to plan." default:"10"`
	Rounds int    `help:"New processes for each table." default:"15"`
	Warm   bool   `help:"Leave the store's files in the page cache between rounds."`
	Dir    string `help:"Where the data lies; dumps that are there already are used." default:"out/openplan"`
	program.ResultsFlag
	Child []string `help:"Internal: the store and the features of one measurement." hidden:""`
}

// A sample is what one process measured.
type sample struct {
	OpenPlanMillis float64 `json:"open_plan_ms"` // from the process's first statement to a plan whose stripes are known
	ReadMillis     float64 `json:"read_ms"`      // from there to the last batch
	ProcessMillis  float64 `json:"process_ms"`   // from before the process began to after it ended
	Requests       int64   `json:"requests"`     // of open and plan
	Bytes          int64   `json:"bytes"`
	Allocs         uint64  `json:"allocs"`
	AllocBytes     uint64  `json:"alloc_bytes"`
}

// A tableResult is one table's medians.
type tableResult struct {
	Profile  string `json:"profile"`
	Features int    `json:"features"`
	Rows     int64  `json:"rows"`
	sample
	Samples []sample `json:"samples"`
}

func main() {
	start := time.Now()
	var f flags
	program.Main(&f, "openplan", "Measure opening a table and planning ten features, at 200 and at 20,000 features, "+
		"each in a new process.", func(ctx context.Context) error {
		if len(f.Child) > 1 {
			return child(ctx, start, f.Child[0], f.Child[1:])
		}
		return f.run(ctx)
	})
}

// child measures once and prints the sample as JSON.
func child(ctx context.Context, start time.Time, dir string, features []string) (err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	local, err := object.NewLocal(dir)
	if err != nil {
		return err
	}
	blobs := object.NewCounted(local)
	engine := versus.StoreEngine{Blobs: blobs}
	for _, name := range features {
		engine.Features = append(engine.Features, workload.Feature{Name: name})
	}
	layout, closeStore, err := engine.Layout(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	// The cost of a plan is known once the segments' indexes have been asked for its features.
	if _, err := layout.Cost(ctx, reader.Options{}); err != nil {
		return err
	}
	planned := time.Now()
	runtime.ReadMemStats(&after)
	counts := blobs.Counts()
	sc, err := layout.Open(reader.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sc.Close()) }()
	for range sc.Batches() {
		b, err := sc.Next(ctx)
		if err != nil {
			return err
		}
		b.Release()
	}
	return json.NewEncoder(os.Stdout).Encode(sample{
		OpenPlanMillis: result.Milliseconds(planned.Sub(start)), ReadMillis: result.Milliseconds(time.Since(planned)),
		Requests: counts.Requests(), Bytes: counts.BytesRead,
		Allocs: after.Mallocs - before.Mallocs, AllocBytes: after.TotalAlloc - before.TotalAlloc,
	})
}

// A subject is a table to measure.
type subject struct {
	result tableResult
	store  string
	names  []string
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.Plan < 1 {
		return errors.New("rounds and plan: want at least 1 of each")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var subjects []*subject
	for _, profile := range []string{f.Narrow, f.Wide} {
		s, err := f.prepare(ctx, profile)
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	for range f.Rounds {
		for _, s := range subjects {
			if !f.Warm {
				if err := evict(s.store); err != nil {
					return err
				}
			}
			m, err := measure(ctx, self, s)
			if err != nil {
				return err
			}
			s.result.Samples = append(s.result.Samples, m)
		}
	}
	var results []tableResult
	for _, s := range subjects {
		s.result.sample = medians(s.result.Samples)
		results = append(results, s.result)
	}
	printResults(results)
	return f.WriteResults("openplan", results)
}

// prepare makes the table of a profile and chooses its features.
func (f *flags) prepare(ctx context.Context, profile string) (*subject, error) {
	o := workload.Options{Profile: profile}
	truth, err := workload.NewTruth(o)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "%s: %d columns\n", profile, len(truth.Features()))
	dump, err := versus.Generate(ctx, filepath.Join(f.Dir, profile, "dump"), o)
	if err != nil {
		return nil, err
	}
	s := &subject{store: filepath.Join(f.Dir, profile, "store")}
	s.result.Profile, s.result.Features, s.result.Rows = profile, dump.Features, dump.Rows
	if _, err := versus.Ingest(ctx, s.store, dump, ingest.Options{}); err != nil {
		return nil, err
	}
	fs, err := versus.Project(truth, 1, 0)
	if err != nil {
		return nil, err
	}
	for i := range min(f.Plan, len(fs)) {
		s.names = append(s.names, fs[i*len(fs)/f.Plan].Name)
	}
	return s, nil
}

// evict asks the system to forget the cached content of the files under dir. It is a request: the system may decline.
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

func measure(ctx context.Context, self string, s *subject) (m sample, err error) {
	cmd := exec.CommandContext(ctx, self, "--child="+strings.Join(append([]string{s.store}, s.names...), ","))
	cmd.Stderr = os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return m, fmt.Errorf("%s: %w", s.result.Profile, err)
	}
	err = json.Unmarshal(out, &m)
	m.ProcessMillis = result.Milliseconds(time.Since(start))
	return m, err
}

func medians(all []sample) sample {
	of := func(field func(sample) float64) float64 { return result.MedianOf(all, field) }
	return sample{
		OpenPlanMillis: of(func(s sample) float64 { return s.OpenPlanMillis }),
		ReadMillis:     of(func(s sample) float64 { return s.ReadMillis }),
		ProcessMillis:  of(func(s sample) float64 { return s.ProcessMillis }),
		Requests:       int64(of(func(s sample) float64 { return float64(s.Requests) })),
		Bytes:          int64(of(func(s sample) float64 { return float64(s.Bytes) })),
		Allocs:         uint64(of(func(s sample) float64 { return float64(s.Allocs) })),
		AllocBytes:     uint64(of(func(s sample) float64 { return float64(s.AllocBytes) })),
	}
}

func printResults(r []tableResult) {
	line := func(name, format string, field func(tableResult) float64) {
		a, b := field(r[0]), field(r[1])
		fmt.Printf("%-28s "+format+" "+format+"   %.2fx\n", name, a, b, b/a)
	}
	fmt.Printf("%-28s %12s %12s   ratio\n", "medians", r[0].Profile, r[1].Profile)
	line("columns", "%12.0f", func(t tableResult) float64 { return float64(t.Features) })
	line("open + plan, ms", "%12.2f", func(t tableResult) float64 { return t.OpenPlanMillis })
	line("+ read the rows, ms", "%12.2f", func(t tableResult) float64 { return t.OpenPlanMillis + t.ReadMillis })
	line("whole process, ms", "%12.2f", func(t tableResult) float64 { return t.ProcessMillis })
	line("requests of open + plan", "%12.0f", func(t tableResult) float64 { return float64(t.Requests) })
	line("bytes read by open + plan", "%12.0f", func(t tableResult) float64 { return float64(t.Bytes) })
	line("allocations", "%12.0f", func(t tableResult) float64 { return float64(t.Allocs) })
	line("bytes allocated", "%12.0f", func(t tableResult) float64 { return float64(t.AllocBytes) })
}
