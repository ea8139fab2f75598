package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/writer"
)

type ingestCmd struct {
	tableArgs
	popularFlag
	metricsFlag
	Sources      []string      `arg:"" name:"source" help:"Files, directories in Hive layout, or - for an Arrow IPC stream on standard input."`
	Format       string        `default:"auto" enum:"auto,parquet,hive,orc,text,jsonl,arrow" help:"auto, parquet, hive, orc, text, jsonl or arrow."`
	SessionKey   string        `placeholder:"COLUMN" help:"Cluster rows by this column. Default: what the mapping or the table says, else the source's order is kept."`
	TimeKey      string        `placeholder:"COLUMN" help:"Order the rows of a session by this column."`
	PartitionBy  string        `placeholder:"COLUMN" help:"Partition rows by this column, besides the directories' partitions. Default: as the table is partitioned."`
	Mapping      string        `placeholder:"FILE" help:"Say what columns are: rename, kind, role, drop."`
	DDL          string        `name:"ddl" placeholder:"FILE" help:"The schema of a text dump, as Hive's SHOW CREATE TABLE prints it."`
	Memory       size          `default:"1GiB" placeholder:"SIZE" help:"Memory to stay within, as in 512MiB, 1GiB or 4g. Default: ${default}."`
	Dedup        writer.Dedup  `default:"auto" enum:"auto,off,runs,slots,partial,groups" placeholder:"STEP" help:"How far to look for duplicates, each with those before: off, runs, slots, partial, groups; auto is all. Each is used where it pays."`
	Profile      string        `placeholder:"PROFILE" help:"What to store the table for: speed (larger, read sooner), balanced, or size (smaller, read later). The table remembers it. Default: what the table remembers, else balanced."`
	Overwrite    bool          `help:"Replace the partitions that the dump has."`
	TakeCopies   bool          `help:"Take files of the dump that hold the same bytes for the same partition, each for its rows. Default: they are refused."`
	OnBadRow     ingest.BadRow `default:"fail" enum:"fail,quarantine" help:"fail at the first bad row, or quarantine: leave bad rows out and report them."`
	BadRowReport string        `default:"bad-rows.jsonl" placeholder:"FILE" help:"Where --on-bad-row quarantine reports. Default: ${default}."`
	Init         bool          `help:"Make the store in a directory that is not empty, beside what is there."`
	ShowSchema   bool          `help:"Print, as a mapping file to edit, what would become of each column, and ingest nothing."`
}

func (c *ingestCmd) Run(ctx context.Context, a *app) error {
	opts := ingest.Options{
		Format: c.Format, MappingFile: c.Mapping, DDLFile: c.DDL, SessionKey: c.SessionKey, TimeKey: c.TimeKey, PartitionBy: c.PartitionBy, Overwrite: c.Overwrite, OnBadRow: c.OnBadRow, TakeCopies: c.TakeCopies,
		Options: writer.Options{Memory: int64(c.Memory), Dedup: c.Dedup, Profile: c.Profile},
	}
	if slices.Contains(c.Sources, "-") {
		opts.Stdin = interruptible(ctx, a.in)
	}
	if c.OnBadRow == ingest.BadRowQuarantine {
		opts.BadRowReport = c.BadRowReport
	}
	if err := opts.Validate(); err != nil {
		return usageError{Err: err}
	}
	if c.ShowSchema {
		text, err := ingest.ShowSchema(ctx, c.Sources, opts)
		if err != nil {
			return err
		}
		_, err = a.out.Write(text)
		return err
	}
	store, err := c.create(ctx, c.Init)
	if err != nil {
		return err
	}
	defer store.Close()
	if table, err := store.NewTable(ctx, c.Table); err == nil { // else ingest says what is wrong
		opts.Popularity, _ = c.popularity(ctx, a, table)
	}
	bar := a.progress("ingesting", unitBytes)
	defer bar.finish()
	written := metricsOf(ctx).Ingest()
	opts.Progress = func(p ingest.Progress) {
		bar.phase(string(p.Phase), p.Bytes, p.TotalBytes)
		if p.Phase == ingest.PhaseWrite {
			written(p.Rows)
		}
	}
	report, err := ingest.Run(ctx, store, c.Table, c.Sources, opts)
	bar.finish()
	switch {
	case errors.Is(err, ingest.ErrSameBytes):
		return fmt.Errorf("%w, or take both (--take-copies)", err)
	case errors.Is(err, storage.ErrDuplicateSource) && !errors.Is(err, ingest.ErrSameFile):
		return fmt.Errorf("%w (--overwrite)", err)
	}
	if errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("%w; the table is as the other left it: run this again", err)
	}
	if err != nil {
		return err
	}
	if report.BadRows > 0 || report.BadFiles > 0 {
		fmt.Fprintf(a.err, "dsi: %s and %s left out: see %s\n", plural(uint64(report.BadRows), "bad row"), plural(uint64(report.BadFiles), "bad file"), opts.BadRowReport)
	}
	if a.json {
		return a.printJSON(report)
	}
	a.printFacts(reportFacts(report))
	return c.printAdded(ctx, a, report)
}

