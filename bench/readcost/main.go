// Command readcost says what reading costs beside the limit: samples per second of kjt and ikjt batches and of a copy
// of as many bytes, in alternating rounds of one process; CPU seconds, page faults and bytes allocated of an epoch; and
// with --cpuprofile or --flame where the time goes. An epoch opens the store anew, or with --steady begins anew with an
// open scanner.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/simd"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/ingest"
)

type flags struct {
	versus.TableFlags
	Share      []float64 `help:"Shares of the features to read." default:"0.1,1"`
	Threads    []int     `help:"Workers, and processors of the process." default:"1,2"`
	Dedup      []string  `help:"Forms of lists: kjt, ikjt, partial." default:"kjt,ikjt"`
	Rounds     int       `help:"Rounds that count; one more runs before." default:"7"`
	BatchSize  int       `help:"Rows of a batch." default:"4096"`
	Presence   bool      `help:"Also fill the presence of every value." default:"false"`
	Steady     bool      `help:"Begin epochs anew with an open scanner." default:"false"`
	CPUProfile string    `name:"cpuprofile" help:"Write a profile of as many seconds as rounds to this file, and measure nothing; of one share, form and number of threads."`
	Flame      string    `help:"Draw such a profile as a flame graph into this file."`
	program.ResultsFlag

	copies copier
}

// A report is what a run found.
type report struct {
	Profile  string `json:"profile"`
	Rows     int64  `json:"rows"`
	Seed     uint64 `json:"seed"`
	Presence bool   `json:"presence"`
	Steady   bool   `json:"steady"`
	SIMD     string `json:"simd"`
	Reads    []read `json:"reads"`
}

// A read is the rounds of one engine.
type read struct {
	Share      float64   `json:"share"`
	Dedup      string    `json:"dedup"`
	Threads    int       `json:"threads"`
	Bytes      int64     `json:"bytes"`        // of the tensors of an epoch
	Stored     int64     `json:"stored_bytes"` // read in an epoch
	Seconds    []float64 `json:"seconds"`
	CPU        []float64 `json:"cpu_seconds"`
	Copy       []float64 `json:"copy_seconds"` // of as many bytes, on one thread
	Faults     []float64 `json:"page_faults"`
	AllocBytes []float64 `json:"alloc_bytes"`
	Rate       float64   `json:"samples_per_second"`
	OfCopy     float64   `json:"of_a_copy"`     // the median of the rounds' ratios
	OfCopyCPU  float64   `json:"of_a_copy_cpu"` // by CPU seconds, which other work on the machine disturbs less
}

func main() {
	var f flags
	program.Main(&f, "readcost", "Measure what reading costs beside a copy of as many bytes.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.BatchSize < 1 || len(f.Share) == 0 || len(f.Threads) == 0 {
		return errors.New("rounds, batch-size, share and threads: want at least 1 of each")
	}
	truth, err := workload.NewTruth(f.Options(workload.Clustered))
	if err != nil {
		return err
	}
	store, _, err := f.Store(ctx, workload.Clustered, true, ingest.Options{})
	if err != nil {
		return err
	}
	rows := truth.Rows()
	rep := report{Profile: f.Profile, Rows: truth.Rows(), Seed: f.Seed, Presence: f.Presence, Steady: f.Steady,
		SIMD: simd.Level()}
	profiled := f.CPUProfile != "" || f.Flame != ""
	if profiled && len(f.Share)*len(f.Dedup)*len(f.Threads) != 1 {
		return errors.New("a profile is of one share, one form and one number of threads")
	}
	t := versus.NewTable(os.Stdout, "read", "threads", "samples/s", "of a copy", "by cpu", "MB/s", "MB read", "cpu ms",
		"page faults", "MB allocated")
	for _, share := range f.Share {
		features, err := versus.Project(truth, share, f.Seed)
		if err != nil {
			return err
		}
		for _, dedup := range f.Dedup {
			engine := &engine{StoreEngine: versus.StoreEngine{Dir: store, Features: features, BatchSize: f.BatchSize,
				Bare: !f.Presence}, steady: f.Steady}
			if engine.Dedup, err = reader.ParseDedup(dedup); err != nil {
				return err
			}
			for _, threads := range f.Threads {
				what := fmt.Sprintf("%v %% of the features into %s, %d threads", 100*share, dedup, threads)
				program.Log("%s", what)
				if profiled {
					return f.profile(ctx, engine, threads, what)
				}
				r, err := f.rounds(ctx, engine, threads, rows)
				if err != nil {
					return err
				}
				r.Share, r.Dedup, r.Threads = share, dedup, threads
				rep.Reads = append(rep.Reads, r)
				m := program.Median
				t.AppendRow([]any{
					fmt.Sprintf("%v %% %s", 100*share, dedup), threads, fmt.Sprintf("%.2f M", r.Rate/1e6),
					fmt.Sprintf("%.2f", r.OfCopy),
					fmt.Sprintf("%.2f", r.OfCopyCPU),
					fmt.Sprintf("%.0f", float64(r.Bytes)/m(r.Seconds)/1e6), fmt.Sprintf("%.2f", float64(r.Stored)/1e6),
					fmt.Sprintf("%.1f", 1e3*m(r.CPU)), fmt.Sprintf("%.0f", m(r.Faults)),
					fmt.Sprintf("%.1f", m(r.AllocBytes)/1e6),
				})
			}
		}
	}
	t.Render()
	return f.WriteResults("readcost", rep)
}

// An engine reads epochs of a store.
type engine struct {
	versus.StoreEngine
	steady bool
	open   *reader.Scanner // where steady
	close  func() error
	epoch  uint64
}

