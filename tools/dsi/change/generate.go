package change

import (
	"context"
	"os"

	"github.com/dsistore/dsistore/internal/workload"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Generate writes a synthetic training table as Parquet.
type Generate struct {
	Dir        string          `arg:"" help:"Directory for the files; it is created."`
	Profile    string          `default:"small" help:"Shape of the table: small (100,000 rows, 60 sparse and 100 dense features), wide (4,000 features), metawide (20,000 features), narrow (200 features) or long (10 million rows, 20 features)."`
	Rows       *int64          `help:"Number of rows. Default: that of the profile."`
	Seed       uint64          `default:"1" help:"The same seed gives the same table."`
	Order      workload.Order  `default:"interleaved" help:"interleaved, as logs arrive, or clustered, by session."`
	Layout     workload.Layout `default:"flat" help:"flat, one column per feature, or hivemap, features in map columns."`
	Codec      workload.Codec  `default:"zstd" help:"zstd or snappy."`
	Partitions int             `help:"Spread the rows over this many ds=/hr= directories, one hour each."`
	FirstHour  int             `help:"Begin this many hours after 2026-11-01 00:00 UTC, to add to an earlier dump."`
	Files      int             `default:"1" help:"Files per partition."`
	Force      bool            `help:"Write into a directory that has files, and replace files of the same names."`
}

// Run runs the command.
func (c *Generate) Run(ctx context.Context, e *app.Env) error {
	if entries, err := os.ReadDir(c.Dir); err == nil && len(entries) > 0 && !c.Force {
		return terminal.Usagef("%s: the directory has files: give another one, or write into it with --force", c.Dir)
	}
	rows := int64(0) // the profile's
	if c.Rows != nil {
		if rows = *c.Rows; rows < 1 {
			return terminal.Usagef("--rows %d: want 1 or more", rows)
		}
	}
	bar := e.Progress("generating", app.UnitValues)
	defer bar.Finish()
	o := workload.Options{
		Profile: c.Profile, Seed: c.Seed, Rows: rows, Order: c.Order, Layout: c.Layout, Codec: c.Codec,
		Partitions: c.Partitions, FirstHour: c.FirstHour, Files: c.Files, Progress: bar.Set,
	}
	if _, err := workload.NewTruth(o); err != nil {
		return terminal.UsageError{Err: err}
	}
	s, err := workload.Generate(ctx, c.Dir, o)
	bar.Finish()
	if err != nil {
		return err
	}
	return e.Print(s, [][2]string{
		{"files", terminal.Count(len(s.Files)) + " under " + c.Dir},
		{"rows", terminal.Count(s.Rows)},
		{"sessions", terminal.Count(s.Sessions)},
		{"features", terminal.Count(s.Features)},
		{"bytes", terminal.Bytes(uint64(s.Bytes))},
		{"raw bytes", terminal.Bytes(uint64(s.RawBytes))},
	}...)
}
