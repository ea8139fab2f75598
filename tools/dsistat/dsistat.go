package dsistat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	_ "github.com/dsistore/dsistore/storage/object/azure" // stores at az://
	_ "github.com/dsistore/dsistore/storage/object/gcs"   // stores at gs://
	_ "github.com/dsistore/dsistore/storage/object/s3"    // stores at s3://
	"github.com/dsistore/dsistore/tools/prices"
	"github.com/dsistore/dsistore/tools/report"
	"github.com/dsistore/dsistore/tools/report/page"
	"github.com/dsistore/dsistore/tools/terminal"
)

const description = "What tables contain, who reads them, what that costs, and what was saved."

// Reference is the part of docs/reference/cli.md about dsistat.
func Reference() string { return terminal.Reference("dsistat", description, &grammar{}) }

// grammar is that of the command line.
type grammar struct {
	JSON  bool         `name:"json" help:"Print one JSON object: the report (docs/reference/dsistat-report.md), or the part of it that was asked for."`
	CSV   bool         `name:"csv" help:"Print the main table as CSV, with all its columns."`
	Since terminal.Day `placeholder:"DAY|DAYS" help:"Use only usage records from this day on (UTC), or of this many days, as in 2026-11-01 or 30d. Default: all."`

	Summary  summaryCmd  `cmd:"" default:"withargs" help:"A table, or all tables of a store, at a glance. The default: dsistat STORE [TABLE]." example:"dsistat store ads"`
	Features featuresCmd `cmd:"" help:"What is stored of each feature, and who reads it." example:"dsistat features store ads --sort stored_bytes --limit 10"`
	Jobs     jobsCmd     `cmd:"" help:"Who reads, how much, and how fast; by job and by day." example:"dsistat jobs store --since 30d"`
	Savings  savingsCmd  `cmd:"" help:"Where the bytes of the source went, to the byte." example:"dsistat savings store ads"`
	Health   healthCmd   `cmd:"" help:"The state of segments, packs, overlays, snapshots, branches and leases, and what is wrong with them." example:"dsistat health store"`
	Advise   adviseCmd   `cmd:"" help:"What is worth doing, and what it would save." example:"dsistat advise store ads --unread 14"`
	Version  versionCmd  `cmd:"" help:"Print the version, its commit, and what it was built with." example:"dsistat version"`
}

// tableArgs are the arguments of every command.
type tableArgs struct {
	Store string   `arg:"" complete:"dirs" help:"Root of the store: a directory, file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix."`
	Table []string `arg:"" optional:"" complete:"tables" help:"Names of tables. Default: all."`
	terminal.Endpoint
	Prices string `placeholder:"FILE" help:"File of prices (docs/guide/cost.md). Default: DSISTORE_PRICES, else the price list of S3 or Google Cloud Storage."`
}

// viewFlags say how a view is laid out.
type viewFlags struct {
	Sort    string `placeholder:"COLUMN" help:"Sort by a column, by its printed name or that of --csv: numbers from large to small, words from a to z."`
	Reverse bool   `help:"Reverse the order."`
	Limit   int    `placeholder:"N" help:"Print at most this many rows; --json and --csv print all. Default: all."`
}

func (f viewFlags) options() report.ViewOptions {
	return report.ViewOptions{Sort: f.Sort, Reverse: f.Reverse, Limit: f.Limit}
}

type summaryCmd struct {
	tableArgs
	HTML      string `name:"html" placeholder:"FILE" help:"Write the whole report as one HTML file, which needs no network (docs/guide/dsistat.md)."`
	Encodings bool   `help:"With --html: show how the first stripe of each feature is encoded. This costs one read per feature."`
	terminal.ForceFlag
}

