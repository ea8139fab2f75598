package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/writer"
)

// rewriteFlags say how segments are rewritten.
type rewriteFlags struct {
	SegmentRows uint64 `placeholder:"N" default:"1048576" help:"Rows of a segment, about."`
	Memory      size   `default:"1GiB" placeholder:"SIZE" help:"Memory to stay within, as in 512MiB, 1GiB or 4g. Default: ${default}."`
	Rate        size   `placeholder:"SIZE" help:"Read no more than this in a second, and write no more than this. Default: no limit."`
}

// openThrottled opens the store so that its reads and writes keep the rate.
func (f rewriteFlags) openThrottled(ctx context.Context, s storeArg) (*storage.Store, error) {
	store, err := s.open(ctx)
	if err != nil || f.Rate == 0 {
		return store, err
	}
	blobs := object.NewThrottled(store.Blobs(), int64(f.Rate))
	if err := store.Close(); err != nil {
		return nil, err
	}
	if store, err = storage.Open(ctx, blobs, storage.Options{}); err == nil {
		metricsOf(ctx).AddStore(store)
	}
	return store, err
}

func (f rewriteFlags) options() compaction.Options {
	return compaction.Options{SegmentRows: f.SegmentRows, Owner: "dsi of " + whoami(), Write: writer.Options{Memory: int64(f.Memory)}}
}

type compactCmd struct {
	tableArgs
	rewriteFlags
	popularFlag
	metricsFlag
	Partition    string  `placeholder:"EXPR" help:"Only these partitions, as in ds >= '2026-11-01'."`
	DryRun       bool    `help:"Print what would be rewritten, and why, and write nothing."`
	Full         bool    `help:"Merge all small segments of a partition, however few there are."`
	Repack       bool    `help:"Rewrite every segment."`
	Fanout       int     `placeholder:"N" default:"4" help:"Merge small segments when there are so many of about one size. Default: ${default}."`
	DeletedShare float64 `placeholder:"SHARE" default:"0.1" help:"Rewrite segments of which so much is deleted. Default: ${default}."`
	DroppedShare float64 `placeholder:"SHARE" default:"0.1" help:"Rewrite segments of which so much is dropped features. Default: ${default}."`
	SharedShare  float64 `placeholder:"SHARE" default:"0.1" help:"Merge large segments when several of them have so much of the sessions; above 1 never. Default: ${default}."`
}

// compactJSON is what compact prints with --json.
type compactJSON struct {
	Store  string             `json:"store"`
	DryRun bool               `json:"dry_run"`
	Plan   *compaction.Plan   `json:"plan"`
	Read   *readJSON          `json:"read,omitempty"` // what Plan's order of packs was made of
	Report *compaction.Report `json:"report,omitempty"`
}

func (c *compactCmd) Run(ctx context.Context, a *app) error {
	opts := c.options()
	opts.Partition, opts.Full, opts.Repack, opts.Fanout = c.Partition, c.Full, c.Repack, c.Fanout
	opts.DeletedShare, opts.DroppedShare, opts.SharedShare = c.DeletedShare, c.DroppedShare, c.SharedShare
	if err := opts.Validate(); err != nil {
		return usageError{Err: err}
	}
	store, err := c.openThrottled(ctx, c.storeArg)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := store.Table(ctx, c.Table)
	if err != nil {
		return err
	}
	var read *readJSON
	opts.Popularity, read = c.popularity(ctx, a, table)
	plan, err := compaction.NewPlan(ctx, table, opts)
	if err != nil {
		return err
	}
	out := compactJSON{Store: store.Blobs().URI(), DryRun: c.DryRun, Plan: plan, Read: read}
	if !a.json {
		a.printLines(plan.String())
		if read != nil && plan.Packs != nil {
			a.printf("%s\n", read)
		}
	}
	if !c.DryRun {
		out.Report, err = a.compact(ctx, store, table, plan, opts)
	}
	if err != nil && (out.Report == nil || out.Report.Snapshot == 0) {
		return err
	}
	// Of an error too: what was committed before it stays.
	if a.json {
		return errors.Join(a.printJSON(out), err)
	}
	if out.Report != nil {
		a.printCompaction(out.Report)
	}
	return err
}

// compact runs a plan.
func (a *app) compact(ctx context.Context, store *storage.Store, table *storage.Table, plan *compaction.Plan, opts compaction.Options) (*compaction.Report, error) {
	if err := a.flush(); err != nil {
		return nil, err
	}
	bar := a.progress("compacting", unitBytes)
	defer bar.finish()
	opts.Progress = func(p compaction.Progress) {
		bar.phase(fmt.Sprintf("job %d of %d", p.Job, p.Jobs), p.Bytes, p.TotalBytes)
	}
	r, err := compaction.Run(ctx, table, plan, opts)
	bar.finish()
	if errors.Is(err, storage.ErrConflict) {
		err = fmt.Errorf("%w; what was committed stays: run this again", err)
	}
	if ctx.Err() == nil {
		a.rollup(ctx, store, table.Name())
	}
	return r, err
}

// printLines prints text of several lines, each as oneLine leaves it, but with its indentation.
func (a *app) printLines(text string) {
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		a.printf("%s%s\n", line[:indent], oneLine(line))
	}
}

func (a *app) printCompaction(r *compaction.Report) {
	var in, out, read uint64
	var gone, made int
	for _, j := range r.Jobs {
		if j.LeftOut != "" {
			a.printf("%s: %s\n", oneLine(j.Partition), oneLine(j.LeftOut))
			continue
		}
		gone, made = gone+j.Removed, made+j.Made
		in, out, read = in+j.BytesIn, out+j.BytesOut+j.LayersOut, read+j.BytesRead
		if j.KeptOrder {
			a.printf("%s: rows are not in the order of the table's keys, and stay in theirs\n", oneLine(j.Partition))
		}
	}
	if r.Snapshot == 0 {
		a.printf("nothing was rewritten\n")
		return
	}
	a.printf("snapshot %d: %s, %s, became %s, %s; %s were read, in %.1f s\n", r.Snapshot, plural(uint64(gone), "segment"), bytesText(in),
		plural(uint64(made), "segment"), bytesText(out), bytesText(read), r.Seconds)
}
