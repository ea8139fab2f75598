package maintain

import (
	"context"
	"time"

	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Expire lets old snapshots expire.
type Expire struct {
	app.TableArgs
	KeepLast    uint64     `help:"Keep this many of the newest, not counting those by which expire, gc or erase removed history." placeholder:"N"`
	YoungerThan app.Period `help:"Keep snapshots that were the newest at any time within this period, such as 24h or 7d." placeholder:"TIME"`
	DryRun      bool       `help:"Say what would expire, and who holds what, and change nothing."`
}

// expireJSON is what snapshots expire prints with --json.
type expireJSON struct {
	Store    string     `json:"store"`
	Table    string     `json:"table"`
	DryRun   bool       `json:"dry_run"`
	Oldest   uint64     `json:"oldest"`
	Expired  []uint64   `json:"snapshots_expired"`
	Held     []holdJSON `json:"held"`
	Snapshot uint64     `json:"snapshot,omitempty"` // the one made
}

// holdJSON is an expired snapshot that stays.
type holdJSON struct {
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot"`
	By       string `json:"by"`
}

func holdsJSON(holds []gc.Hold) []holdJSON {
	out := []holdJSON{}
	for _, h := range holds {
		out = append(out, holdJSON{h.Table, h.Snapshot, h.By})
	}
	return out
}

func printHolds(e *app.Env, holds []holdJSON) {
	for _, h := range holds {
		e.Printf("snapshot %d of %s is held: %s\n", h.Snapshot, terminal.OneLine(h.Table), terminal.OneLine(h.By))
	}
}

// Run runs the command.
func (c *Expire) Run(ctx context.Context, e *app.Env) error {
	if c.YoungerThan < 0 {
		return terminal.Usagef("--younger-than %v: want none negative", c.YoungerThan)
	}
	if c.KeepLast == 0 && c.YoungerThan == 0 {
		return terminal.Usagef("say which snapshots stay: --keep-last N, --younger-than TIME, or both")
	}
	table, err := c.OpenTable(ctx, e)
	if err != nil {
		return err
	}
	r, err := table.Expire(ctx, gc.ExpireOptions{KeepLast: c.KeepLast, YoungerThan: time.Duration(c.YoungerThan),
		DryRun: c.DryRun})
	if err != nil {
		return err
	}
	out := expireJSON{
		table.Store().Blobs().URI(), c.Table, r.DryRun, r.Oldest, append([]uint64{}, r.Expired...), holdsJSON(r.Held),
		r.Snapshot,
	}
	if e.JSON {
		return e.PrintJSON(out)
	}
	if len(out.Expired) == 0 {
		e.Printf("nothing expires: the oldest snapshot of %s is %d\n", terminal.OneLine(c.Table), out.Oldest)
	} else {
		e.Printf("%s: %s of %s, %d to %d; the oldest is now %d\n", terminal.Did(c.DryRun, "expired", "expire"),
			terminal.Plural(uint64(len(out.Expired)),
				"snapshot"), terminal.OneLine(c.Table), out.Expired[0], out.Expired[len(out.Expired)-1], out.Oldest)
		if !c.DryRun {
			e.Printf("dsi gc removes them, and what only they have, after its grace period\n")
		}
	}
	printHolds(e, out.Held)
	return nil
}
