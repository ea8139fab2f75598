package dsi

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/dsi/change"
	"github.com/dsistore/dsistore/tools/dsi/describe"
	"github.com/dsistore/dsistore/tools/dsi/maintain"
	"github.com/dsistore/dsistore/tools/dsi/read"
	"github.com/dsistore/dsistore/tools/terminal"
)

const description = "Training tables for recommendation models: ingest, look, read, export."

// Reference is the part of docs/reference/cli.md about dsi.
func Reference() string { return terminal.Reference("dsi", description, &grammar{}) }

// grammar is that of the command line.
type grammar struct {
	JSON bool `name:"json" help:"Print one JSON object with stable keys."`

	Ingest   change.Ingest   `cmd:"" group:"Write" help:"Ingest dumps into a table: one commit."`
	Branch   change.Branch   `cmd:"" group:"Write" help:"Name what is read together: a snapshot, overlays, a sample list."`
	Samples  change.Samples  `cmd:"" group:"Write" help:"Keep rows under a name: sample lists."`
	Overlay  change.Overlay  `cmd:"" group:"Write" help:"Add or replace features of a table without rewriting it; list, show, drop, merge overlays."`
	Delete   change.Delete   `cmd:"" group:"Write" help:"Hide rows from new snapshots. Use erase to remove them physically."`
	Generate change.Generate `cmd:"" group:"Write" help:"Write a synthetic training table as Parquet, from a seed."`

	Head   read.Head   `cmd:"" group:"Read" help:"Print the first rows."`
	Scan   read.Scan   `cmd:"" group:"Read" help:"Read everything as a trainer would, and print the rates."`
	Count  read.Count  `cmd:"" group:"Read" help:"Count rows, without reading them."`
	Lookup read.Lookup `cmd:"" group:"Read" help:"Find rows by their keys; of large segments only the stripes that may have them are read."`
	Export read.Export `cmd:"" group:"Read" help:"Write rows as Parquet, Arrow or JSON lines."`

	Tables    describe.Tables   `cmd:"" aliases:"ls" group:"Look" help:"List the tables of a store."`
	Describe  describe.Describe `cmd:"" group:"Look" help:"Sum up a table."`
	Features  features          `cmd:"" group:"Look" help:"List a table's features and their types; rename, deprecate, drop them."`
	Snapshots snapshots         `cmd:"" group:"Look" help:"List a table's snapshots; let old ones expire."`
	Inspect   describe.Inspect  `cmd:"" group:"Look" help:"Print the annotated bytes of a feature file or a pack."`

	Leases  maintain.Leases  `cmd:"" group:"Maintain" help:"List who holds which snapshots; end leases of owners that are no more."`
	Compact maintain.Compact `cmd:"" group:"Maintain" help:"Rewrite segments into fewer, better ones: merge small ones, purge deleted rows."`
	Erase   maintain.Erase   `cmd:"" group:"Maintain" help:"Take rows out physically, with the history that has them, and search for what should be gone."`
	Usage   maintain.Usage   `cmd:"" group:"Maintain" help:"Usage records: who read what of a table, and what it cost."`
	Verify  maintain.Verify  `cmd:"" group:"Maintain" help:"Check that what the snapshots refer to is there and whole."`
	Repair  maintain.Repair  `cmd:"" group:"Maintain" help:"Take what is damaged out of tables, and say first what that loses."`
	GC      maintain.GC      `cmd:"" group:"Maintain" name:"gc" help:"Remove objects that nothing refers to."`
	Cache   read.Cache       `cmd:"" group:"Maintain" help:"The cache on the local disk of stores far away: show it, empty it, fill it ahead of a job."`
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
		parsed, err := e.Parse(ctx, description, &g, args,
			e.Complete)
		if err != nil || parsed == nil {
			return err
		}
		e.JSON = g.JSON
		if err := e.ServeMetrics(parsed); err != nil {
			return err
		}
		return parsed.Target.(interface {
			Run(context.Context, *app.Env) error
		}).Run(ctx, e)
	})
}
