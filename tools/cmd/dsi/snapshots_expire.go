package main

import (
	"context"
	"time"

	"github.com/dsistore/dsistore/storage"
)

// snapshotsCmd lists snapshots, and makes them expire.
type snapshotsCmd struct {
	List   snapshotsListCmd   `cmd:"" default:"withargs" help:"List a table's snapshots."`
	Expire snapshotsExpireCmd `cmd:"" help:"Let old snapshots expire: gc removes them after its grace period, but those that a branch or a lease holds."`
}

type snapshotsExpireCmd struct {
	tableArgs
	KeepLast    uint64        `help:"Keep this many of the newest, those that expire itself made not counted." placeholder:"N"`
	YoungerThan time.Duration `help:"Keep those that were the table within this time, such as 168h." placeholder:"TIME"`
	DryRun      bool          `help:"Say what would expire, and who holds what, and change nothing."`
}

// expireJSON is what snapshots expire prints with --json.
type expireJSON struct {
	Store    string     `json:"store"`
	Table    string     `json:"table"`
	DryRun   bool       `json:"dry_run"`
	Oldest   uint64     `json:"oldest"`
	Expired  []uint64   `json:"expired"`
	Held     []holdJSON `json:"held"`
	Snapshot uint64     `json:"snapshot,omitempty"` // the one made
}

// holdJSON is an expired snapshot that stays.
type holdJSON struct {
	Table    string `json:"table"`
	Snapshot uint64 `json:"snapshot"`
	By       string `json:"by"`
}

func holdsJSON(holds []storage.Hold) []holdJSON {
	out := []holdJSON{}
	for _, h := range holds {
		out = append(out, holdJSON{h.Table, h.Snapshot, h.By})
	}
	return out
}

func (a *app) printHolds(holds []holdJSON) {
	for _, h := range holds {
		a.printf("snapshot %d of %s is held: %s\n", h.Snapshot, oneLine(h.Table), oneLine(h.By))
	}
}

func (c *snapshotsExpireCmd) Run(ctx context.Context, a *app) error {
	if c.YoungerThan < 0 {
		return usagef("--younger-than %v: want none negative", c.YoungerThan)
	}
	if c.KeepLast == 0 && c.YoungerThan == 0 {
		return usagef("say which snapshots stay: --keep-last N, --younger-than TIME, or both")
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := store.Table(ctx, c.Table)
	if err != nil {
		return err
	}
	r, err := table.Expire(ctx, storage.ExpireOptions{KeepLast: c.KeepLast, YoungerThan: c.YoungerThan, DryRun: c.DryRun})
	if err != nil {
		return err
	}
	out := expireJSON{store.Blobs().URI(), c.Table, r.DryRun, r.Oldest, append([]uint64{}, r.Expired...), holdsJSON(r.Held), r.Snapshot}
	if a.json {
		return a.printJSON(out)
	}
	did := "expired"
	if c.DryRun {
		did = "would expire"
	}
	if len(out.Expired) == 0 {
		a.printf("nothing expires: the oldest snapshot of %s is %d\n", oneLine(c.Table), out.Oldest)
	} else {
		a.printf("%s: %s of %s, %d to %d; the oldest is now %d\n", did, plural(uint64(len(out.Expired)), "snapshot"), oneLine(c.Table),
			out.Expired[0], out.Expired[len(out.Expired)-1], out.Oldest)
	}
	a.printHolds(out.Held)
	return nil
}
