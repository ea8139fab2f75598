package maintain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage/repair"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Repair takes what is damaged out of tables, and writes the store's marker anew.
type Repair struct {
	app.StoreArg
	Table        string `arg:"" optional:"" complete:"tables" help:"Repair this table only."`
	Apply        bool   `help:"Repair, in one commit per table. Default: print what would be done, and what would be lost."`
	NullFeatures bool   `help:"If only some features of a segment are damaged, keep its rows and make these features null there. Default: the rows are dropped."`
	Shallow      bool   `help:"Look for what is missing or has the wrong size, as verify does. Default: read everything, as verify --deep does."`
	From         uint64 `placeholder:"N" help:"If the newest snapshot cannot be read, go back to snapshot N."`
	Undelete     bool   `help:"With --from: go back even if deleted rows come back."`
}

// repairJSON is what repair prints with --json.
type repairJSON struct {
	Store  string           `json:"store"`
	Marker *markerJSON      `json:"marker,omitempty"` // nil: it is whole
	Tables []*repair.Report `json:"tables"`
}

// markerJSON is a marker of the store that is damaged or missing.
type markerJSON struct {
	Damage  string `json:"damage"`
	Applied bool   `json:"applied"` // it was written anew
}

// Run runs the command.
func (c *Repair) Run(ctx context.Context, e *app.Env) error {
	switch {
	case c.From > 0 && c.Table == "":
		return terminal.Usagef("--from %d: name the table that is to go back", c.From)
	case c.Undelete && c.From == 0:
		return terminal.Usagef("--undelete: want --from N too")
	}
	store, err := c.Open(ctx, e)
	if err != nil {
		return err
	}
	out := repairJSON{store.Blobs().URI(), nil, []*repair.Report{}}
	switch damage, err := store.RepairMarker(ctx, c.Apply); {
	case err != nil:
		return err
	case damage != nil:
		out.Marker = &markerJSON{terminal.ErrorText(damage), c.Apply}
		if !e.JSON {
			out.Marker.print(e)
		} else if !c.Apply {
			if err := e.PrintJSON(out); err != nil {
				return err
			}
		}
		if !c.Apply { // no table can be opened
			return fmt.Errorf("%w: 1 fault; nothing was changed", terminal.ErrDamage)
		}
	}
	tables, err := app.TableNames(ctx, store, c.Table)
	if err != nil {
		return err
	}
	bar := e.Progress("looking", app.UnitBytes)
	defer bar.Finish()
	var failed error
	left := 0
	for _, t := range tables {
		r, err := store.Repair(ctx, t, repair.Options{
			Apply: c.Apply, Shallow: c.Shallow, NullFeatures: c.NullFeatures, From: c.From, Undelete: c.Undelete,
			Progress: func(done, total uint64) { bar.Set(int64(done), int64(total)) },
		})
		failed = errors.Join(failed, err)
		if r == nil {
			break // what was done to the tables before is said
		}
		left += r.Left()
		if !r.Applied {
			left += r.Repairs()
		}
		out.Tables = append(out.Tables, r)
	}
	bar.Finish()
	if e.JSON {
		err = e.PrintJSON(out)
	} else {
		for _, r := range out.Tables {
			c.print(e, r)
		}
	}
	switch {
	case err != nil:
		return err
	case errors.Is(failed, repair.ErrFrom) || errors.Is(failed, repair.ErrUndelete):
		return fmt.Errorf("%w: %w", terminal.ErrDamage, failed)
	case failed != nil:
		return failed
	case left > 0 && c.Apply:
		return fmt.Errorf("%w: %s left", terminal.ErrDamage, terminal.Plural(uint64(left), "fault"))
	case left > 0:
		return fmt.Errorf("%w: %s; nothing was changed", terminal.ErrDamage, terminal.Plural(uint64(left), "fault"))
	}
	return nil
}