func (c *summaryCmd) Run(ctx context.Context, a *app) error {
	if c.HTML != "" && (a.JSON || a.csv) {
		return terminal.Usagef("--html: want it without --json and --csv")
	}
	if c.Encodings && c.HTML == "" {
		return terminal.Usagef("--encodings: want it with --html, or with dsistat features")
	}
	r, err := a.build(ctx, c.tableArgs, report.Options{Encodings: c.Encodings})
	if err != nil {
		return err
	}
	if c.HTML != "" {
		return writePage(c.ForceFlag, c.HTML, r)
	}
	if len(r.Tables) == 1 && !a.csv {
		return a.print(r, "", report.ViewOptions{})
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	l, err := report.Tables(r, report.ViewOptions{})
	if err != nil {
		return err
	}
	if a.csv {
		return terminal.CSV(a.Out, l.Keys, l.Values)
	}
	if len(r.Tables) == 0 {
		return a.noTables(r)
	}
	a.listing(l)
	if r.Cost != nil {
		fmt.Fprintln(a.Out)
		a.PrintFacts(r.Cost.Facts()...)
	}
	return nil
}

func (a *app) noTables(r *report.Report) error {
	a.Printf("no tables in %s\n", r.Store)
	return nil
}

// writePage writes the page to a file, which is whole or is not there.
func writePage(force terminal.ForceFlag, name string, r *report.Report) error {
	_, err := force.WriteFile(name, func(w io.Writer) error { return page.Write(w, r) })
	if err != nil {
		return fmt.Errorf("--html %w", err)
	}
	return nil
}

type featuresCmd struct {
	tableArgs
	viewFlags
	Features  []string `placeholder:"NAMES" help:"Names, globs (user_*) or sets (@labels, @keys). Default: all, including dropped features that are still stored."`
	Encodings bool     `help:"Show how the first stripe of each feature is encoded. This costs one read per feature."`
}

func (c *featuresCmd) Run(ctx context.Context, a *app) error {
	return a.show(ctx, c.tableArgs, report.Options{Features: c.Features, Encodings: c.Encodings}, "features",
		c.options())
}

type jobsCmd struct {
	tableArgs
	viewFlags
}

func (c *jobsCmd) Run(ctx context.Context, a *app) error {
	return a.show(ctx, c.tableArgs, report.Options{}, "jobs", c.options())
}

type savingsCmd struct{ tableArgs }

func (c *savingsCmd) Run(ctx context.Context, a *app) error {
	return a.show(ctx, c.tableArgs, report.Options{}, "savings", report.ViewOptions{})
}

type healthCmd struct {
	tableArgs
	viewFlags
}

func (c *healthCmd) Run(ctx context.Context, a *app) error {
	return a.show(ctx, c.tableArgs, report.Options{}, "health", c.options())
}

type adviseCmd struct {
	tableArgs
	Unread int    `default:"30" placeholder:"DAYS" help:"Call a feature unread if nobody has read it for this many days."`
	Names  string `placeholder:"KIND" help:"Print only the names of the features of this kind of advice, one per line, as dsi features drop --from - reads them: unread, usage (not read so far, if records are too young to say more), dedup_costs or overlay."`
}

func (c *adviseCmd) Run(ctx context.Context, a *app) error {
	if c.Unread < 1 {
		return terminal.Usagef("--unread %d: want 1 or more", c.Unread)
	}
	if c.Names != "" && (a.JSON || a.csv) {
		return terminal.Usagef("--names: want it without --json and --csv")
	}
	r, err := a.build(ctx, c.tableArgs, report.Options{UnreadDays: c.Unread, AllNames: c.Names != ""})
	if err != nil {
		return err
	}
	if c.Names != "" {
		return a.names(r, c.Names)
	}
	return a.print(r, "advise", report.ViewOptions{})
}

// names prints the features that a kind of advice is about, but those that a line cannot hold.
func (a *app) names(r *report.Report, kind string) error {
	if !slices.Contains(report.NamedKinds, kind) {
		return terminal.Usagef("--names %.100q: want one of %s", kind, strings.Join(report.NamedKinds, ", "))
	}
	if len(r.Tables) != 1 {
		return terminal.Usagef("--names: want one table")
	}
	found, why := false, "there is no advice of this kind"
	for _, x := range r.Tables[0].Advice {
		for _, name := range x.Features {
			if x.Kind == kind && report.Printable(name) {
				fmt.Fprintln(a.Out, name)
				found = true
			}
		}
		if x.Kind == kind && len(x.Features) == 0 {
			why = "the advice names none: " + x.Text
		}
		if kind == report.AdviceUnread && x.Kind == report.AdviceRecords {
			if why = x.Text; len(x.Features) > 0 {
				why += "; --names " + report.AdviceRecords + " prints their names"
				break
			}
		}
	}
	if !found {
		a.Warnf("no names of %s: %s", kind, terminal.OneLine(why))
	}
	return nil
}

type versionCmd struct{}

func (*versionCmd) Run(_ context.Context, a *app) error {
	if a.csv {
		return terminal.Usagef("--csv: the version is no table")
	}
	return a.PrintVersion()
}

// Man writes man pages of dsistat into a directory.
func Man(dir string) error {
	return terminal.Man("dsistat", description, &grammar{}, dir)
}

// app is what every command prints to.
type app struct {
	*terminal.Env
	csv    bool
	since  terminal.Day
	near   error // why the store may be a mistyped command
	failed error // of tables that are missing in what is printed
}

// exitCodes are those that some command ends with.
var exitCodes = []int{terminal.ExitDone, terminal.ExitFailed, terminal.ExitUsage, terminal.ExitDamage,
	terminal.ExitNotFound, terminal.ExitInterrupted}

// Run does what args say and returns the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{Env: terminal.NewEnv("dsistat", stdin, stdout, stderr, exitCodes...)}
	return a.Env.Run(ctx, func() error {
		if err := a.do(ctx, args); err != nil {
			return err
		}
		return a.failed
	})
}

func (a *app) do(ctx context.Context, args []string) error {
	var c grammar
	parsed, err := a.Parse(ctx, description, &c, args, complete)
	if err != nil || parsed == nil {
		return err
	}
	if c.JSON && c.CSV {
		return terminal.Usagef("--json and --csv: want one of them")
	}
	a.JSON, a.csv, a.since, a.near = c.JSON, c.CSV, c.Since, parsed.Near
	return parsed.Target.(interface {
		Run(context.Context, *app) error
	}).Run(ctx, a)
}

