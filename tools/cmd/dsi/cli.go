package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
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
	Branch    branchCmd    `cmd:"" help:"Name what is read together: a snapshot, overlays, a sample list."`
	Samples   samplesCmd   `cmd:"" help:"Keep rows under a name: sample lists."`
	Overlay   overlayCmd   `cmd:"" help:"Lay features over a table without rewriting it; list, show, drop, merge overlays."`
	Head      headCmd      `cmd:"" help:"Print the first rows."`
	Scan      scanCmd      `cmd:"" help:"Read everything as a trainer would, and print the rates."`
	Count     countCmd     `cmd:"" help:"Count rows, without reading them."`
	Export    exportCmd    `cmd:"" help:"Write rows as Parquet or Arrow."`
	Delete    deleteCmd    `cmd:"" help:"Delete rows: at once, for who reads the table from now on."`
	Compact   compactCmd   `cmd:"" help:"Rewrite segments into fewer, better ones: merge small ones, purge deleted rows."`
	Erase     eraseCmd     `cmd:"" help:"Take rows out physically, with the history that has them, and search for what should be gone."`
	Verify    verifyCmd    `cmd:"" help:"Check that what the snapshots refer to is there and whole."`
	GC        gcCmd        `cmd:"" name:"gc" help:"Remove objects that nothing refers to."`
	Index     indexCmd     `cmd:"" help:"Look after the index database."`
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
	return a.report(ctx, err)
}

// errExit ends do early when kong has printed help or the version.
var errExit = errors.New("exit")

// do parses args and runs the command that they name.
func (a *app) do(ctx context.Context, args []string) (err error) {
	for _, arg := range args {
		// kong would put U+FFFD for such bytes, and one name would stand for many.
		if !utf8.ValidString(arg) {
			return usagef("argument %.100q is not UTF-8", arg)
		}
	}
	var c cli
	// kong prints help and the version itself and then calls Exit, which must not return.
	defer func() {
		if r := recover(); r != nil {
			if r != errExit {
				panic(r)
			}
			err = nil
		}
	}()
	parser, err := kong.New(&c,
		kong.Name("dsi"),
		kong.Description("Training tables for recommendation models: ingest, look, read, export."),
		kong.Writers(a.out, a.err),
		kong.Exit(func(int) { panic(errExit) }),
		kong.Vars{"version": version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return badArguments(err)
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

// badArguments turns what kong says of wrong arguments into a usage error that says where help is.
func badArguments(err error) error {
	help := "dsi --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if n := parse.Context.Selected(); n != nil {
			help = "dsi " + strings.TrimSpace(n.Path()) + " --help"
		}
	}
	return usagef("%v (see %s)", err, help)
}

// version returns the version of the module that this binary was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "dsi " + info.Main.Version
	}
	return "dsi (unknown version)"
}