// print prints what was, or would be, done to the marker.
func (m *markerJSON) print(e *app.Env) {
	e.Printf("%s: the file that marks the store: nothing is lost\n    %s\n", repair.Rebuild, m.Damage)
	if m.Applied {
		e.Printf("the file dsistore was written anew\n")
	} else {
		e.Printf("would write the file dsistore anew, and then look at the tables; --apply does it\n")
	}
}

// print prints what was, or would be, done to a table.
func (c *Repair) print(e *app.Env, r *repair.Report) {
	table := terminal.OneLine(r.Table)
	if len(r.Items) == 0 {
		verdict := "no damage"
		if c.Shallow {
			verdict = "nothing is missing"
		}
		e.Printf("%s: %s\n", table, verdict)
		return
	}
	for _, i := range r.Items {
		lost := i.Lost
		if i.Hint != "" && !r.Applied {
			lost += "; " + i.Hint
		}
		e.Printf("%s: %s: %s\n", i.Action, terminal.OneLine(i.String()), terminal.OneLine(lost))
		for _, d := range i.Damage {
			e.Printf("    %s\n", terminal.OneLine(d))
		}
	}
	since := ""
	if slices.ContainsFunc(r.Items, func(i *repair.Item) bool { return i.Action == repair.GoBack }) {
		since = fmt.Sprintf(" of snapshot %d, and what was done since,", r.Base)
	}
	switch {
	case r.Applied:
		e.Printf("%s: repaired in snapshot %d, made from snapshot %d: %s; %s%s lost, %s left\n", table, r.Snapshot,
			r.Base, terminal.Plural(uint64(r.Repairs()), "fault"), terminal.Plural(r.LostRows, "row"), since,
			terminal.Plural(uint64(r.Left()), "fault"))
	case r.Base == 0 || r.Repairs() == 0:
		e.Printf("%s: %s, about which nothing can be done\n", table, terminal.Plural(uint64(len(r.Items)), "fault"))
	default:
		how := "--apply"
		if len(r.NeedsFrom) > 0 {
			how = fmt.Sprintf("--from %d --apply", r.NeedsFrom[0])
			e.Printf("%s: the newest snapshot cannot be read; these can: %s\n", table,
				strings.Trim(fmt.Sprint(r.NeedsFrom), "[]"))
		}
		if r.NeedsUndelete && !c.Undelete {
			how += " --undelete"
		}
		e.Printf("%s: would repair %s, from snapshot %d: %s%s would be lost, %s left; %s does it\n", table,
			terminal.Plural(uint64(r.Repairs()), "fault"), r.Base, terminal.Plural(r.LostRows, "row"), since,
			terminal.Plural(uint64(r.Left()), "fault"), how)
		if r.LostRows > 0 {
			e.Printf("%s: objects that you have a copy of are better put back: that loses nothing%s\n", table,
				orIngest(r))
		}
		if names := readableWithout(r); len(names) > 0 {
			e.Printf("%s: until --apply, all rows can be exported without %s: dsi export STORE TABLE --features NAMES "+
				"--to FILE\n", table, terminal.OneLine(strings.Join(names, ", ")))
		}
	}
}

// readableWithout names the features without which all rows to be dropped can still be read; none: not all can.
func readableWithout(r *repair.Report) (names []string) {
	for _, i := range r.Items {
		switch {
		case i.Action == repair.GoBack, i.Action == repair.DropRows && len(i.Features) == 0:
			return nil
		case i.Action == repair.DropRows:
			names = append(names, i.Features...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// orIngest says how lost rows come back from where they were ingested. Where the table goes back to an older snapshot,
// the newest cannot be read, by no ingest either.
func orIngest(r *repair.Report) string {
	of, their := "the table", "its"
	for _, i := range r.Items {
		switch {
		case i.Action == repair.GoBack:
			return ""
		case i.Action == repair.DropRows && i.Partition != "":
			of, their = "the partitions above", "their"
		}
	}
	return fmt.Sprintf(". Or ingest all files of %s again with --overwrite, which replaces all of %s rows; then "+
		"delete or erase again what the files still have of deleted and erased rows, and add overlays again", of, their)
}
