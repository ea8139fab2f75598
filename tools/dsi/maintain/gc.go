package maintain

import (
	"context"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// GC removes objects that nothing refers to.
type GC struct {
	app.StoreArg
	app.MetricsFlag
	DryRun bool       `help:"Say what would go, and remove nothing."`
	Grace  app.Period `default:"24h" placeholder:"TIME" help:"Keep objects that are younger than this: an ingest may be about to commit them."`
}

// gcJSON is what gc prints with --json.
type gcJSON struct {
	Store      string       `json:"store"`
	DryRun     bool         `json:"dry_run"`
	Removed    []objectJSON `json:"removed"`
	Bytes      uint64       `json:"bytes_removed"`
	Young      uint64       `json:"young"`
	YoungBytes uint64       `json:"young_bytes"`
	Referenced uint64       `json:"referenced"`
	Unknown    uint64       `json:"unknown"`
	Tables     uint64       `json:"tables"`
	Snapshots  uint64       `json:"snapshots"`
	Expired    uint64       `json:"snapshots_expired"`
	Waiting    uint64       `json:"snapshots_waiting"`
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

// Run runs the command.
func (c *GC) Run(ctx context.Context, e *app.Env) error {
	if c.Grace < 0 {
		return terminal.Usagef("--grace %v: want no negative time", c.Grace)
	}
	store, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	r, err := store.GC(ctx, gc.Options{DryRun: c.DryRun, Grace: time.Duration(c.Grace), NoWait: c.Grace == 0})
	if err != nil {
		return err
	}
	if !c.DryRun {
		rollup(ctx, e, store, "")
	}
	out := gcJSON{
		store.Blobs().URI(), r.DryRun, []objectJSON{}, r.Bytes, r.Young, r.YoungBytes, r.Referenced, r.Unknown,
		r.Tables, r.Snapshots, r.Expired, r.Waiting, holdsJSON(r.Held), []skipJSON{},
	}
	for _, s := range r.Skipped {
		out.Skipped = append(out.Skipped, skipJSON{s.Table, terminal.ErrorText(s.Err)})
	}
	for _, o := range r.Removed {
		out.Removed = append(out.Removed, objectJSON{o.Name, o.Size})
	}
	if e.JSON {
		err = e.PrintJSON(out)
	} else {
		c.print(e, out)
	}
	if err == nil && len(out.Skipped) > 0 {
		err = fmt.Errorf("%w: %s of %s could not be looked at, and nothing of it was removed", terminal.ErrDamage,
			terminal.Plural(uint64(len(out.Skipped)), "part"), out.Store)
	}
	return err
}

func (c *GC) print(e *app.Env, out gcJSON) {
	did := terminal.Did(out.DryRun, "removed", "remove")
	for _, o := range out.Removed {
		e.Printf("%s %s (%s)\n", did, terminal.OneLine(o.Name), terminal.Bytes(uint64(o.Bytes)))
	}
	e.Printf("%s %s, %s; kept %s of %s, and %s, %s, younger than %v\n", did,
		terminal.Plural(uint64(len(out.Removed)), "object"), terminal.Bytes(out.Bytes),
		terminal.Plural(out.Referenced, "object"), terminal.Plural(out.Snapshots, "snapshot"),
		terminal.Plural(out.Young, "object"), terminal.Bytes(out.YoungBytes), c.Grace)
	if out.Waiting > 0 {
		e.Printf("%d of these snapshots expired less than %v ago: a later gc removes what only they have. --grace 0s "+
			"removes it now; use it only while nothing reads or writes the store\n", out.Waiting, c.Grace)
	}
	printHolds(e, out.Held)
	if out.Unknown > 0 {
		e.Printf("left alone %s with names that are not a store's\n", terminal.Plural(out.Unknown, "object"))
	}
	for _, s := range out.Skipped {
		if s.Table != "" {
			e.Printf("skipped table %s: %s\n", terminal.OneLine(s.Table), s.Reason)
		} else {
			e.Printf("skipped: %s\n", s.Reason)
		}
	}
}