// complete returns the tables of the store that a command names, for a shell, which waits for them.
func complete(ctx context.Context, command any, _ string) []string {
	t, ok := command.(interface {
		tables(context.Context) ([]string, error)
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, terminal.CompleteTime)
	defer cancel()
	names, _ := t.tables(ctx)
	return names
}

func (t tableArgs) tables(ctx context.Context) ([]string, error) {
	blobs, err := object.OpenWith(t.Store, t.StorageOptions())
	if err != nil {
		return nil, err
	}
	store, err := storage.Open(ctx, blobs, storage.Options{})
	if err != nil {
		return nil, err
	}
	names, err := store.Tables(ctx)
	return names, errors.Join(err, store.Close())
}

// build makes the report.
func (a *app) build(ctx context.Context, t tableArgs, opts report.Options) (*report.Report, error) {
	blobs, err := object.OpenWith(t.Store, t.StorageOptions())
	if err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	if opts.Prices, err = prices.For(blobs.URI(), t.Prices); err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	store, err := storage.Open(ctx, blobs, storage.Options{})
	if err != nil {
		return nil, err
	}
	opts.Endpoint = t.EndpointURL
	now := time.Now()
	opts.Since = a.since.Since(now)
	if opts.Since.After(now.Add(24 * time.Hour)) {
		return nil, errors.Join(terminal.Usagef("--since %s: that day is to come", opts.Since.Format(time.DateOnly)),
			store.Close())
	}
	r, err := report.Build(ctx, store, t.Table, opts)
	if err = errors.Join(err, store.Close()); err != nil {
		at := terminal.Place{Store: t.Store, Endpoint: t.Endpoint}
		if len(t.Table) == 1 {
			at.Table = t.Table[0]
		}
		err = terminal.Look(err, at, a.near)
	}
	if r != nil && len(r.Tables) > 0 { // the others cannot be reported on, which is said after these
		a.failed, err = err, nil
	}
	return r, err
}

// show makes a report and prints the view of a name.
func (a *app) show(ctx context.Context, t tableArgs, opts report.Options, view string, o report.ViewOptions) error {
	r, err := a.build(ctx, t, opts)
	if err != nil {
		return err
	}
	return a.print(r, view, o)
}

// print prints the view of a name of each table; an empty name: the summary.
func (a *app) print(r *report.Report, name string, o report.ViewOptions) error {
	if a.JSON {
		return a.PrintJSON(r.Part(name))
	}
	if len(r.Tables) == 0 && !a.csv {
		return a.noTables(r)
	}
	o.Since = r.Since
	view := report.Views[name]
	if name == "" {
		view = report.SummaryView
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		sections, err := view(t, o)
		if errors.Is(err, report.ErrSort) {
			return terminal.UsageError{Err: err}
		}
		if err != nil {
			return err
		}
		if a.csv {
			if err := a.printCSV(t.Table, i == 0, sections); err != nil {
				return err
			}
			continue
		}
		if len(r.Tables) > 1 {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			a.Printf("table %s\n\n", terminal.OneLine(t.Table))
		}
		a.sections(sections)
	}
	return nil
}

// printCSV prints the first listing, with the table in front of each row.
func (a *app) printCSV(table string, header bool, sections []report.Section) error {
	for _, s := range sections {
		if s.Listing == nil {
			continue
		}
		rows := make([][]string, len(s.Listing.Values))
		for i, v := range s.Listing.Values {
			rows[i] = append([]string{table}, v...)
		}
		if !header {
			return terminal.CSV(a.Out, nil, rows)
		}
		return terminal.CSV(a.Out, append([]string{"table"}, s.Listing.Keys...), rows)
	}
	return nil
}

// sections prints them with a line between.
func (a *app) sections(all []report.Section) {
	first := true
	for _, s := range all {
		if len(s.Facts)+len(s.Lines) == 0 && s.Listing == nil {
			continue
		}
		if !first {
			fmt.Fprintln(a.Out)
		}
		first = false
		if s.Title != "" {
			terminal.Wrap(a.Out, a.Width, 0, s.Title)
		}
		a.PrintFacts(s.Facts...)
		for _, l := range s.Lines {
			text, line, found := strings.Cut(l, "\n")
			terminal.Wrap(a.Out, a.Width, 4, text)
			if found { // a command, which is one line however long
				fmt.Fprintln(a.Out, "    "+terminal.OneLine(line))
			}
		}
		if s.Listing != nil && len(s.Lines) == 0 {
			a.listing(s.Listing)
		}
	}
}

func (a *app) listing(l *report.Listing) {
	left := terminal.FittingTable(a.Out, a.Width, l.Names, l.Rows, l.Right...)
	if l.More > 0 {
		a.Printf("... and %s more\n", terminal.Count(l.More))
	}
	if left > 0 {
		a.Printf("... and %s more: in a wider terminal, or by --csv\n", terminal.Plural(uint64(left), "column"))
	}
}
