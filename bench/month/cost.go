package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/usage"
)

// A cost is what recording adds to a read. Blocks of reads take turns: without recording, once more without, and with.
// The second of these is there to show what differs where nothing does.
type cost struct {
	Read     string `json:"read"`
	Rows     uint64 `json:"rows"`
	Features int    `json:"features"`
	Reads    int    `json:"reads"` // in a block
	// Off, Again and On are processor seconds of a read, in each of the blocks, which are in the order of their turns.
	Off   []float64 `json:"off_cpu_seconds"`
	Again []float64 `json:"off_again_cpu_seconds"`
	On    []float64 `json:"on_cpu_seconds"`
	// Null and Adds are the medians of the differences to Off of the same turn, with what they are in 95 of 100 such
	// runs at least.
	Null spread `json:"null_seconds"`
	Adds spread `json:"adds_seconds"`
	// OffAllocated and OnAllocated are the bytes and allocations of a read, the medians of blocks: what the garbage
	// collector will have to do.
	OffAllocated allocated `json:"off_allocated"`
	OnAllocated  allocated `json:"on_allocated"`
	// Write is the processor seconds of writing what was recorded, where the store stays open: a process does so once a
	// minute at the most.
	Write float64 `json:"write_cpu_seconds,omitempty"`
}

// A spread is a median, and an interval that has it in 95 of 100 runs at least, whatever the distribution is.
type spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spreadOf returns the spread of values. The interval's ends are order statistics: of n values less than k lie below
// the median as rarely as of n coins less than k show heads.
func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	k, below, p := 0, 0.0, math.Pow(0.5, float64(n)) // p is the probability of k heads
	for k < n/2 && below+p <= 0.025 {
		below += p
		p *= float64(n-k) / float64(k+1)
		k++
	}
	k = max(k-1, 0)
	return spread{program.Median(v), v[k], v[n-1-k]}
}

type allocated struct {
	Bytes float64 `json:"bytes"`
	Count float64 `json:"count"`
}

// A measured is a read of which the cost of recording is measured.
type measured struct {
	name     string
	table    versus.TableFlags
	share    float64 // of the features; 0: three of them
	reads    int     // in a block
	anew     bool    // the store is opened and closed for each read, so that records are written for each
	features []string
}

