package dsi

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/dsi/change"
	"github.com/dsistore/dsistore/tools/dsi/describe"
	"github.com/dsistore/dsistore/tools/dsi/maintain"
	"github.com/dsistore/dsistore/tools/dsi/read"
	"github.com/dsistore/dsistore/tools/dsi/ui"
	"github.com/dsistore/dsistore/tools/terminal"
)

const description = "Training tables for recommendation models: ingest, inspect, read, export."

// Reference is the part of docs/reference/cli.md about dsi.
func Reference() string { return terminal.Reference("dsi", description, &grammar{}) }

// grammar is that of the command line.
type grammar struct {
	JSON bool `name:"json" help:"Print one JSON object with stable keys."`

	Ingest   change.Ingest   `cmd:"" group:"Put data into a store" help:"Ingest dumps into a table: one commit." example:"dsi ingest store ads clicks.csv"`
	Generate change.Generate `cmd:"" group:"Put data into a store" help:"Write a synthetic training table as Parquet, from a seed." example:"dsi generate dump --rows 1000 --partitions 2"`

	Tables    describe.Tables   `cmd:"" aliases:"ls" group:"See what is there" help:"List the tables of a store." example:"dsi tables store"`
	Describe  describe.Describe `cmd:"" group:"See what is there" help:"Summarize a table." example:"dsi describe store ads"`
	Features  features          `cmd:"" group:"See what is there" help:"List a table's features and their types; rename, deprecate, drop them."`
	Snapshots snapshots         `cmd:"" group:"See what is there" help:"List a table's snapshots; let old ones expire."`
	UI        ui.UI             `cmd:"" group:"See what is there" name:"ui" help:"Show in a browser what tables contain and who reads them, with live figures." example:"dsi ui store"`
	Usage     maintain.Usage    `cmd:"" group:"See what is there" help:"Usage records: who read what of a table, and what it cost."`

	Head   read.Head   `cmd:"" group:"Read rows" help:"Print the first rows." example:"dsi head store ads -n 3"`
	Count  read.Count  `cmd:"" group:"Read rows" help:"Count rows, without reading them." example:"dsi count store ads --where 'click = 1'"`
	Lookup read.Lookup `cmd:"" group:"Read rows" help:"Find rows by their keys. Of large segments, only stripes that may have the keys are read." example:"dsi lookup store ads --keys users.txt --key user_id"`
	SQL    read.SQL    `cmd:"" group:"Read rows" name:"sql" help:"Run a query in DuckDB over the tables of a store." example:"dsi sql store 'select country, sum(click) from ads group by country'"`
	Export read.Export `cmd:"" group:"Read rows" help:"Write rows as Parquet, Arrow or JSON lines." example:"dsi export store ads --features '@labels,price' --to out.parquet"`
	Scan   read.Scan   `cmd:"" group:"Read rows" help:"Read as a trainer would, and print the rates." example:"dsi scan store ads --features 'price,country' --batch-size 100"`

	Overlay change.Overlay `cmd:"" group:"Change a table" help:"Add or replace features of a table without rewriting it; list, show, drop, merge overlays."`
	Samples change.Samples `cmd:"" group:"Change a table" help:"Create, list, show and drop sample lists: rows kept under a name."`
	Branch  change.Branch  `cmd:"" group:"Change a table" help:"Create, list and drop branches: a snapshot, overlays and a sample list that are read together."`
	Delete  change.Delete  `cmd:"" destructive:"" group:"Change a table" help:"Hide rows from new snapshots. Use erase to remove them physically." example:"dsi delete store ads --where 'user_id = 17'"`
	Erase   maintain.Erase `cmd:"" destructive:"" group:"Change a table" help:"Remove rows physically, with the history that has them, and search the store for their keys." example:"dsi erase store ads --where 'user_id = 17' --dry-run"`

	Verify  maintain.Verify  `cmd:"" group:"Look after a store" help:"Check that everything that the snapshots refer to is present and undamaged." example:"dsi verify store --deep"`
	Repair  maintain.Repair  `cmd:"" group:"Look after a store" help:"Remove damaged data from tables. Without --apply, only say what would be lost." example:"dsi repair store"`
	Compact maintain.Compact `cmd:"" group:"Look after a store" help:"Rewrite segments into fewer, better ones: merge small ones, purge deleted rows." example:"dsi compact store ads"`
	GC      maintain.GC      `cmd:"" destructive:"" group:"Look after a store" name:"gc" help:"Remove objects that nothing refers to." example:"dsi gc store"`
	Leases  maintain.Leases  `cmd:"" group:"Look after a store" help:"List who holds which snapshots; end leases of owners that no longer run."`
	Cache   read.Cache       `cmd:"" group:"Look after a store" help:"The local cache of object stores: show it, empty it, fill it before a job."`
	Inspect describe.Inspect `cmd:"" group:"Look after a store" help:"Print the annotated bytes of a feature file or a pack." example:"dsi inspect pack-000000"`

	Version versionCommand `cmd:"" group:"Help" help:"Print the version, its commit, and what it was built with." example:"dsi version --json"`
}

