package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/dsi/describe"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/ingest/source"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/writer"
)

// Ingest ingests dumps into a table.
type Ingest struct {
	app.TableArgs
	app.PopularFlag
	app.MetricsFlag
	Sources      []string      `arg:"" name:"source" help:"Files or directories in Hive layout, on a disk or at s3://, gs:// or az://bucket/path; or - for an Arrow IPC stream on standard input."`
	Format       string        `default:"auto" enum:"auto,parquet,hive,orc,csv,text,jsonl,arrow" help:"auto, parquet, hive, orc, csv or text (the same: CSV, TSV and Hive's text), jsonl or arrow."`
	SessionKey   string        `placeholder:"COLUMN" help:"Cluster rows by this column. Default: what the mapping or the table says, else the source's order is kept."`
	TimeKey      string        `placeholder:"COLUMN" help:"Order the rows of a session by this column."`
	PartitionBy  string        `placeholder:"COLUMN" help:"Partition rows by this column, besides the directories' partitions. Default: as the table is partitioned."`
	Mapping      string        `placeholder:"FILE" help:"Mapping file: names, types, kinds and roles of columns, and columns to drop. Columns that it does not name get the defaults."`
	DDL          string        `name:"ddl" placeholder:"FILE" help:"The schema of a text dump, as Hive's SHOW CREATE TABLE prints it."`
	Memory       app.Size      `default:"1GiB" placeholder:"SIZE" help:"Memory to stay within, as in 512MiB, 1GiB or 4g."`
	Dedup        writer.Dedup  `default:"auto" enum:"auto,off,runs,slots,partial,groups" placeholder:"STEP" help:"Which duplicates to look for; each step includes the ones before it: off, runs, slots, partial, groups; auto is all. A step is used only where it pays."`
	Profile      string        `placeholder:"PROFILE" help:"Store for speed (larger, faster to read), balanced, or for size (smaller, slower to read). The table remembers it. Default: what the table remembers, else balanced."`
	Overwrite    bool          `help:"Replace the partitions that the dump has rows of; in a table without partitions, the whole table. Rows that were deleted or erased are back if the dump still has them."`
	NewOnly      bool          `help:"Leave out the files that were ingested before, as in a directory that grows by a day. A file whose bytes have changed is new, with all its rows, beside those that it had: a warning says so."`
	TakeCopies   bool          `help:"Accept files of the dump that have the same bytes and the same partition; each adds its rows. Default: they are refused."`
	OnBadRow     ingest.BadRow `default:"fail" enum:"fail,quarantine" help:"fail at the first bad row, or quarantine: leave bad rows out and report them."`
	BadRowReport string        `placeholder:"FILE" help:"New file for the report of --on-bad-row quarantine; an existing file is never replaced. Default: bad-rows.jsonl, or bad-rows-2.jsonl and so on where there is one."`
	Init         bool          `help:"Create the store in a directory that is not empty, and keep what is there."`
	ShowSchema   bool          `help:"Print what each column would become, as a mapping file to edit, and ingest nothing."`
}

