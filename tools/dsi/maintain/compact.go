package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/writer"
)

// rewriteFlags say how segments are rewritten.
type rewriteFlags struct {
	SegmentRows uint64   `placeholder:"N" default:"1048576" help:"Target number of rows per segment."`
	Rate        app.Size `placeholder:"SIZE" help:"Read at most this many bytes per second, and write at most as many. Default: no limit."`
}

func (f rewriteFlags) options(memory app.Size) compaction.Options {
	return compaction.Options{
		SegmentRows: f.SegmentRows, Owner: "dsi of " + app.WhoAmI(), Write: writer.Options{Memory: int64(memory)},
	}
}

// Compact rewrites segments into fewer, better ones.
type Compact struct {
	app.TableArgs
	rewriteFlags
	app.PopularFlag
	app.MetricsFlag
	Memory       app.Size `default:"1GiB" placeholder:"SIZE" help:"Memory to stay within, as in 512MiB, 1GiB or 4g."`
	Partition    string   `placeholder:"EXPR" help:"Only these partitions, as in ds >= '2026-11-01'."`
	DryRun       bool     `help:"Print what would be rewritten, and why, and write nothing."`
	Full         bool     `help:"Merge all small segments of a partition, however few there are."`
	Repack       bool     `help:"Rewrite every segment."`
	Fanout       int      `placeholder:"N" default:"4" help:"Merge small segments if there are this many of similar size."`
	DeletedShare float64  `placeholder:"SHARE" default:"0.1" help:"Rewrite segments if at least this share of their rows is deleted."`
	DroppedShare float64  `placeholder:"SHARE" default:"0.1" help:"Rewrite segments if at least this share of their bytes belongs to dropped features."`
	SharedShare  float64  `placeholder:"SHARE" default:"0.1" help:"Merge large segments if at least this share of a partition's sessions is spread over several of them; above 1, never."`
}

// compactJSON is what compact prints with --json.
type compactJSON struct {
	Store  string             `json:"store"`
	DryRun bool               `json:"dry_run"`
	Plan   *compaction.Plan   `json:"plan"`
	Read   *app.RecentUsage   `json:"read,omitempty"` // what Plan's order of packs was made of
	Report *compaction.Report `json:"report,omitempty"`
}

// Run runs the command.
func (c *Compact) Run(ctx context.Context, e *app.Env) error {
	opts := c.options(c.Memory)
	opts.Partition, opts.Full, opts.Repack, opts.Fanout = c.Partition, c.Full, c.Repack, c.Fanout
	// 0 would be the default: any share is meant.
	opts.DeletedShare = cmp.Or(c.DeletedShare, math.SmallestNonzeroFloat64)
	opts.DroppedShare = cmp.Or(c.DroppedShare, math.SmallestNonzeroFloat64)
	opts.SharedShare = cmp.Or(c.SharedShare, math.SmallestNonzeroFloat64)
	if err := opts.Validate(); err != nil {
		return terminal.UsageError{Err: err}
	}
	store, err := c.OpenAt(ctx, e, int64(c.Rate))
	if err != nil {
		return err
	}
	table, err := store.Table(ctx, c.Table)
	if err != nil {
		return err
	}
	var read *app.RecentUsage
	opts.Popularity, read = c.Popularity(ctx, e, table)
	plan, err := compaction.NewPlan(ctx, table, opts)
	if err != nil {
		return err
	}
	out := compactJSON{Store: store.Blobs().URI(), DryRun: c.DryRun, Plan: plan, Read: read}
	if !e.JSON {
		printLines(e, plan.String())
		if read != nil && plan.Packs != nil {
			e.Printf("%s\n", read)
		}
	}
	if !c.DryRun {
		out.Report, err = compact(ctx, e, table, plan, opts)
	}
	if err != nil && (out.Report == nil || out.Report.Snapshot == 0) {
		return err
	}
	// Of an error too: what was committed before it stays.
	if e.JSON {
		return errors.Join(e.PrintJSON(out), err)
	}
	if out.Report != nil && len(plan.Jobs) > 0 {
		printCompaction(e, out.Report)
	}
	return err
}

// compact runs a plan.
func compact(ctx context.Context, e *app.Env, table *storage.Table, plan *compaction.Plan,
	opts compaction.Options) (*compaction.Report, error) {
	if err := e.Out.Flush(); err != nil {
		return nil, err
	}
	var finish func()
	opts.Progress, finish = progress(e, "compacting")
	r, err := compaction.Run(ctx, table, plan, opts)
	finish()
	if errors.Is(err, storage.ErrConflict) {
		err = fmt.Errorf("%w; what was committed stays: run this again", err)
	}
	if ctx.Err() == nil {
		rollup(ctx, e, table.Store(), table.Name())
	}
	return r, err
}

// progress returns what shows the progress of a compaction, and what ends it.
func progress(e *app.Env, what string) (show func(compaction.Progress), finish func()) {
	bar := e.Progress(what, app.UnitBytes)
	return func(p compaction.Progress) {
		bar.Phase(fmt.Sprintf("job %d of %d", p.Job, p.Jobs), p.Bytes, p.TotalBytes)
	}, bar.Finish
}

// printLines prints text of several lines, each as oneLine leaves it, but with its indentation.
func printLines(e *app.Env, text string) {
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		e.Printf("%s%s\n", line[:indent], terminal.OneLine(line))
	}
}

func printCompaction(e *app.Env, r *compaction.Report) {
	var in, out, read uint64
	var gone, made int
	for _, j := range r.Jobs {
		if j.LeftOut != "" {
			e.Printf("%s: %s\n", terminal.OneLine(j.Partition), terminal.OneLine(j.LeftOut))
			continue
		}
		gone, made = gone+j.Removed, made+j.Made
		in, out, read = in+j.BytesIn, out+j.BytesOut+j.LayersOut, read+j.BytesRead
		if j.KeptOrder {
			e.Printf("%s: rows are not in the order of the table's keys, and stay in theirs\n",
				terminal.OneLine(j.Partition))
		}
	}
	if r.Snapshot == 0 {
		e.Printf("nothing was rewritten\n")
		return
	}
	e.Printf("snapshot %d: %s, %s, became %s, %s; %s were read, in %.1f s\n", r.Snapshot,
		terminal.Plural(uint64(gone), "segment"), terminal.Bytes(in),
		terminal.Plural(uint64(made), "segment"), terminal.Bytes(out), terminal.Bytes(read), r.Seconds)
}
