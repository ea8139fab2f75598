package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Leases lists leases, and ends those of owners that are no more.
type Leases struct {
	List leasesList `cmd:"" default:"withargs" help:"List who holds which snapshots." example:"dsi leases store ads"`
	End  leasesEnd  `cmd:"" destructive:"" help:"End leases of an owner that no longer runs, such as a compaction that was killed." example:"dsi leases end store ads --owner trainer"`
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

func newLeaseJSON(table string, l lease.Info) leaseJSON {
	out := leaseJSON{ID: l.ID, Table: table, Owner: l.Owner, Snapshot: l.Snapshot,
		Until: l.Until.UTC().Format(time.RFC3339)}
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

func (l leaseJSON) row() []string {
	return []string{l.ID, l.Table, terminal.Count(l.Snapshot), l.Owner, l.Renewed, l.Until}
}

// leaseColumns are those of row.
const leaseColumns = "lease, table, #snapshot, owner, renewed, until"

type leasesList struct {
	app.StoreArg
	Table string `arg:"" optional:"" complete:"tables" help:"Only leases of this table."`
}

func (c *leasesList) Run(ctx context.Context, e *app.Env) error {
	store, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	tables, err := app.Tables(ctx, store, c.Table)
	if err != nil {
		return err
	}
	out := leasesJSON{store.Blobs().URI(), []leaseJSON{}}
	for _, table := range tables {
		leases, err := table.Leases(ctx)
		if err != nil {
			return err
		}
		for _, l := range leases {
			out.Leases = append(out.Leases, newLeaseJSON(table.Name(), l))
		}
	}
	return terminal.PrintList(e.Env, out, "no leases", leaseColumns, out.Leases, leaseJSON.row)
}

type leasesEnd struct {
	app.TableArgs
	Lease  []string `arg:"" optional:"" help:"Ids of leases, as dsi leases prints them."`
	Owner  string   `placeholder:"OWNER" help:"End all leases of this owner; give the whole name that dsi leases prints. With a part of it, such as user@host, the command ends nothing and prints the one that ends these."`
	DryRun bool     `help:"Say which would end, and change nothing."`
}

// Help says what it does to owners that still run.
func (c *leasesEnd) Help() string {
	return "The command does not ask for confirmation. If the owner still runs, objects that it reads may be " +
		"deleted. Check first when its lease was renewed: readers renew every hour, compactions every 15 minutes."
}

func (c *leasesEnd) Run(ctx context.Context, e *app.Env) error {
	if len(c.Lease) == 0 && c.Owner == "" {
		return terminal.Usagef("say which: their ids, or --owner OWNER; dsi leases %s lists them",
			c.Place().Typed())
	}
	table, err := c.OpenTable(ctx, e)
	if err != nil {
		return err
	}
	all, err := table.Leases(ctx)
	if err != nil {
		return err
	}
	var end []lease.Info
	for _, l := range all {
		if l.Owner == c.Owner && c.Owner != "" || slices.Contains(c.Lease, l.ID) {
			end = append(end, l)
		}
	}
	for _, i := range c.Lease {
		if !slices.ContainsFunc(end, func(l lease.Info) bool { return l.ID == i }) {
			return fmt.Errorf("table %s: %w", c.Table, catalog.NotFound("lease", i, nil))
		}
	}
	if len(end) == 0 {
		return c.notFound(e, all)
	}
	out := leasesJSON{table.Store().Blobs().URI(), []leaseJSON{}}
	for _, l := range end {
		if !c.DryRun {
			_, err := table.EndLease(ctx, l.ID)
			if err != nil && !errors.Is(err, storage.ErrNotFound) { // it may be over meanwhile
				return err
			}
		}
		out.Leases = append(out.Leases, newLeaseJSON(c.Table, l))
	}
	if e.JSON {
		return e.PrintJSON(out)
	}
	e.Printf("%s %s\n", terminal.Did(c.DryRun, "ended", "end"), terminal.Plural(uint64(len(end)), "lease"))
	terminal.PrintRows(e.Env, leaseColumns, out.Leases, leaseJSON.row)
	return nil
}

// notFound returns the error of an owner who has no lease. A part of an owner's name may select more than was meant: it
// lists those leases, and names the command that ends them and no others.
func (c *leasesEnd) notFound(e *app.Env, all []lease.Info) error {
	var some []leaseJSON
	command := "dsi leases end " + c.Place().Typed()
	for _, l := range all {
		if strings.Contains(l.Owner, c.Owner) {
			some = append(some, newLeaseJSON(c.Table, l))
			command += " " + l.ID
		}
	}
	if some == nil {
		return fmt.Errorf("table %s: %w", c.Table, catalog.NotFound("lease of", c.Owner, nil))
	}
	if !e.JSON {
		terminal.PrintRows(e.Env, leaseColumns, some, leaseJSON.row)
	}
	return fmt.Errorf("table %s: lease of %.150q: %w, and nothing was ended; %s of owners with this in their names: "+
		"if they no longer run, %s ends these", c.Table, c.Owner, storage.ErrNotFound,
		terminal.Plural(uint64(len(some)), "lease"), command)
}
