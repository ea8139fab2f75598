package read

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/object/diskcache"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Cache shows, empties and fills the cache on the local disk.
type Cache struct {
	Stat  cacheStat  `cmd:"" default:"withargs" help:"Print what the cache contains, and how often reads found their data in it." example:"dsi cache --cache-dir cache"`
	Clear cacheClear `cmd:"" destructive:"" help:"Empty the cache, and free its disk space." example:"dsi cache clear --cache-dir cache"`
	Warm  cacheWarm  `cmd:"" help:"Fetch what a job will read, before it starts." example:"dsi cache warm s3://tables/store ads --features 'click,price' --cache-dir cache"`
}

// cacheFlags say which cache is meant.
type cacheFlags struct {
	Dir string `name:"cache-dir" placeholder:"DIR" help:"Its directory. Default: DSISTORE_CACHE."`
}

func (c cacheFlags) open() (*diskcache.Cache, error) {
	dir := c.Dir
	if dir == "" {
		dir = os.Getenv(diskcache.Variable)
	}
	if dir == "" {
		return nil, terminal.Usagef("no cache: set --cache-dir or %s", diskcache.Variable)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return diskcache.Shared(dir, 0)
}

type cacheStat struct{ cacheFlags }

func (c *cacheStat) Run(_ context.Context, e *app.Env) error {
	cache, err := c.open()
	if err != nil {
		return err
	}
	s, err := cache.Stat()
	if err != nil {
		return err
	}
	share := 0.0
	if n := s.Hits + s.Misses; n > 0 {
		share = float64(s.Hits) / float64(n)
	}
	return e.Print(s,
		[2]string{"holds", fmt.Sprintf("%s of %s, %s of the disk", terminal.Bytes(uint64(s.Used)),
			terminal.Bytes(uint64(s.Bytes)), terminal.Bytes(uint64(s.Files)))},
		[2]string{"hits", fmt.Sprintf("%s of %s (%s), %s", terminal.Count(s.Hits),
			terminal.Plural(s.Hits+s.Misses, "block read"), terminal.Percent(share), terminal.Bytes(s.HitBytes))},
		[2]string{"fetched", fmt.Sprintf("%s; %s were fetched by another read meanwhile",
			terminal.Bytes(s.FetchedBytes), terminal.Plural(s.Waited, "block"))},
		[2]string{"evicted", fmt.Sprintf("%s; %s damaged; the directory failed %s", terminal.Plural(s.Evicted, "block"),
			terminal.Count(s.Damaged), terminal.Plural(s.Failed, "time"))})
}

type cacheClear struct{ cacheFlags }

func (c *cacheClear) Run(_ context.Context, e *app.Env) error {
	cache, err := c.open()
	if err != nil {
		return err
	}
	before, err := cache.Stat()
	if err != nil {
		return err
	}
	if err := cache.Clear(); err != nil {
		return err
	}
	return e.Print(map[string]any{"dir": before.Dir, "bytes_removed": before.Used},
		[2]string{"removed", terminal.Bytes(uint64(before.Used))})
}

type cacheWarm struct {
	tableArgs
	Features []string `required:"" complete:"features" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)."`
	readFlags
}

// warmJSON is what warm prints with --json.
type warmJSON struct {
	Table    string  `json:"table"`
	Snapshot uint64  `json:"snapshot"`
	Features int     `json:"features"`
	Rows     uint64  `json:"rows"`
	Bytes    uint64  `json:"bytes"` // of the table that were read: those that the cache had too
	Seconds  float64 `json:"seconds"`
}

// Run reads as a job would, in the form that takes the least work, and keeps nothing of it.
func (c *cacheWarm) Run(ctx context.Context, e *app.Env) error {
	store, err := c.cached().Open(ctx, e)
	if err != nil {
		return err
	}
	if _, ok := object.As[*diskcache.Store](store.Blobs()); !ok {
		return terminal.Usagef("store %s has no cache: give --cache-dir or set %s; one on this machine needs none",
			c.Store, diskcache.Variable)
	}
	view, plan, err := c.plan(ctx, e, c.tableArgs, reader.PlanOptions{Features: c.Features,
		BatchSize: reader.MaxBatchSize / 4, Output: reader.OutputTensors, Dedup: reader.DedupPartial})
	if err != nil {
		return err
	}
	layout, err := reader.NewLayoutWith(ctx, view.Snapshot, plan, reader.LayoutOptions{View: view})
	if err != nil {
		return err
	}
	opts := c.options("cache warm")
	opts.RoundIntegers = true
	s, err := layout.Open(opts)
	if err != nil {
		return err
	}
	defer s.Close()
	bar := e.Progress("warming", app.UnitSamples)
	defer bar.Finish()
	begin, rows := time.Now(), uint64(0)
	err = each(ctx, s, func(b *reader.Batch) error {
		rows += uint64(b.Rows)
		bar.Set(int64(rows), int64(s.Rows()))
		return nil
	})
	if err != nil {
		return err
	}
	bar.Finish()
	stats := s.Stats()
	out := warmJSON{Table: c.Table, Snapshot: plan.Snapshot, Features: len(plan.Features), Rows: rows,
		Bytes: stats.BytesNeeded + stats.BytesUnneeded, Seconds: time.Since(begin).Seconds()}
	return e.Print(out, [2]string{"read", fmt.Sprintf("%s of %s, %s, in %.1f s", terminal.Bytes(out.Bytes),
		terminal.Plural(rows, "row"), terminal.Plural(uint64(out.Features), "feature"), out.Seconds)})
}
