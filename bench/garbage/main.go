// Command garbage measures gc of a store that has many objects of ids that no snapshot names: how long it lists them,
// how many it deletes a second, and the memory that it takes.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/bench/program"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/names"
)

type flags struct {
	Objects  int           `help:"Objects that no snapshot names." default:"1000000"`
	Segments int           `help:"How many ids they are of." default:"10000"`
	Page     time.Duration `help:"What a request takes, and each page of a listing." default:"20ms"`
	Results  string        `help:"Directory for the results as JSON; empty: none." default:"bench/results"`
}

// A result is what the program prints and writes.
type result struct {
	Objects  int     `json:"objects"`
	Segments int     `json:"segments"`
	List     float64 `json:"list_seconds"`   // of a dry run, which deletes nothing
	Delete   float64 `json:"delete_seconds"` // of a run, less that of the dry run
	Rate     float64 `json:"deletes_per_second"`
	Pages    int64   `json:"pages"`     // of the dry run
	Memory   float64 `json:"memory_mb"` // the most that the heap grew, of both
	Names    float64 `json:"store_mb"`  // what the store in memory itself has
	Left     int     `json:"left"`      // objects that should be gone
	PageMS   float64 `json:"page_ms"`
}

func main() {
	var f flags
	program.Main(&f, "garbage", "Measure gc of many objects.", func(ctx context.Context) error {
		r, err := f.run(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%d objects of %d ids: listed in %.2f s (%d pages of %g ms), %.0f deletes/s, %.0f MB\n", r.Objects,
			r.Segments, r.List, r.Pages, r.PageMS, r.Rate, r.Memory)
		if f.Results == "" {
			return nil
		}
		path, err := program.Write(f.Results, "garbage", r)
		if err == nil {
			fmt.Fprintln(os.Stderr, "results:", path)
		}
		return err
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (f *flags) run(ctx context.Context) (result, error) {
	out := result{Objects: f.Objects, Segments: f.Segments, PageMS: float64(f.Page) / 1e6}
	blobs := newStore(f.Page)
	st, err := storage.Create(ctx, blobs, storage.Options{})
	if err != nil {
		return out, err
	}
	table, err := st.NewTable(ctx, "ads")
	if err != nil {
		return out, err
	}
	first, err := table.Commit(ctx, commit.Change{Operation: "first"})
	if err != nil {
		return out, err
	}
	before := heap()
	for k := range f.Segments {
		id := names.NewID(first.Manifest.Table)
		for i := range f.Objects*(k+1)/f.Segments - f.Objects*k/f.Segments {
			name := id.ObjectName(names.PackObject, uint64(i))
			if err := blobs.part(name).PutIfAbsent(ctx, name, nil); err != nil {
				return out, err
			}
		}
	}
	runtime.GC()
	base := heap()
	out.Names = float64(base-before) / 1e6
	var most atomic.Uint64
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				most.Store(max(most.Load(), heap()))
			}
		}
	}()
	blobs.wait = true
	begin := time.Now()
	r, err := st.GC(ctx, gc.Options{NoWait: true, DryRun: true})
	if err != nil {
		return out, err
	}
	out.List, out.Pages = time.Since(begin).Seconds(), blobs.pages.Load()
	if len(r.Removed) != f.Objects {
		return out, fmt.Errorf("a dry run finds %d objects", len(r.Removed))
	}
	r = nil
	begin = time.Now()
	if r, err = st.GC(ctx, gc.Options{NoWait: true}); err != nil {
		return out, err
	}
	out.Delete = time.Since(begin).Seconds() - out.List
	out.Rate = float64(len(r.Removed)) / out.Delete
	out.Left = f.Objects - len(r.Removed)
	out.Memory = float64(max(most.Load(), base)-base) / 1e6
	if out.Left > 0 {
		return out, fmt.Errorf("gc leaves %d objects", out.Left)
	}
	return out, nil
}
