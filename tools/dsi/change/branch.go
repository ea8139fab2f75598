package change

import (
	"context"
	"strings"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Branch names what is read together.
type Branch struct {
	Create branchCreate `cmd:"" help:"Create a branch: a snapshot, overlays and a sample list that are kept and read together." example:"dsi branch create store ads trial --overlay bought"`
	List   branchList   `cmd:"" help:"List a table's branches." example:"dsi branch list store ads"`
	Drop   branchDrop   `cmd:"" destructive:"" help:"Drop a branch, and the overlays made on it." example:"dsi branch drop store ads exp"`
}

// branchArg names a branch.
type branchArg struct {
	Branch string `arg:"" help:"Name of the branch."`
}

// branchJSON is a branch as --json prints it.
type branchJSON struct {
	Name       string       `json:"branch"`
	Snapshot   uint64       `json:"snapshot"`
	Overlays   []overlayPin `json:"overlays"` // the lowest first
	SampleList *listPin     `json:"sample_list,omitempty"`
	Created    string       `json:"created"`
	Owner      string       `json:"owner"`

	created time.Time
}

type overlayPin struct {
	Overlay  string `json:"overlay"`
	Snapshot uint64 `json:"snapshot"`
}

type listPin struct {
	List     string `json:"sample_list"`
	Snapshot uint64 `json:"snapshot"`
}

func newBranchJSON(b catalog.Branch) branchJSON {
	out := branchJSON{
		Name: b.Name, Snapshot: b.Snapshot, Overlays: []overlayPin{}, Created: terminal.TimeMillis(b.Created),
		Owner: b.Owner, created: b.Created,
	}
	for _, p := range b.Overlays {
		out.Overlays = append(out.Overlays, overlayPin{p.Name, p.Snapshot})
	}
	if b.List.Name != "" {
		out.SampleList = &listPin{b.List.Name, b.List.Snapshot}
	}
	return out
}

// row returns what branch list prints.
func (b branchJSON) row() []string {
	var overlays []string
	for _, p := range b.Overlays {
		overlays = append(overlays, p.Overlay)
	}
	list := ""
	if b.SampleList != nil {
		list = b.SampleList.List
	}
	return []string{
		b.Name, terminal.Count(b.Snapshot), strings.Join(overlays, ", "), list, terminal.Time(b.created), b.Owner,
	}
}

type branchCreate struct {
	app.TableArgs
	branchArg
	app.AtFlag
	Overlay    []string `help:"Overlays to apply when reading, lowest first." placeholder:"NAME"`
	SampleList string   `help:"Read only the rows in this list." placeholder:"NAME"`
	Owner      string   `help:"Owner of the branch, as lists show it. Default: your user name and host."`
}

func (c *branchCreate) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenSnapshot(ctx, e, c.AtFlag)
	if err != nil {
		return err
	}
	number := snap.Info().Number
	b := catalog.Branch{Name: c.Branch, Snapshot: number, Owner: c.Owner}
	if b.Owner == "" {
		b.Owner = app.WhoAmI()
	}
	for _, o := range c.Overlay {
		b.Overlays = append(b.Overlays, catalog.Pin{Name: o, Snapshot: number})
	}
	if c.SampleList != "" {
		b.List = catalog.Pin{Name: c.SampleList, Snapshot: number}
	}
	if err := b.Validate(); err != nil {
		return terminal.UsageError{Err: err}
	}
	made, err := snap.Table().Commit(ctx, commit.Change{Operation: "branch", Base: number,
		Ops: []commit.Operation{commit.SetBranches{b}}})
	if err != nil {
		return err
	}
	if b, err = made.Branch(ctx, c.Branch); err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(newBranchJSON(b))
	}
	name, table := terminal.OneLine(b.Name), terminal.OneLine(c.Table)
	e.Printf("branch %s of %s is snapshot %d; read it as %s\n", name, table, b.Snapshot,
		terminal.ShellWord(c.Table+"@"+b.Name))
	return nil
}

type branchList struct{ app.TableArgs }

func (c *branchList) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	branches, err := snap.Branches(ctx)
	if err != nil {
		return err
	}
	out := struct {
		app.Head
		Branches []branchJSON `json:"branches"`
	}{app.Of(snap.Table().Store(), c.Table, 0), []branchJSON{}}
	for _, b := range branches {
		out.Branches = append(out.Branches, newBranchJSON(b))
	}
	return terminal.PrintList(e.Env, out, "no branches of "+terminal.OneLine(c.Table),
		"branch, #snapshot, overlays, sample list, created, owner", out.Branches, branchJSON.row)
}

type branchDrop struct {
	app.TableArgs
	branchArg
}

func (c *branchDrop) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	all, err := snap.Overlays(ctx)
	if err != nil {
		return err
	}
	own := []string{}
	for _, o := range all {
		if o.Branch == c.Branch {
			own = append(own, o.Name)
		}
	}
	made, err := snap.Table().Commit(ctx, commit.Change{Operation: "branch", Base: snap.Info().Number,
		Ops: []commit.Operation{commit.DropBranches{c.Branch}}})
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(struct {
			app.Head
			Overlays []string `json:"overlays_dropped"` // which were made on the branch
		}{app.Of(made.Table().Store(), c.Table, made.Info().Number), own})
	}
	what := "branch " + c.Branch
	switch len(own) {
	case 0:
	case 1:
		what += " and its overlay " + own[0]
	default:
		what += " and its overlays " + firstNames(own, shownNames)
	}
	return e.PrintCommitted(c.Table, made, terminal.OneLine(what)+" dropped")
}
