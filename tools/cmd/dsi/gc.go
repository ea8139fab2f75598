package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/command"
)

type gcCmd struct {
	storeArg
	metricsFlag
	DryRun bool          `help:"Say what would go, and remove nothing."`
	Grace  time.Duration `default:"24h" help:"Leave objects that are younger than this: an ingest may be about to commit them."`
}

// gcJSON is what gc prints with --json.
type gcJSON struct {
	Store      string       `json:"store"`
	DryRun     bool         `json:"dry_run"`
	Removed    []objectJSON `json:"removed"`
	Bytes      uint64       `json:"bytes"`
	Young      uint64       `json:"young"`
	YoungBytes uint64       `json:"young_bytes"`
	Referenced uint64       `json:"referenced"`
	Unknown    uint64       `json:"unknown"`
	Tables     uint64       `json:"tables"`
	Snapshots  uint64       `json:"snapshots"`
	Expired    uint64       `json:"expired_snapshots"`
	Held       []holdJSON   `json:"held"`
	Skipped    []skipJSON   `json:"skipped"`
}

// skipJSON is a part of the store that gc left alone.
type skipJSON struct {
	Table  string `json:"table,omitempty"`
	Reason string `json:"reason"`
}

type objectJSON struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

func (c *gcCmd) Run(ctx context.Context, a *app) error {
	if c.Grace < 0 {
		return usagef("--grace %v: want no negative time", c.Grace)
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	r, err := storage.GC(ctx, store, storage.GCOptions{DryRun: c.DryRun, Grace: c.Grace, NoWait: c.Grace == 0})
	if err != nil {
		return err
	}
	if !c.DryRun {
		a.rollup(ctx, store)
	}
	out := gcJSON{store.Blobs().URI(), r.DryRun, []objectJSON{}, r.Bytes, r.Young, r.YoungBytes, r.Referenced, r.Unknown, r.Tables, r.Snapshots,
		r.Expired, holdsJSON(r.Held), []skipJSON{}}
	for _, s := range r.Skipped {
		out.Skipped = append(out.Skipped, skipJSON{s.Table, oneLine(s.Err.Error())})
	}
	for _, o := range r.Removed {
		out.Removed = append(out.Removed, objectJSON{o.Name, o.Size})
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		c.print(a, out)
	}
	if err == nil && len(out.Skipped) > 0 {
		err = fmt.Errorf("%w: %s of %s could not be looked at, and nothing of it was removed", command.ErrDamage, plural(uint64(len(out.Skipped)), "part"), out.Store)
	}
	return err
}

func (c *gcCmd) print(a *app, out gcJSON) {
	did := "removed"
	if out.DryRun {
		did = "would remove"
	}
	for _, o := range out.Removed {
		a.printf("%s %s (%s)\n", did, oneLine(o.Name), bytesText(uint64(o.Bytes)))
	}
	a.printf("%s %s, %s; kept %s of %s, and %s, %s, younger than %v\n", did, plural(uint64(len(out.Removed)), "object"),
		bytesText(out.Bytes), plural(out.Referenced, "object"), plural(out.Snapshots, "snapshot"), plural(out.Young, "object"),
		bytesText(out.YoungBytes), c.Grace)
	a.printHolds(out.Held)
	if out.Unknown > 0 {
		a.printf("left alone %s with names that are not a store's\n", plural(out.Unknown, "object"))
	}
	for _, s := range out.Skipped {
		if s.Table != "" {
			a.printf("skipped table %s: %s\n", oneLine(s.Table), s.Reason)
		} else {
			a.printf("skipped: %s\n", s.Reason)
		}
	}
}
