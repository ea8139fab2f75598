// Command emit measures what reading into slots and an inverse costs: samples a second of kjt, ikjt and windowed batches of a
// dsistore table, beside arrow-go reading the same rows of clustered Parquet and hashing them into the same groups, in
// alternating rounds of one process; what a batch allocates in a steady state; and where the time goes. It fails when the
// sides do not give the same rows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/bench/versus"
	"github.com/dsistore/dsistore/bench/workload"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/ingest"
)

type flags struct {
	versus.TableFlags
	Share     []float64 `help:"Shares of the features to read." default:"0.1,1"`
	Threads   []int     `help:"Threads of each side." default:"1,2"`
	Rounds    int       `help:"Rounds that count; one more runs before." default:"7"`
	BatchSize int       `help:"Rows of a batch." default:"4096"`
	KeepStore bool      `help:"Use the store that an earlier run left, if any."`
	program.ResultsFlag
}

// A report is what a run found.
type report struct {
	Profile string         `json:"profile"`
	Seed    uint64         `json:"seed"`
	Rows    int64          `json:"rows"`
	Stats   workload.Stats `json:"workload"`
	Scans   []scans        `json:"scans"`
}

// scans are the measures of one projection and number of threads.
type scans struct {
	versus.Scans
	Groups int    `json:"groups"` // of the first batch
	Costs  []cost `json:"costs"`
}

// A cost is where a side's time went, and what it gave and allocated.
type cost struct {
	Side            string  `json:"side"`
	DecodeShare     float64 `json:"decode_share"` // of the time of all threads: read, decompress, decode
	CopyShare       float64 `json:"copy_share"`   // batches made of what was decoded
	HashShare       float64 `json:"hash_share"`
	RowsASlot       float64 `json:"rows_a_slot"`
	BytesABatch     float64 `json:"alloc_bytes_a_batch,omitempty"` // in a steady state; the store's sides
	ObjectsABatch   float64 `json:"allocs_a_batch,omitempty"`
	AllocationsSeen bool    `json:"allocations_counted"`
}

func main() {
	var f flags
	program.Main(&f, "emit", "Measure batches of slots and inverse against Parquet and hashing, in alternating rounds.", f.run)
}

func (f *flags) run(ctx context.Context) error {
	if f.Rounds < 1 || f.BatchSize < 1 || len(f.Share) == 0 || len(f.Threads) == 0 {
		return errors.New("rounds, batch-size, share and threads: want at least 1 of each")
	}
	dump, err := f.Dump(ctx, workload.Clustered)
	if err != nil {
		return err
	}
	truth, err := workload.NewTruth(dump.Options)
	if err != nil {
		return err
	}
	store, _, err := f.Store(ctx, workload.Clustered, f.KeepStore, ingest.Options{})
	if err != nil {
		return err
	}
	rep := report{Profile: f.Profile, Seed: f.Seed, Rows: dump.Rows, Stats: dump.Stats}
	for _, share := range f.Share {
		if err := f.share(ctx, &rep, truth, share, store, dump); err != nil {
			return err
		}
	}
	return f.WriteResults("emit", rep)
}