// interruptible returns r, except that a Read which waits for input ends when ctx does.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(in, struct{ io.Reader }{r}, make([]byte, 256<<10))
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	return out
}

// shownFeatures is how many new features ingest lists.
const shownFeatures = 20

// printAdded shows the schema that was inferred for the features that the table did not have.
func (c *ingestCmd) printAdded(ctx context.Context, a *app, r ingest.Report) error {
	if len(r.Added) == 0 {
		return nil
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := atFlag{At: moment{number: r.Snapshot}}.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	features, err := snap.Lookup(ctx, r.Added[:min(len(r.Added), shownFeatures)]...)
	if err != nil {
		return err
	}
	infos := make([]featureJSON, len(features))
	for i, f := range features {
		infos[i] = featureInfo(f)
	}
	a.printf("\n")
	a.printFeatures(infos)
	if more := len(r.Added) - len(features); more > 0 {
		a.printf("... and %s more: dsi features %s %s\n", countText(more), c.Store, c.Table)
	}
	return nil
}

func ingestedDuplicates(d writer.Duplicates) duplicates {
	return duplicates{
		factor: d.Factor, slots: d.Slots, rowSlots: d.RowSlots, partial: uint64(d.Partial),
		groups: uint64(d.Groups), grouped: uint64(d.GroupFeatures), saved: uint64(d.BytesSaved),
	}
}

func reportFacts(r ingest.Report) [][2]string {
	facts := [][2]string{
		{"table", fmt.Sprintf("%s, snapshot %d", r.Table, r.Snapshot)},
		{"rows", fmt.Sprintf("%s from %s", countText(r.Rows), plural(uint64(r.Files), "file"))},
		{"partitions", fmt.Sprintf("%s in %s", countText(r.Partitions), plural(uint64(r.Segments), "segment"))},
		{"features", fmt.Sprintf("%s, %s new, %s widened", countText(r.Features), countText(len(r.Added)), countText(len(r.Widened)))},
		{"bytes", fmt.Sprintf("%s in the files, %s decoded, %s stored", bytesText(uint64(r.BytesIn)), bytesText(uint64(r.BytesRaw)), bytesText(uint64(r.BytesOut)))},
		{"duplicates", ingestedDuplicates(r.Duplicates).text()},
		{"time", fmt.Sprintf("%.1f s: check %.1f, read %.1f (spill %.1f), write %.1f, commit %.1f", r.Seconds.Total, r.Seconds.Check,
			r.Seconds.Read, r.Seconds.Spill, r.Seconds.Write, r.Seconds.Commit)},
	}
	if r.Replaced > 0 {
		facts = append(facts, [2]string{"replaced", plural(uint64(r.Replaced), "partition")})
	}
	if r.Spills > 0 {
		facts = append(facts, [2]string{"spilled", fmt.Sprintf("%s in %s", bytesText(uint64(r.SpillBytes)), plural(uint64(r.Spills), "run"))})
	}
	if r.Profile != "balanced" {
		facts = append(facts, [2]string{"profile", r.Profile})
	}
	if len(r.Widened) > 0 {
		facts = append(facts, [2]string{"widened", strings.Join(r.Widened[:min(len(r.Widened), shownFeatures)], ", ")})
	}
	return facts
}