// Run runs the command.
func (c *Ingest) Run(ctx context.Context, e *app.Env) error {
	opts := ingest.Options{
		Format: c.Format, MappingFile: c.Mapping, DDLFile: c.DDL, SessionKey: c.SessionKey, TimeKey: c.TimeKey,
		PartitionBy: c.PartitionBy, Overwrite: c.Overwrite, NewOnly: c.NewOnly, OnBadRow: c.OnBadRow,
		TakeCopies: c.TakeCopies, SourceOptions: c.StorageOptions(),
		Options: writer.Options{Memory: int64(c.Memory), Dedup: c.Dedup, Profile: c.Profile},
	}
	if slices.Contains(c.Sources, "-") {
		opts.Stdin = e.Interruptible(ctx)
	}
	opts.BadRowReport = c.BadRowReport
	if c.OnBadRow == ingest.BadRowQuarantine && c.BadRowReport == "" {
		opts.BadRowReport, opts.NumberReports = "bad-rows.jsonl", true
	}
	if err := opts.Validate(); err != nil {
		return terminal.UsageError{Err: err}
	}
	if c.ShowSchema {
		text, err := ingest.ShowSchema(ctx, c.Sources, opts)
		if err != nil {
			return err
		}
		_, err = e.Out.Write(text)
		return err
	}
	at := c.StoreArg
	if slices.ContainsFunc(c.Sources, source.IsURI) && object.OptionsFor(c.Store, c.StorageOptions()) == nil {
		at.EndpointURL = "" // it is that of the sources
	}
	store, err := at.Create(ctx, e, c.Init)
	if err != nil {
		return err
	}
	if table, err := store.NewTable(ctx, c.Table); err == nil { // else ingest says what is wrong
		opts.Popularity, _ = c.Popularity(ctx, e, table)
	}
	bar := e.Progress("ingesting", app.UnitBytes)
	defer bar.Finish()
	written := e.Metrics.Ingest()
	opts.Progress = func(p ingest.Progress) {
		bar.Phase(string(p.Phase), p.Bytes, p.TotalBytes)
		if p.Phase == ingest.PhaseWrite {
			written(p.Rows)
		}
	}
	if !e.JSON {
		opts.Inferred = func(i source.Inferred) {
			bar.Clear()
			printInferred(e, i)
		}
	}
	report, err := ingest.Run(ctx, store, c.Table, c.Sources, opts)
	bar.Finish()
	var known *ingest.KnownSourceError
	switch {
	case errors.As(err, &known):
		return errors.New(known.Advise("--new-only", "--overwrite"))
	case errors.Is(err, ingest.ErrSameBytes):
		return fmt.Errorf("%w, or take both (--take-copies)", err)
	case errors.Is(err, ingest.ErrSameFile):
		return err
	case errors.Is(err, storage.ErrDuplicateSource) && c.NewOnly:
		return fmt.Errorf("%w, by another ingest meanwhile: run this again", err)
	case errors.Is(err, storage.ErrDuplicateSource):
		return fmt.Errorf("%w (--new-only, or --overwrite)", err)
	}
	if errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("%w; the table is as the other left it: run this again", err)
	}
	if err != nil {
		return err
	}
	if report.BadRows > 0 || report.BadFiles > 0 {
		e.Warnf("%s and %s left out: see %s", terminal.Plural(uint64(report.BadRows), "bad row"),
			terminal.Plural(uint64(report.BadFiles), "bad file"), report.BadReport)
	}
	if len(report.WidenedByBadFiles) > 0 {
		e.Warnf("bad files that were left out widened the types of features: %s; ingest without those files for "+
			"narrower types", firstNames(report.WidenedByBadFiles, shownNames))
	}
	warnReplaced(e, &report.Replaced)
	if report.Changed > 0 && report.Committed {
		e.Warnf("%s ingested before with other bytes, such as %s: the rows that it had then are still in the table, "+
			"beside those of now; to replace both, ingest all files of its partition with --overwrite (in a table "+
			"without partitions, all files)", filesWere(report.Changed), report.FirstChanged)
	}
	if len(report.Again) > 0 && !report.Replaced.Table {
		e.Warnf("features that were dropped or renamed are new ones now, which earlier rows do not have: %s; "+
			"in a mapping file (--mapping), \"drop\": true leaves such a column out, and \"rename\" reads it as the "+
			"renamed feature", firstNames(report.Again, shownNames))
	}
	if len(report.MissingRoles) > 0 {
		e.Warnf("keys or labels of the table are null in the new rows, as no file has them: %s",
			firstNames(report.MissingRoles, shownNames))
	}
	if e.JSON {
		return e.PrintJSON(report)
	}
	if !report.Committed {
		e.Printf("nothing new: %s; %s stays at snapshot %d\n", notNew(&report), terminal.OneLine(report.Table),
			report.Snapshot)
		return nil
	}
	e.PrintFacts(reportFacts(report)...)
	return c.printAdded(ctx, e, store, report)
}