type features struct {
	List      describe.Features        `cmd:"" default:"withargs" help:"List a table's features and their types." example:"dsi features store ads --totals"`
	Rename    change.FeaturesRename    `cmd:"" help:"Give a feature another name. No data is touched." example:"dsi features rename store ads price price_usd"`
	Deprecate change.FeaturesDeprecate `cmd:"" help:"Mark features as deprecated. They are read as before." example:"dsi features deprecate store ads country"`
	Drop      change.FeaturesDrop      `cmd:"" destructive:"" help:"Drop features: readers no longer see them, and compaction removes their data." example:"dsi features drop store ads country"`
	Restore   change.FeaturesRestore   `cmd:"" help:"Restore features that were deprecated or dropped." example:"dsi features restore store ads old_price"`
}

type snapshots struct {
	List   describe.Snapshots `cmd:"" default:"withargs" help:"List a table's snapshots, and the operations that made them (docs/guide/glossary.md)." example:"dsi snapshots store ads"`
	Expire maintain.Expire    `cmd:"" destructive:"" help:"Let old snapshots expire: gc removes them after its grace period, unless a branch or a lease holds them." example:"dsi snapshots expire store ads --keep-last 3"`
}

type versionCommand struct{}

func (*versionCommand) Run(_ context.Context, e *app.Env) error { return e.PrintVersion() }

// Man writes man pages of dsi into a directory.
func Man(dir string) error {
	return terminal.Man("dsi", description, &grammar{}, dir)
}

// exitCodes are those that some command ends with.
var exitCodes = []int{terminal.ExitDone, terminal.ExitFailed, terminal.ExitUsage, terminal.ExitDamage,
	terminal.ExitConflict, terminal.ExitNotFound, terminal.ExitInterrupted}

// Run does what args say and returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	e := &app.Env{Env: terminal.NewEnv("dsi", stdin, stdout, stderr, exitCodes...)}
	return e.Run(ctx, func() error {
		var g grammar
		parsed, err := e.Parse(ctx, description, &g, args, e.Complete)
		if err != nil || parsed == nil {
			return err
		}
		e.JSON = g.JSON
		if err := e.ServeMetrics(parsed); err != nil {
			return err
		}
		err = parsed.Target.(interface {
			Run(context.Context, *app.Env) error
		}).Run(ctx, e)
		if reads, ok := parsed.Target.(interface{ OverlayFlag() string }); ok {
			err = terminal.ReadToo(err, reads.OverlayFlag())
		}
		if at, ok := parsed.Target.(interface{ Place() terminal.Place }); ok {
			return terminal.Look(err, at.Place(), parsed.Near)
		}
		return err
	})
}
