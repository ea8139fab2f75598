package versus

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/reader"
)

// A Measure is what the rounds of one engine took.
type Measure struct {
	Engine        string
	Threads       int
	Seconds       []float64 // a round each
	Median        float64
	SamplesPerSec float64
	StoredBytes   int64   // read in an epoch
	AllocBytes    uint64  // median of a round
	TensorMBPerS  float64 // what came out, in 10^6 bytes
}

// Rounds runs an epoch of every engine in each round, in turns forwards and backwards, after one that is not counted.
// The process has as many processors as threads meanwhile. d is what Equal found.
func Rounds(ctx context.Context, d Digest, threads, rounds int, progress func(round int),
	engines ...Engine) ([]Measure, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	out := make([]Measure, len(engines))
	allocs := make([][]float64, len(engines))
	order := make([]int, len(engines))
	for i := range engines {
		order[i] = i
		out[i] = Measure{Engine: engines[i].Name(), Threads: threads}
	}
	for round := range rounds + 1 {
		if progress != nil {
			progress(round)
		}
		for _, i := range order {
			seconds, alloc, err := timed(ctx, engines[i], threads)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", engines[i].Name(), err)
			}
			if round > 0 {
				out[i].Seconds = append(out[i].Seconds, seconds)
				allocs[i] = append(allocs[i], float64(alloc))
			}
		}
		slices.Reverse(order)
	}
	for i, s := range engines {
		m := &out[i]
		m.Median = program.Median(m.Seconds)
		m.SamplesPerSec = float64(d.Rows) / m.Median
		m.AllocBytes = uint64(program.Median(allocs[i]))
		m.TensorMBPerS = float64(d.TensorBytes) / m.Median / 1e6
		var err error
		if m.StoredBytes, err = s.Bytes(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func timed(ctx context.Context, s Engine, threads int) (seconds float64, alloc uint64, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	err = s.Epoch(ctx, threads, func(*reader.Tensors, int) error { return nil })
	seconds = time.Since(start).Seconds()
	runtime.ReadMemStats(&after)
	return seconds, after.TotalAlloc - before.TotalAlloc, err
}