func (f *flags) share(ctx context.Context, rep *report, truth *workload.Truth, share float64, store string, dump *versus.Dump) error {
	fs, err := versus.Project(truth, share, f.Seed)
	if err != nil {
		return err
	}
	var stores []*versus.StoreSide
	for _, d := range []reader.Dedup{reader.DedupKJT, reader.DedupIKJT, reader.DedupWindowed} {
		stores = append(stores, &versus.StoreSide{Label: "dsistore " + d.String(), Dir: store, Features: fs, BatchSize: f.BatchSize, Dedup: d})
	}
	groups, err := versus.GroupsOf(ctx, stores[1])
	if err != nil {
		return err
	}
	parquet := &versus.ParquetSide{Label: "Parquet clustered (arrow-go)", Paths: dump.Paths(), Features: fs, BatchSize: f.BatchSize}
	hashed := &versus.HashSide{Label: "the same, hashed into ikjt", Side: parquet, Groups: groups}
	sides := []versus.Side{stores[0], hashed, parquet, stores[1], stores[2]}
	program.Log("%d groups", len(groups))
	return versus.Compare(ctx, share, fs, f.BatchSize, f.Threads, f.Rounds, sides, program.Log, func(threads int, measured versus.Scans) error {
		s := scans{Scans: measured, Groups: len(groups)}
		for _, side := range stores {
			c, err := storeCost(ctx, side, threads)
			if err != nil {
				return err
			}
			s.Costs = append(s.Costs, c)
		}
		s.Costs = append(s.Costs, hashCost(hashed))
		printCosts(os.Stdout, s.Costs)
		rep.Scans = append(rep.Scans, s)
		return nil
	})
}

// storeCost reads some epochs to make all memory, and counts what the batches of the next allocate.
func storeCost(ctx context.Context, side *versus.StoreSide, threads int) (c cost, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	st := side.Stats // of the last round
	busy := st.DecodeSeconds + st.AssembleSeconds
	c = cost{Side: side.Name(), DecodeShare: st.DecodeSeconds / busy, CopyShare: st.AssembleSeconds / busy, RowsASlot: st.EmittedFactor}
	sc, closeAll, err := side.Open(ctx, threads)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	// Memory grows as long as a batch is larger than those that it was made of before: a few epochs, in which every batch that
	// the scanner may have is used.
	const warm = 5
	var before, after runtime.MemStats
	counted := 0
	var held []*reader.Batch
	for epoch := range warm + 1 {
		if err := sc.Seek(reader.Position{Epoch: uint64(epoch)}); err != nil {
			return c, err
		}
		hold := threads + 3
		if epoch == warm {
			hold = 0
		}
		for n := 0; ; n++ {
			b, err := sc.Next(ctx)
			if err != nil {
				for _, b := range held {
					b.Release()
				}
				held = held[:0]
				if errors.Is(err, io.EOF) {
					break
				}
				return c, err
			}
			if held = append(held, b); len(held) > hold {
				held[0].Release()
				held = slices.Delete(held, 0, 1)
			}
			if epoch < warm {
				continue
			}
			// The first batch waits for the segments to be opened.
			if n == 0 {
				runtime.ReadMemStats(&before)
			} else {
				counted++
			}
		}
	}
	runtime.ReadMemStats(&after)
	if counted > 0 {
		c.AllocationsSeen = true
		c.BytesABatch = float64(after.TotalAlloc-before.TotalAlloc) / float64(counted)
		c.ObjectsABatch = float64(after.Mallocs-before.Mallocs) / float64(counted)
	}
	return c, nil
}

func hashCost(h *versus.HashSide) cost {
	all := h.ScanSeconds + h.HashSeconds + h.CopySeconds
	return cost{
		Side: h.Name(), DecodeShare: h.ScanSeconds / all, CopyShare: h.CopySeconds / all, HashShare: h.HashSeconds / all,
		RowsASlot: float64(h.SlotRows) / float64(max(h.Slots, 1)),
	}
}

func printCosts(w io.Writer, costs []cost) {
	t := versus.NewTable(w, "where the time goes", "decode", "copy", "hash", "rows a slot", "bytes allocated a batch", "objects")
	for _, c := range costs {
		percent := func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
		bytes, objects := "", ""
		if c.AllocationsSeen {
			bytes, objects = fmt.Sprintf("%.0f", c.BytesABatch), fmt.Sprintf("%.2f", c.ObjectsABatch)
		}
		t.AppendRow([]any{c.Side, percent(c.DecodeShare), percent(c.CopyShare), percent(c.HashShare), fmt.Sprintf("%.2f", c.RowsASlot), bytes, objects})
	}
	t.Render()
}
