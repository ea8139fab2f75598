package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage"
)

// leasesCmd lists leases, and ends those of owners that are no more.
type leasesCmd struct {
	List leasesListCmd `cmd:"" default:"withargs" help:"List who holds which snapshots."`
	End  leasesEndCmd  `cmd:"" help:"End leases in place of an owner that is no more, as of a compaction that was killed."`
}

// leaseJSON is a lease as --json prints it.
type leaseJSON struct {
	ID       string `json:"lease"`
	Table    string `json:"table"`
	Owner    string `json:"owner"`
	Snapshot uint64 `json:"snapshot"`
	Renewed  string `json:"renewed,omitempty"` // taken or renewed last
	Until    string `json:"until"`
}

func leaseInfo(table string, l storage.LeaseInfo) leaseJSON {
	out := leaseJSON{ID: l.ID, Table: table, Owner: l.Owner, Snapshot: l.Snapshot, Until: l.Until.UTC().Format(time.RFC3339)}
	if !l.Renewed.IsZero() {
		out.Renewed = l.Renewed.UTC().Format(time.RFC3339)
	}
	return out
}

// leasesJSON is what both commands print with --json.
type leasesJSON struct {
	Store  string      `json:"store"`
	Leases []leaseJSON `json:"leases"`
}

func (a *app) printLeases(leases []leaseJSON) {
	var rows [][]string
	for _, l := range leases {
		rows = append(rows, []string{l.ID, l.Table, countText(l.Snapshot), l.Owner, l.Renewed, l.Until})
	}
	a.printTable([]string{"lease", "table", "snapshot", "owner", "renewed", "until"}, rows, "snapshot")
}

type leasesListCmd struct {
	storeArg
	Table string `arg:"" optional:"" help:"Only of this table."`
}

func (c *leasesListCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	tables := []string{c.Table}
	if c.Table == "" {
		if tables, err = store.Tables(ctx); err != nil {
			return err
		}
	}
	out := leasesJSON{store.Blobs().URI(), []leaseJSON{}}
	for _, name := range tables {
		table, err := store.Table(ctx, name)
		if err != nil {
			return err
		}
		leases, err := table.Leases(ctx)
		if err != nil {
			return err
		}
		for _, l := range leases {
			out.Leases = append(out.Leases, leaseInfo(name, l))
		}
	}
	switch {
	case a.json:
		return a.printJSON(out)
	case len(out.Leases) == 0:
		a.printf("no leases\n")
	default:
		a.printLeases(out.Leases)
	}
	return nil
}

type leasesEndCmd struct {
	tableArgs
	Lease  []string `arg:"" optional:"" help:"Their ids, as dsi leases prints them."`
	Owner  string   `placeholder:"OWNER" help:"All of this owner, as dsi leases prints it, whole."`
	DryRun bool     `help:"Say which would end, and change nothing."`
}

// Help says what it does to owners that live.
func (c *leasesEndCmd) Help() string {
	return "Naming them is all the confirmation there is. An owner that lives may find that what it reads is gone: look at when its lease was renewed, which readers do every hour and compactions every quarter of one."
}

func (c *leasesEndCmd) Run(ctx context.Context, a *app) error {
	if len(c.Lease) == 0 && c.Owner == "" {
		return usagef("say which: their ids, or --owner OWNER; dsi leases %s %s lists them", c.Store, c.Table)
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
	all, err := table.Leases(ctx)
	if err != nil {
		return err
	}
	var end []storage.LeaseInfo
	for _, l := range all {
		if l.Owner == c.Owner && c.Owner != "" || slices.Contains(c.Lease, l.ID) {
			end = append(end, l)
		}
	}
	for _, i := range c.Lease {
		if !slices.ContainsFunc(end, func(l storage.LeaseInfo) bool { return l.ID == i }) {
			return fmt.Errorf("table %s: lease %.100q: %w", c.Table, i, storage.ErrNotFound)
		}
	}
	if len(end) == 0 {
		return fmt.Errorf("table %s: a lease of %.300q: %w", c.Table, c.Owner, storage.ErrNotFound)
	}
	out := leasesJSON{store.Blobs().URI(), []leaseJSON{}}
	for _, l := range end {
		if !c.DryRun {
			if _, err := table.EndLease(ctx, l.ID); err != nil && !errors.Is(err, storage.ErrNotFound) { // it may be over meanwhile
				return err
			}
		}
		out.Leases = append(out.Leases, leaseInfo(c.Table, l))
	}
	if a.json {
		return a.printJSON(out)
	}
	did := "ended"
	if c.DryRun {
		did = "would end"
	}
	a.printf("%s %s\n", did, plural(uint64(len(end)), "lease"))
	a.printLeases(out.Leases)
	return nil
}
