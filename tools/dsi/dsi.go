package dsi

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/dsi/change"
	"github.com/dsistore/dsistore/tools/dsi/describe"
	"github.com/dsistore/dsistore/tools/dsi/maintain"
	"github.com/dsistore/dsistore/tools/dsi/read"
	"github.com/dsistore/dsistore/tools/terminal"
)

// grammar is that of the command line.
type grammar struct {
	JSON    bool             `name:"json" help:"Print one JSON object with stable keys."`
	Version kong.VersionFlag `help:"Print the version."`

	Ingest    change.Ingest     `cmd:"" help:"Ingest dumps into a table: one commit."`
	Tables    describe.Tables   `cmd:"" help:"List the tables of a store."`
	Describe  describe.Describe `cmd:"" help:"Sum up a table."`
	Features  features          `cmd:"" help:"List a table's features and their types; rename, deprecate, drop them."`
	Snapshots snapshots         `cmd:"" help:"List a table's snapshots; let old ones expire."`
	Leases    maintain.Leases   `cmd:"" help:"List who holds which snapshots; end leases of owners that are no more."`
	Branch    change.Branch     `cmd:"" help:"Name what is read together: a snapshot, overlays, a sample list."`
	Samples   change.Samples    `cmd:"" help:"Keep rows under a name: sample lists."`
	Overlay   change.Overlay    `cmd:"" help:"Add or replace features of a table without rewriting it; list, show, drop, merge overlays."`
	Head      read.Head         `cmd:"" help:"Print the first rows."`
	Scan      read.Scan         `cmd:"" help:"Read everything as a trainer would, and print the rates."`
	Count     read.Count        `cmd:"" help:"Count rows, without reading them."`
	Lookup    read.Lookup       `cmd:"" help:"Find rows by their keys; of large segments only the stripes that may have them are read."`
	Export    read.Export       `cmd:"" help:"Write rows as Parquet, Arrow or JSON lines."`
	Delete    change.Delete     `cmd:"" help:"Hide rows from new snapshots. Use erase to remove them physically."`
	Compact   maintain.Compact  `cmd:"" help:"Rewrite segments into fewer, better ones: merge small ones, purge deleted rows."`
	Erase     maintain.Erase    `cmd:"" help:"Take rows out physically, with the history that has them, and search for what should be gone."`
	Usage     maintain.Usage    `cmd:"" help:"Usage records: who read what of a table, and what it cost."`
	Verify    maintain.Verify   `cmd:"" help:"Check that what the snapshots refer to is there and whole."`
	GC        maintain.GC       `cmd:"" name:"gc" help:"Remove objects that nothing refers to."`
	Cache     read.Cache        `cmd:"" help:"The cache on the local disk of stores far away: show it, empty it, fill it ahead of a job."`
	Inspect   describe.Inspect  `cmd:"" help:"Print the annotated bytes of a feature file or a pack."`
	Generate  change.Generate   `cmd:"" help:"Write a synthetic training table as Parquet, from a seed."`
}

type features struct {
	List      describe.Features        `cmd:"" default:"withargs" help:"List a table's features and their types."`
	Rename    change.FeaturesRename    `cmd:"" help:"Give a feature another name. No data is touched."`
	Deprecate change.FeaturesDeprecate `cmd:"" help:"Say that features are to go. They are read as before."`
	Drop      change.FeaturesDrop      `cmd:"" help:"Drop features: nobody sees them, and compaction leaves them out."`
	Restore   change.FeaturesRestore   `cmd:"" help:"Take back that features are deprecated or dropped."`
}

type snapshots struct {
	List   describe.Snapshots `cmd:"" default:"withargs" help:"List a table's snapshots."`
	Expire maintain.Expire    `cmd:"" help:"Let old snapshots expire: gc removes them after its grace period, but those that a branch or a lease holds."`
}

// Run does what args say and returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &app.Env{Env: terminal.NewEnv("dsi", stdin, stdout, stderr)}
	return e.Run(ctx, func() error {
		var g grammar
		parsed, err := e.Parse("Training tables for recommendation models: ingest, look, read, export.", &g, args)
		if err != nil || parsed == nil {
			return err
		}
		e.JSON = g.JSON
		if err := e.ServeMetrics(parsed); err != nil {
			return err
		}
		parsed.BindTo(ctx, (*context.Context)(nil))
		return parsed.Run(e)
	})
}