// read reads an epoch and returns the bytes of its tensors.
func (s *engine) read(ctx context.Context, threads int) (bytes int64, err error) {
	each := func(t *reader.Tensors, _ int) error { bytes += tensorBytes(t); return nil }
	if !s.steady {
		err = s.Epoch(ctx, threads, each)
		return bytes, err
	}
	if s.open == nil {
		if s.open, s.close, err = s.Open(ctx, threads); err != nil {
			return 0, err
		}
	}
	s.epoch++
	if err := s.open.Seek(reader.Position{Epoch: s.epoch}); err != nil {
		return 0, err
	}
	err = versus.Drain(ctx, s.open, func(b *reader.Batch) error { return each(b.Tensors, b.Rows) })
	return bytes, err
}

// tensorBytes returns the bytes of matrices, values, weights, lengths and inverses. Offsets follow from lengths.
func tensorBytes(t *reader.Tensors) int64 {
	n := 4*len(t.Dense.Values) + 4*len(t.Labels.Values) + 4*len(t.Inverses) + 8*len(t.Dense.Present)
	for i := range t.Embeddings {
		n += 4 * len(t.Embeddings[i].Values)
	}
	for _, j := range []*reader.Jagged{&t.Sparse, &t.Weighted, &t.Floats} {
		n += 4*len(j.Lengths) + 8*len(j.Values) + 4*len(j.FloatValues) + 4*len(j.Weights) + 8*len(j.Present)
	}
	return int64(n)
}

// rounds alternates epochs of an engine and copies of as many bytes.
func (f *flags) rounds(ctx context.Context, s *engine, threads int, rows int64) (r read, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	defer func() {
		if s.open != nil {
			err = errors.Join(err, s.close())
			s.open = nil
		}
	}()
	bytes, err := s.read(ctx, threads)
	if err != nil {
		return r, err
	}
	r.Bytes = bytes
	if r.Stored, err = s.StoreEngine.Bytes(ctx); err != nil {
		return r, err
	}
	batches := (rows + int64(f.BatchSize) - 1) / int64(f.BatchSize)
	f.copies.to = make([]byte, bytes/batches)
	var ratios, byCPU []float64
	for round := range f.Rounds + 1 {
		var copying, copyCPU, took, cpu, faults float64
		var before, after runtime.MemStats
		copy := func() error {
			from, start := program.Used(), time.Now()
			f.copies.copy(int(bytes))
			copying, copyCPU = time.Since(start).Seconds(), program.Used().CPUSeconds-from.CPUSeconds
			return ctx.Err()
		}
		read := func() error {
			runtime.ReadMemStats(&before)
			from := program.Used()
			start := time.Now()
			_, err := s.read(ctx, threads)
			took = time.Since(start).Seconds()
			to := program.Used()
			cpu, faults = to.CPUSeconds-from.CPUSeconds, to.PageFaults-from.PageFaults
			runtime.ReadMemStats(&after)
			return err
		}
		turns := []func() error{copy, read}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return r, err
			}
		}
		if round == 0 {
			continue
		}
		r.Seconds, r.CPU, r.Copy = append(r.Seconds, took), append(r.CPU, cpu), append(r.Copy, copying)
		r.Faults = append(r.Faults, faults)
		r.AllocBytes = append(r.AllocBytes, float64(after.TotalAlloc-before.TotalAlloc))
		ratios, byCPU = append(ratios, copying/took), append(byCPU, copyCPU/cpu)
	}
	r.Rate = float64(rows) / program.Median(r.Seconds)
	r.OfCopy, r.OfCopyCPU = program.Median(ratios), program.Median(byCPU)
	return r, nil
}

// A copier copies from memory that no cache holds to the memory of a batch.
type copier struct {
	from, to []byte
	at       int
}

// copied is how much memory a copier copies from, by and by: more than caches hold.
const copied = 1 << 30

func (c *copier) copy(n int) {
	if c.from == nil {
		c.from = make([]byte, copied)
		for i := 0; i < len(c.from); i += 512 {
			c.from[i] = byte(i >> 9)
		}
	}
	for n > 0 {
		k := copy(c.to[:min(n, len(c.to))], c.from[c.at:])
		n -= k
		c.at = (c.at + k) % len(c.from)
	}
}

// profile reads epochs for as many seconds as rounds under the profiler, prints the share of each part of a read and
// writes what is asked for.
func (f *flags) profile(ctx context.Context, s *engine, threads int, what string) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	if _, err := s.read(ctx, threads); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := pprof.StartCPUProfile(&out); err != nil {
		return err
	}
	var err error
	for start := time.Now(); err == nil && time.Since(start) < time.Duration(f.Rounds)*time.Second; {
		_, err = s.read(ctx, threads)
	}
	pprof.StopCPUProfile()
	if s.open != nil {
		err = errors.Join(err, s.close())
	}
	if err != nil {
		return err
	}
	share, err := shares(out.Bytes())
	if err != nil {
		return err
	}
	t := versus.NewTable(os.Stdout, what, "of the time")
	for i, p := range parts {
		t.AppendRow([]any{p.name, fmt.Sprintf("%.1f %%", 100*share[i])})
	}
	t.Render()
	if f.CPUProfile != "" {
		if err := os.WriteFile(f.CPUProfile, out.Bytes(), 0o666); err != nil {
			return err
		}
	}
	if f.Flame == "" {
		return nil
	}
	var svg bytes.Buffer
	if err := writeFlame(&svg, out.Bytes(), what); err != nil {
		return err
	}
	return os.WriteFile(f.Flame, svg.Bytes(), 0o666)
}
