package main

import (
	"context"

	"github.com/dsistore/dsistore/internal/workload"
)

type generateCmd struct {
	Dir        string          `arg:"" help:"Directory for the files; it is made."`
	Profile    string          `default:"small" help:"Shape of the table: small (100,000 rows, 60 sparse and 100 dense features), wide (4,000 features), metawide (20,000 features) or narrow (200 features)."`
	Rows       int64           `help:"Rows. Default: the profile's."`
	Seed       uint64          `default:"1" help:"The same seed gives the same table."`
	Order      workload.Order  `default:"interleaved" help:"interleaved, as logs arrive, or clustered, by session."`
	Layout     workload.Layout `default:"flat" help:"flat, one column a feature, or hivemap, features in map columns."`
	Codec      workload.Codec  `default:"zstd" help:"zstd or snappy."`
	Partitions int             `help:"Spread the rows over this many ds=/hr= directories, an hour each."`
	Files      int             `default:"1" help:"Files a partition."`
}

func (c *generateCmd) Run(ctx context.Context, a *app) error {
	bar := a.progress("generating", unitValues)
	defer bar.finish()
	o := workload.Options{
		Profile: c.Profile, Seed: c.Seed, Rows: c.Rows, Order: c.Order, Layout: c.Layout, Codec: c.Codec,
		Partitions: c.Partitions, Files: c.Files, Progress: bar.set,
	}
	if _, err := workload.NewTruth(o); err != nil {
		return usageError{Err: err}
	}
	s, err := workload.Generate(ctx, c.Dir, o)
	bar.finish()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s)
	}
	a.printFacts([][2]string{
		{"files", countText(len(s.Files)) + " under " + c.Dir},
		{"rows", countText(s.Rows)},
		{"sessions", countText(s.Sessions)},
		{"features", countText(s.Features)},
		{"bytes", bytesText(uint64(s.Bytes))},
		{"raw bytes", bytesText(uint64(s.RawBytes))},
	})
	return nil
}