// warnReplaced says what an overwrite brought back, or left behind.
func warnReplaced(e *app.Env, r *ingest.Replaced) {
	if r.DeletedRows > 0 {
		e.Warnf("the replaced partitions had %s: those that the files still have are in the table again; delete or "+
			"erase them again", terminal.Plural(r.DeletedRows, "deleted row"))
	}
	if len(r.Overlays) > 0 {
		e.Warnf("overlays that had values for replaced rows have none for the new ones: %s; extend them (dsi overlay "+
			"extend), or add another where one was merged", firstNames(r.Overlays, shownNames))
	}
	if len(r.SampleLists) > 0 {
		e.Warnf("sample lists that had replaced rows have none of the new ones: %s; create them again "+
			"(dsi samples create)", firstNames(r.SampleLists, shownNames))
	}
}

// shownInferred is how many columns of a type are named, and how many reasons given, before the ingest.
const shownInferred = 12

// printInferred says what types columns got by their values, before any row is ingested.
func printInferred(e *app.Env, i source.Inferred) {
	if len(i.Columns) == 0 {
		return
	}
	from := terminal.Plural(uint64(i.Rows), "row")
	if i.Files > 1 {
		from += " of " + terminal.Plural(uint64(i.Files), "file")
	}
	if i.Sample {
		from = "the first " + from
	}
	if i.Layout != "" {
		from += " (" + i.Layout + ")"
	}
	byType, order := map[string][]string{}, []string{}
	for _, c := range i.Columns {
		if byType[c.Type] == nil {
			order = append(order, c.Type)
		}
		byType[c.Type] = append(byType[c.Type], c.Name)
	}
	var parts []string
	for _, t := range order {
		names := byType[t]
		part := t + ": " + strings.Join(names[:min(len(names), shownInferred)], ", ")
		if more := len(names) - shownInferred; more > 0 {
			part += fmt.Sprintf(" and %s more", terminal.Count(more))
		}
		parts = append(parts, part)
	}
	terminal.Wrap(e.Out, e.Width, 2, fmt.Sprintf("types inferred from %s: %s", from, strings.Join(parts, "; ")))
	reasons := 0       // and hints, a line each
	var whole []string // floats that may be integers
	hint := ""
	for _, c := range i.Columns {
		switch {
		case c.Because != "":
			if reasons++; reasons <= shownInferred {
				because := c.Because
				if c.Hint != "" {
					because += "; " + c.Hint
				}
				e.Printf("  %s is a %s because of %s\n", terminal.OneLine(c.Name), c.Type, terminal.OneLine(because))
			}
		case c.Hint != "" && c.Type == "string":
			if reasons++; reasons <= shownInferred {
				e.Printf("  %s %s\n", terminal.OneLine(c.Name), terminal.OneLine(c.Hint))
			}
		case c.Hint != "":
			whole, hint = append(whole, terminal.OneLine(c.Name)), cmp.Or(hint, terminal.OneLine(c.Hint))
		}
	}
	if more := reasons - shownInferred; more > 0 {
		e.Printf("  and %s more\n", terminal.Plural(uint64(more), "column"))
	}
	if len(whole) > 0 {
		e.Printf("  %s: %s\n", firstNames(whole, shownNames), hint)
	}
	_ = e.Out.Flush() // before the ingest; an error comes again with the rest
}

const (
	shownFeatures = 20 // how many new features ingest lists
	shownNames    = 6  // how many names a remark or a warning has
)

// printAdded shows the schema that was inferred for the features that the table did not have.
func (c *Ingest) printAdded(ctx context.Context, e *app.Env, store *storage.Store, r ingest.Report) error {
	if len(r.Added) == 0 {
		return nil
	}
	snap, err := app.AtFlag{At: app.Moment{Number: r.Snapshot}}.Snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	features, err := snap.Lookup(ctx, r.Added[:min(len(r.Added), shownFeatures)]...)
	if err != nil {
		return err
	}
	infos := make([]describe.FeatureJSON, len(features))
	for i, f := range features {
		infos[i] = describe.NewFeatureJSON(f)
	}
	e.Printf("\n")
	describe.PrintFeatures(e, infos)
	if more := len(r.Added) - len(features); more > 0 {
		e.Printf("... and %s more: dsi features %s\n", terminal.Count(more), c.Place().Typed())
	}
	return nil
}

