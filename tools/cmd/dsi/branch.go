package main

import (
	"context"
	"os"
	"os/user"

	"github.com/dsistore/dsistore/storage"
)

type branchCmd struct {
	Create branchCreateCmd `cmd:"" help:"Name a snapshot, overlays over it and a sample list, to be read together and kept."`
	List   branchListCmd   `cmd:"" help:"List a table's branches."`
	Drop   branchDropCmd   `cmd:"" help:"Drop a branch, and the overlays made on it."`
}

// branchJSON is a branch as --json prints it.
type branchJSON struct {
	Name       string    `json:"branch"`
	Snapshot   uint64    `json:"snapshot"`
	Overlays   []pinJSON `json:"overlays"` // the lowest first
	SampleList *pinJSON  `json:"sample_list,omitempty"`
	Created    string    `json:"created"`
	Owner      string    `json:"owner"`
}

type pinJSON struct {
	Name     string `json:"name"`
	Snapshot uint64 `json:"snapshot"`
}

func branchInfo(b storage.Branch) branchJSON {
	out := branchJSON{Name: b.Name, Snapshot: b.Snapshot, Overlays: []pinJSON{}, Created: b.Created.UTC().Format("2006-01-02T15:04:05.000Z"), Owner: b.Owner}
	for _, p := range b.Overlays {
		out.Overlays = append(out.Overlays, pinJSON{p.Name, p.Snapshot})
	}
	if b.List.Name != "" {
		out.SampleList = &pinJSON{b.List.Name, b.List.Snapshot}
	}
	return out
}

type branchCreateCmd struct {
	tableArgs
	Branch string `arg:"" help:"Name of the branch."`
	atFlag
	Overlay    []string `help:"Overlays to read over the table, the lowest first." placeholder:"NAME"`
	SampleList string   `help:"Read only the rows in this list." placeholder:"NAME"`
	Owner      string   `help:"Whose it is, for those who list branches. Default: who you are here."`
}

func (c *branchCreateCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := c.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	number := snap.Info().Number
	b := storage.Branch{Name: c.Branch, Snapshot: number, Owner: c.Owner}
	if b.Owner == "" {
		b.Owner = whoami()
	}
	for _, o := range c.Overlay {
		b.Overlays = append(b.Overlays, storage.Pin{Name: o, Snapshot: number})
	}
	if c.SampleList != "" {
		b.List = storage.Pin{Name: c.SampleList, Snapshot: number}
	}
	if err := b.Validate(); err != nil {
		return usageError{Err: err}
	}
	made, err := snap.Table().Commit(ctx, storage.Change{Operation: "branch", Base: number, Branches: []storage.Branch{b}})
	if err != nil {
		return err
	}
	if b, err = made.Branch(ctx, c.Branch); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(branchInfo(b))
	}
	a.printf("branch %s of %s is snapshot %d; read it as %s@%s\n", oneLine(b.Name), oneLine(c.Table), b.Snapshot, oneLine(c.Table), oneLine(b.Name))
	return nil
}

// whoami returns user@host, as far as it is known.
func whoami() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name[:min(len(name), 256)]
}

type branchListCmd struct{ tableArgs }

func (c *branchListCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := atFlag{}.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	branches, err := snap.Branches(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Store    string       `json:"store"`
		Table    string       `json:"table"`
		Branches []branchJSON `json:"branches"`
	}{store.Blobs().URI(), c.Table, []branchJSON{}}
	var rows [][]string
	for _, b := range branches {
		i := branchInfo(b)
		out.Branches = append(out.Branches, i)
		overlays, list := "", ""
		for _, p := range i.Overlays {
			overlays = joined(overlays, p.Name)
		}
		if i.SampleList != nil {
			list = i.SampleList.Name
		}
		rows = append(rows, []string{i.Name, countText(i.Snapshot), overlays, list, timeText(b.Created), i.Owner})
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(rows) == 0 {
		a.printf("no branches of %s\n", oneLine(c.Table))
		return nil
	}
	a.printTable([]string{"branch", "snapshot", "overlays", "sample list", "created", "owner"}, rows, "snapshot")
	return nil
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

type branchDropCmd struct {
	tableArgs
	Branch string `arg:"" help:"Name of the branch."`
}

func (c *branchDropCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := atFlag{}.snapshot(ctx, store, c.Table)
	if err != nil {
		return err
	}
	made, err := snap.Table().Commit(ctx, storage.Change{Operation: "branch", Base: snap.Info().Number, DropBranches: []string{c.Branch}})
	if err != nil {
		return err
	}
	return a.committed(store, c.Table, made, "branch "+oneLine(c.Branch)+" dropped")
}

// committed says what a command that only makes a snapshot did.
func (a *app) committed(store *storage.Store, table string, made *storage.Snapshot, what string) error {
	if a.json {
		return a.printJSON(struct {
			Store    string `json:"store"`
			Table    string `json:"table"`
			Snapshot uint64 `json:"snapshot"`
		}{store.Blobs().URI(), table, made.Info().Number})
	}
	a.printf("%s in snapshot %d of %s\n", what, made.Info().Number, oneLine(table))
	return nil
}
