package maintain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/usage"
)

// Usage says who read what of a table, by its usage records.
type Usage struct {
	List   usageList   `cmd:"" help:"Say which jobs read a table, how much, and what it cost them." example:"dsi usage list store ads"`
	Rollup usageRollup `cmd:"" help:"Merge usage records by day, and remove old ones. gc and compact do this too." example:"dsi usage rollup store ads"`
}

type usageList struct {
	app.TableArgs
	Since terminal.Day `placeholder:"DAY|DAYS" help:"Only reads from this day on (UTC), or of this many days, as in 2026-11-01 or 30d. Default: all that is kept."`
}

// usageJSON is what usage list prints with --json. Times of threads and requests are added up.
type usageJSON struct {
	Store    string         `json:"store"`
	Table    string         `json:"table"`
	Jobs     []usageJobJSON `json:"jobs"`
	Records  uint64         `json:"records"` // objects
	Rollups  uint64         `json:"rollups"`
	Damaged  uint64         `json:"records_damaged"`
	Features int            `json:"features"` // that anybody read
}

type usageJobJSON struct {
	Job             string   `json:"job"`
	User            string   `json:"user"`
	Programs        []string `json:"programs"`
	Purposes        []string `json:"purposes"`
	Start           string   `json:"first"`
	End             string   `json:"last"`
	Days            int      `json:"days"`
	Readers         uint64   `json:"readers"`
	Features        int      `json:"features"`
	Rows            uint64   `json:"rows"`
	Batches         uint64   `json:"batches"`
	Requests        uint64   `json:"requests"`
	BytesNeeded     uint64   `json:"bytes_needed"`
	BytesUnneeded   uint64   `json:"bytes_unneeded"`
	SentReads       uint64   `json:"sent_reads"` // to a service of stores, as often as they were sent
	SentLists       uint64   `json:"sent_lists"`
	BytesDown       uint64   `json:"bytes_down"`
	BytesCached     uint64   `json:"bytes_cached"`
	StallSeconds    float64  `json:"stall_seconds"`
	DecodeSeconds   float64  `json:"decode_seconds"`
	AssembleSeconds float64  `json:"assemble_seconds"`
	ReadSeconds     float64  `json:"read_seconds"`
	DedupeFactor    float64  `json:"dedupe_factor"`
	EmittedFactor   float64  `json:"emitted_factor"`

	last time.Time
}

func (c *usageList) Run(ctx context.Context, e *app.Env) error {
	table, err := c.OpenTable(ctx, e)
	if err != nil {
		return err
	}
	s, err := usage.Load(ctx, table, c.Since.Since(time.Now()), time.Time{})
	if err != nil {
		return err
	}
	out := usageJSON{
		Store: table.Store().Blobs().URI(), Table: c.Table, Jobs: []usageJobJSON{}, Records: s.Records,
		Rollups: s.Rollups, Damaged: s.DamagedCount, Features: len(s.Features),
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		out.Jobs = append(out.Jobs, usageJobJSON{
			Job: j.Job, User: j.User, Programs: j.Programs, Purposes: j.Purposes, Start: j.Start.Format(time.RFC3339),
			End: j.End.Format(time.RFC3339), Days: len(j.Days), Readers: j.Readers, Features: len(j.Features),
			Rows:    j.Rows,
			Batches: j.Batches, Requests: j.Requests, BytesNeeded: j.BytesNeeded, BytesUnneeded: j.BytesUnneeded,
			SentReads: j.SentReads, SentLists: j.SentLists, BytesDown: j.BytesDown, BytesCached: j.BytesCached,
			StallSeconds: j.Stall.Seconds(), DecodeSeconds: j.Decode.Seconds(), AssembleSeconds: j.Assemble.Seconds(),
			ReadSeconds: j.Read.Seconds(), DedupeFactor: j.StoredFactor(), EmittedFactor: j.EmittedFactor(),
			last: j.End,
		})
	}
	err = terminal.PrintList(e.Env, out, fmt.Sprintf("nobody read %s, as far as is recorded",
		terminal.OneLine(c.Table)),
		"job, user, purpose, #readers, #features, #rows, #needed, #unneeded, #waited, #dedupe, last",
		out.Jobs, usageJobJSON.row)
	if err == nil && !e.JSON {
		printDamagedRecords(e, s.Damages)
	}
	return err
}

