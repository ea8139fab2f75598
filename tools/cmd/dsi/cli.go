package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/dsistore/dsistore/tools/command"
)

// cli is the grammar of the command line.
type cli struct {
	JSON    bool             `name:"json" help:"Print one JSON object with stable keys."`
	Version kong.VersionFlag `help:"Print the version."`

	Ingest    ingestCmd    `cmd:"" help:"Land dumps in a table: one commit."`
	Tables    tablesCmd    `cmd:"" help:"List the tables of a store."`
	Describe  describeCmd  `cmd:"" help:"Sum up a table."`
	Features  featuresCmd  `cmd:"" help:"List a table's features and their types; rename, deprecate, drop them."`
	Snapshots snapshotsCmd `cmd:"" help:"List a table's snapshots; let old ones expire."`
	Leases    leasesCmd    `cmd:"" help:"List who holds which snapshots; end leases of owners that are no more."`
	Branch    branchCmd    `cmd:"" help:"Name what is read together: a snapshot, overlays, a sample list."`
	Samples   samplesCmd   `cmd:"" help:"Keep rows under a name: sample lists."`
	Overlay   overlayCmd   `cmd:"" help:"Lay features over a table without rewriting it; list, show, drop, merge overlays."`
	Head      headCmd      `cmd:"" help:"Print the first rows."`
	Scan      scanCmd      `cmd:"" help:"Read everything as a trainer would, and print the rates."`
	Count     countCmd     `cmd:"" help:"Count rows, without reading them."`
	Lookup    lookupCmd    `cmd:"" help:"Find rows by their keys; of large segments only the stripes that may have them are read."`
	Export    exportCmd    `cmd:"" help:"Write rows as Parquet or Arrow."`
	Delete    deleteCmd    `cmd:"" help:"Delete rows: at once, for who reads the table from now on."`
	Compact   compactCmd   `cmd:"" help:"Rewrite segments into fewer, better ones: merge small ones, purge deleted rows."`
	Erase     eraseCmd     `cmd:"" help:"Take rows out physically, with the history that has them, and search for what should be gone."`
	Usage     usageCmd     `cmd:"" help:"Usage records: who read what of a table, and what it cost."`
	Verify    verifyCmd    `cmd:"" help:"Check that what the snapshots refer to is there and whole."`
	GC        gcCmd        `cmd:"" name:"gc" help:"Remove objects that nothing refers to."`
	Inspect   inspectCmd   `cmd:"" help:"Print the annotated bytes of a feature file or a pack."`
	Generate  generateCmd  `cmd:"" help:"Write a synthetic training table as Parquet, from a seed."`
}

// run does what args say and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(stdin, stdout, stderr)
	err := a.do(ctx, args)
	if flushErr := a.flush(); err == nil && flushErr != nil {
		err = fmt.Errorf("standard output: %w", flushErr)
	}
	return command.Report(ctx, "dsi", a.err, err)
}

// do parses args and runs the command that they name.
func (a *app) do(ctx context.Context, args []string) error {
	var c cli
	parsed, err := command.Parse("dsi", "Training tables for recommendation models: ingest, look, read, export.", &c, args, a.out, a.err)
	if err != nil || parsed == nil {
		return err
	}
	a.json = c.JSON
	ctx, stop, err := a.serveMetrics(ctx, parsed)
	if err != nil {
		return err
	}
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(a)
}
