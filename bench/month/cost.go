package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/dsistore/dsistore/access"
	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/result"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/bench/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/ingest"
)

// A cost is what recording adds to a read: medians of alternating rounds, each with and without.
type cost struct {
	Read     string `json:"read"`
	Rows     uint64 `json:"rows"`
	Features int    `json:"features"`
	Reads    int    `json:"reads"` // in a round
	// Seconds and CPU of a round, without recording and with.
	Off    []float64 `json:"off_seconds"`
	On     []float64 `json:"on_seconds"`
	OffCPU []float64 `json:"off_cpu_seconds"`
	OnCPU  []float64 `json:"on_cpu_seconds"`
	// Ratio and CPURatio are the medians of the rounds' ratios, with over without.
	Ratio    float64 `json:"ratio"`
	CPURatio float64 `json:"cpu_ratio"`
}

// A measured is a read of which the cost of recording is measured.
type measured struct {
	name     string
	table    versus.TableFlags
	share    float64 // of the features; 0: three of them
	reads    int     // in a round
	anew     bool    // the store is opened and closed for each read, so that records are written for each
	features []string
}

// costs measures what recording costs: of a read as jobs do them, and of reads so small that hardly anything else is done. Where the store stays
// open, a round ends with one write for all its reads; a process writes once a minute at the most.
func (f *flags) costs(ctx context.Context) ([]cost, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	// Measuring programs record nothing, unless they are about that.
	if before, set := os.LookupEnv(access.OffVariable); set {
		defer os.Setenv(access.OffVariable, before)
	} else {
		defer os.Unsetenv(access.OffVariable)
	}
	os.Setenv(access.OffVariable, "on")
	small := versus.TableFlags{Profile: "small", Rows: f.CostRows, Seed: f.Seed, Dir: f.Dir}
	narrow := versus.TableFlags{Profile: "narrow", Seed: f.Seed, Dir: f.Dir}
	var out []cost
	for _, m := range []measured{
		{name: "10 % of the features of small, store opened and closed", table: small, share: 0.1, reads: 5, anew: true},
		{name: "10 % of the features of small, store open", table: small, share: 0.1, reads: f.CostReads},
		{name: "3 features of 256 rows, store open", table: narrow, reads: 20 * f.CostReads},
		{name: "3 features of 256 rows, store opened and closed: a record is written for each read", table: narrow, reads: 50, anew: true},
	} {
		program.Log("recording: %s", m.name)
		c, err := f.cost(ctx, m)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (f *flags) cost(ctx context.Context, m measured) (cost, error) {
	c := cost{Read: m.name, Reads: m.reads}
	truth, err := workload.NewTruth(m.table.Options(workload.Clustered))
	if err != nil {
		return c, err
	}
	dir, _, err := m.table.Store(ctx, workload.Clustered, true, ingest.Options{})
	if err != nil {
		return c, err
	}
	projected, err := versus.Project(truth, max(m.share, 1e-9), m.table.Seed)
	if err != nil {
		return c, err
	}
	for _, x := range projected {
		m.features = append(m.features, x.Name)
	}
	if m.share == 0 {
		m.features = append(m.features, workload.ClickColumn, workload.SessionColumn)
	}
	c.Features, c.Rows = len(m.features), uint64(truth.Rows())
	var ratios, byCPU []float64
	for round := range f.Rounds + 1 {
		var seconds, cpu [2]float64
		for turn := range 2 {
			on := (turn + round) % 2
			runtime.GC()
			start, used := time.Now(), result.CPUSeconds()
			if err := f.recorded(ctx, dir, &m, on == 1); err != nil {
				return c, err
			}
			seconds[on], cpu[on] = time.Since(start).Seconds(), result.CPUSeconds()-used
		}
		if round == 0 {
			continue
		}
		c.Off, c.On = append(c.Off, seconds[0]), append(c.On, seconds[1])
		c.OffCPU, c.OnCPU = append(c.OffCPU, cpu[0]), append(c.OnCPU, cpu[1])
		ratios, byCPU = append(ratios, seconds[1]/seconds[0]), append(byCPU, cpu[1]/cpu[0])
	}
	c.Ratio, c.CPURatio = median(ratios), median(byCPU)
	written, err := cleared(ctx, dir)
	if err == nil && written == 0 {
		err = errors.New("nothing was recorded")
	}
	return c, err
}

// recorded does the reads of a round. What was recorded is written before it returns.
func (f *flags) recorded(ctx context.Context, dir string, m *measured, on bool) error {
	left := m.reads
	for left > 0 {
		n := left
		if m.anew {
			n = 1
		}
		left -= n
		if err := f.opened(ctx, dir, m, n, on); err != nil {
			return err
		}
	}
	return nil
}

// opened opens the store, reads n times and closes it, which writes what is recorded.
func (f *flags) opened(ctx context.Context, dir string, m *measured, n int, on bool) (err error) {
	store, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	table, err := store.Table(ctx, versus.Table)
	if err != nil {
		return err
	}
	snap, err := table.Latest(ctx)
	if err != nil {
		return err
	}
	l, err := layoutOf(ctx, snap, m.features, f.BatchSize)
	if err != nil {
		return err
	}
	for range n {
		if _, err := drain(ctx, l, reader.Options{Workers: f.Threads, Reuse: true, Access: reader.AccessOptions{Off: !on}}); err != nil {
			return err
		}
	}
	return nil
}

// cleared takes the records away that were written, and returns how many objects they were.
func cleared(ctx context.Context, dir string) (n int, err error) {
	store, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	table, err := store.Table(ctx, versus.Table)
	if err != nil {
		return 0, err
	}
	for info, err := range store.Blobs().List(ctx, table.AccessPrefix(), "") {
		if err != nil {
			return n, err
		}
		if err := store.Blobs().Delete(ctx, info.Name); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func printCosts(costs []cost) {
	fmt.Println("\n| read | ms without recording | with | ratio | CPU ms without | with | ratio |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for i := range costs {
		c := &costs[i]
		n := 1e3 / float64(c.Reads)
		fmt.Printf("| %s | %.3f | %.3f | %.4f | %.3f | %.3f | %.4f |\n", c.Read, n*median(c.Off), n*median(c.On), c.Ratio, n*median(c.OffCPU),
			n*median(c.OnCPU), c.CPURatio)
	}
}