// row returns what usage list prints.
func (j usageJobJSON) row() []string {
	return []string{
		j.Job, j.User, strings.Join(j.Purposes, ","), terminal.Count(j.Readers), terminal.Count(j.Features),
		terminal.Count(j.Rows),
		terminal.Bytes(j.BytesNeeded), terminal.Bytes(j.BytesUnneeded), fmt.Sprintf("%.1f s", j.StallSeconds),
		fmt.Sprintf("%.2f", j.DedupeFactor), terminal.Time(j.last),
	}
}

type usageRollup struct {
	app.StoreArg
	Table  string     `arg:"" optional:"" help:"This table only."`
	Keep   app.Period `default:"400d" placeholder:"TIME" help:"Remove records older than this."`
	DryRun bool       `help:"Say what would be done, and do nothing."`
}

// rollupJSON is what usage rollup prints with --json.
type rollupJSON struct {
	Store   string `json:"store"`
	DryRun  bool   `json:"dry_run"`
	Tables  uint64 `json:"tables"`
	Days    uint64 `json:"days"`
	Merged  uint64 `json:"records_merged"`
	Young   uint64 `json:"records_young"`
	Expired uint64 `json:"days_expired"`
	Removed uint64 `json:"objects_removed"`
	Damaged uint64 `json:"records_damaged"`
}

func (c *usageRollup) Run(ctx context.Context, e *app.Env) error {
	if c.Keep <= 0 {
		return terminal.Usagef("--keep %v: want a time, as in 400d", c.Keep)
	}
	store, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	tables, err := app.Tables(ctx, store, c.Table)
	if err != nil {
		return err
	}
	out := rollupJSON{Store: store.Blobs().URI(), DryRun: c.DryRun}
	var damaged usage.Damages
	for _, t := range tables {
		r, err := usage.Rollup(ctx, t, usage.RollupOptions{Keep: time.Duration(c.Keep), DryRun: c.DryRun})
		if err != nil {
			return err
		}
		out.Tables++
		out.Days += r.Days
		out.Merged += r.Merged
		out.Young += r.Young
		out.Expired += r.Expired
		out.Removed += r.Removed
		out.Damaged += r.DamagedCount
		damaged.Add(r.Damages)
	}
	if e.JSON {
		return e.PrintJSON(out)
	}
	e.Printf("%s %s into rollups of %s; %s too young, %s too long ago\n", terminal.Did(c.DryRun, "merged", "merge"),
		terminal.Plural(out.Merged, "record"), terminal.Plural(out.Days, "day"), terminal.Plural(out.Young,
			"record"), terminal.Plural(out.Expired, "day"))
	printDamagedRecords(e, damaged)
	return nil
}

// rollup rolls the usage records of a table up, of all where none is named. Nothing depends on it.
func rollup(ctx context.Context, e *app.Env, store *storage.Store, table string) {
	names, _ := app.TableNames(ctx, store, table) // an error: the caller has seen them
	for _, name := range names {
		t, err := store.NewTable(ctx, name)
		if err == nil {
			_, err = usage.Rollup(ctx, t, usage.RollupOptions{})
		}
		if err != nil && ctx.Err() == nil {
			e.Warnf("%s", terminal.ErrorText(err))
		}
	}
}

// verifyUsage looks for damaged usage records. A table that is damaged itself has records, too.
func verifyUsage(ctx context.Context, store *storage.Store, table string) (out usage.Damages, err error) {
	names, err := app.TableNames(ctx, store, table)
	if err != nil {
		return out, err
	}
	for _, name := range names {
		t, err := store.NewTable(ctx, name)
		if err != nil {
			return out, err
		}
		c, err := usage.Verify(ctx, t)
		if err != nil {
			return out, err
		}
		out.Add(c.Damages)
	}
	return out, nil
}

func printDamagedRecords(e *app.Env, all usage.Damages) {
	for _, d := range all.Damaged {
		e.Printf("passed over: %s\n", terminal.ErrorText(d.Err))
	}
	if all.DamagedCount > 0 {
		be := "are"
		if all.DamagedCount == 1 {
			be = "is"
		}
		e.Printf("%s of usage records %s damaged; the table is not affected\n",
			terminal.Plural(all.DamagedCount, "object"), be)
	}
}