// costs measures what recording costs: of a read as jobs do them, and of reads so small that hardly anything else is
// done.
func (f *flags) costs(ctx context.Context) ([]cost, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(f.Threads))
	// Measuring programs record nothing, unless they are about that.
	if before, set := os.LookupEnv(usage.OffVariable); set {
		defer os.Setenv(usage.OffVariable, before)
	} else {
		defer os.Unsetenv(usage.OffVariable)
	}
	os.Setenv(usage.OffVariable, "on")
	small := versus.TableFlags{Profile: "small", Rows: f.CostRows, Seed: f.Seed, Dir: f.Dir}
	narrow := versus.TableFlags{Profile: "narrow", Seed: f.Seed, Dir: f.Dir}
	var out []cost
	for _, m := range []measured{
		{name: "10 % of the features of small, store open", table: small, share: 0.1, reads: f.CostReads},
		{name: "all features of small, store open", table: small, share: 1, reads: max(f.CostReads/4, 1)},
		{name: "3 features of 256 rows, store open", table: narrow, reads: 100 * f.CostReads},
		{name: "10 % of the features of small, store opened and closed: a record is written for each read",
			table: small, share: 0.1, reads: f.CostReads, anew: true},
		{name: "3 features of 256 rows, store opened and closed: a record is written for each read", table: narrow,
			reads: 10 * f.CostReads, anew: true},
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

// The arms of a comparison: without recording, once more, and with.
const arms = 3

func (f *flags) cost(ctx context.Context, m measured) (c cost, err error) {
	c = cost{Read: m.name, Reads: m.reads}
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

	// The same layout, of one open store, for all arms; or each read with a store of its own.
	read := func(on bool) error { return f.opened(ctx, dir, &m, on) }
	if !m.anew {
		var store *storage.Store
		var l *reader.Layout
		if store, l, err = f.open(ctx, dir, &m); err != nil {
			return c, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		read = func(on bool) error { return f.drained(ctx, l, on) }
	}
	written := 0
	values, sizes, counts := [arms][]float64{}, [arms][]float64{}, [arms][]float64{}
	for block := range f.CostBlocks + 1 { // the first warms up
		for turn := range arms {
			arm := (turn + block) % arms
			used, memory, err := usedBy(func() error {
				for range m.reads {
					if err := read(arm == arms-1); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return c, err
			}
			if m.anew && arm == arms-1 { // so many objects that it matters are in no store
				n, err := cleared(ctx, dir)
				if err != nil {
					return c, err
				}
				written += n
			}
			if block > 0 {
				values[arm] = append(values[arm], used/float64(m.reads))
				sizes[arm] = append(sizes[arm], memory.Bytes/float64(m.reads))
				counts[arm] = append(counts[arm], memory.Count/float64(m.reads))
			}
		}
	}
	c.Off, c.Again, c.On = values[0], values[1], values[2]
	null, adds := make([]float64, len(c.Off)), make([]float64, len(c.Off))
	for i, off := range c.Off {
		null[i], adds[i] = c.Again[i]-off, c.On[i]-off
	}
	c.Null, c.Adds = spreadOf(null), spreadOf(adds)
	c.OffAllocated, c.OnAllocated = allocated{program.Median(sizes[0]), program.Median(counts[0])},
		allocated{program.Median(sizes[2]), program.Median(counts[2])}
	if !m.anew {
		var writes []float64
		for range 11 {
			if err := read(true); err != nil {
				return c, err
			}
			used, _, err := usedBy(func() error {
				usage.FlushAll(ctx)
				return nil
			})
			if err != nil {
				return c, err
			}
			writes = append(writes, used)
		}
		c.Write = program.Median(writes)
	}
	n, err := cleared(ctx, dir)
	if err == nil && written+n == 0 {
		err = errors.New("nothing was recorded")
	}
	return c, err
}

// usedBy returns what f took of the processors, and how much memory it allocated. The garbage of what was before is
// gone when it begins.
func usedBy(f func() error) (cpu float64, memory allocated, err error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used := program.CPUSeconds()
	err = f()
	cpu = program.CPUSeconds() - used
	runtime.ReadMemStats(&after)
	return cpu, allocated{float64(after.TotalAlloc - before.TotalAlloc), float64(after.Mallocs - before.Mallocs)}, err
}

// opened opens the store, reads once and closes it, which writes what is recorded.
func (f *flags) opened(ctx context.Context, dir string, m *measured, on bool) (err error) {
	store, l, err := f.open(ctx, dir, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return f.drained(ctx, l, on)
}

// open opens the store and plans the read. Close the store.
func (f *flags) open(ctx context.Context, dir string, m *measured) (_ *storage.Store, _ *reader.Layout, err error) {
	store, err := versus.OpenStore(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}()
	_, snap, err := store.Newest(ctx, versus.Table)
	if err != nil {
		return nil, nil, err
	}
	l, err := layoutOf(ctx, snap, m.features, f.BatchSize)
	return store, l, err
}

// drained reads everything once.
func (f *flags) drained(ctx context.Context, l *reader.Layout, on bool) error {
	_, err := drain(ctx, l, reader.Options{Workers: f.Threads, Reuse: true, RoundIntegers: true,
		Usage: reader.UsageOptions{Off: !on}})
	return err
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
	for info, err := range store.Blobs().List(ctx, table.UsagePrefix(), "") {
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
	fmt.Println("\n| read | CPU µs without recording | with it more | of it | the same twice differs by | bytes " +
		"allocated without | with | a write |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	micro := func(s spread) string {
		return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", 1e6*s.Median, 1e6*s.Low, 1e6*s.High)
	}
	for i := range costs {
		c := &costs[i]
		write := ""
		if c.Write > 0 {
			write = fmt.Sprintf("%.0f", 1e6*c.Write)
		}
		off := program.Median(c.Off)
		fmt.Printf("| %s | %.2f | %s | %+.3f %% | %s | %.0f | %.0f | %s |\n", c.Read, 1e6*off, micro(c.Adds),
			100*c.Adds.Median/off, micro(c.Null),
			c.OffAllocated.Bytes, c.OnAllocated.Bytes, write)
	}
}