func reportFacts(r ingest.Report) [][2]string {
	d, s := r.Duplicates, r.Seconds
	duplicates := describe.Duplicates{
		Factor: d.Factor, Slots: uint64(d.Slots), RowSlots: uint64(d.RowSlots), Partial: uint64(d.Partial),
		Groups: uint64(d.Groups), Grouped: uint64(d.GroupFeatures), SavedBytes: uint64(d.BytesSaved),
	}
	written := [2]string{"segments", terminal.Count(r.Segments)}
	if r.Partitioned {
		written = [2]string{"partitions", fmt.Sprintf("%s in %s", terminal.Count(r.Partitions),
			terminal.Plural(uint64(r.Segments), "segment"))}
	}
	facts := [][2]string{
		{"table", fmt.Sprintf("%s, snapshot %d", r.Table, r.Snapshot)},
		{"rows", fmt.Sprintf("%s from %s", terminal.Count(r.Rows), terminal.Plural(uint64(r.Files), "file"))},
		written,
		{"features", fmt.Sprintf("%s, %s new, %s widened", terminal.Count(r.Features), terminal.Count(len(r.Added)),
			terminal.Count(len(r.Widened)))},
		{"bytes", fmt.Sprintf("%s in the files, %s decoded, %s stored", terminal.Bytes(uint64(r.BytesIn)),
			terminal.Bytes(uint64(r.BytesRaw)), terminal.Bytes(uint64(r.BytesOut)))},
		{"duplicates", duplicates.String()},
		{"time", fmt.Sprintf("%.1f s: check %.1f, read %.1f (spill %.1f), write %.1f, commit %.1f",
			s.Total, s.Check, s.Read, s.Spill, s.Write, s.Commit)},
	}
	add := func(name, value string) { facts = append(facts, [2]string{name, value}) }
	if r.Replaced.Partitions > 0 {
		what := terminal.Plural(uint64(r.Replaced.Partitions), "partition")
		if r.Replaced.Table {
			what = "the whole table, which has no partitions"
		}
		add("replaced", fmt.Sprintf("%s: %s, still in snapshot %d", what, terminal.Plural(r.Replaced.Rows, "row"),
			r.Snapshot-1))
	}
	if r.Known > 0 {
		add("known", fmt.Sprintf("%s ingested before, and left out", filesWere(r.Known)))
	}
	if n := len(r.Missing); n > 0 {
		add("missing", fmt.Sprintf("%s of the table, null in the new rows: %s",
			terminal.Plural(uint64(n), "feature"), firstNames(r.Missing, shownNames)))
	}
	if r.Spills > 0 {
		add("spilled", spilled(r.SpillBytes, r.Spills))
	}
	if r.Profile != "balanced" {
		add("profile", r.Profile)
	}
	if len(r.Widened) > 0 {
		add("widened", firstNames(r.Widened, shownFeatures))
	}
	if len(r.Valueless) > 0 {
		add("left out", firstNames(r.Valueless, shownFeatures)+": no values yet, and so no type")
	}
	return facts
}

// filesWere returns a number of files and the verb.
func filesWere(n int) string {
	were := " were"
	if n == 1 {
		were = " was"
	}
	return terminal.Plural(uint64(n), "file") + were
}

// notNew says why an ingest of new files only committed nothing.
func notNew(r *ingest.Report) string {
	var why []string
	if r.Known > 0 {
		why = append(why, filesWere(r.Known)+" ingested before")
	}
	if read := r.Files - r.BadFiles; read > 0 {
		why = append(why, terminal.Plural(uint64(read), "new file")+" without rows")
	}
	return strings.Join(why, ", ")
}

// firstNames returns the first of some names, and how many more there are.
func firstNames(names []string, shown int) string {
	list := strings.Join(names[:min(len(names), shown)], ", ")
	if more := len(names) - shown; more > 0 {
		list += fmt.Sprintf(" and %s more", terminal.Count(more))
	}
	return list
}

// spilled says how much was sorted on disk.
func spilled[T int | int64](bytes int64, runs T) string {
	return fmt.Sprintf("%s in %s", terminal.Bytes(uint64(bytes)), terminal.Plural(uint64(runs), "run"))
}
