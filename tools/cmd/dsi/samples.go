package main

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/selection"
)

type samplesCmd struct {
	Create samplesCreateCmd `cmd:"" help:"Keep rows under a name, for --sample-list."`
	List   samplesListCmd   `cmd:"" help:"List a table's sample lists, and how many rows they have."`
	Show   samplesShowCmd   `cmd:"" help:"Say what a sample list has of each partition."`
	Drop   samplesDropCmd   `cmd:"" help:"Drop a sample list. Its rows stay."`
}

// listArg names a sample list.
type listArg struct {
	List string `arg:"" help:"Name of the sample list."`
}

type samplesCreateCmd struct {
	tableArgs
	listArg
	whichFlags
	usageFlags
	Lists   string `placeholder:"EXPR" help:"Other lists, joined: 'a AND NOT b', 'a OR b', with parentheses, and \"a name\" in quotes. Rows must be in all that the flags say."`
	Replace bool   `help:"Take the place of the list that has the name."`
	DryRun  bool   `help:"Say what would be in it, and make nothing."`
}

func (c *samplesCreateCmd) Run(ctx context.Context, a *app) error {
	q, err := c.query(ctx, a, c.Lists)
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := c.whole(ctx, store, "sample lists are made")
	if err != nil {
		return err
	}
	r, err := selection.Create(ctx, table, c.List, q, c.Replace, selection.Options{DryRun: c.DryRun, Read: reader.Options{Usage: c.usage("samples create")}})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	has := "has"
	if c.DryRun {
		has = "would have"
	}
	a.printf("sample list %s of %s %s %s of %s (%s), in %s; snapshot %d\n", oneLine(r.Name), oneLine(r.Table), has, plural(r.Rows, "row"),
		countText(r.TableRows), shareText(r.Share), plural(r.Segments, "segment"), r.Snapshot)
	a.printFacts(keyFacts(r.Keys))
	return nil
}

// newest opens the table's newest snapshot. Close the store.
func (t tableArgs) newest(ctx context.Context) (*storage.Store, *storage.Snapshot, error) {
	store, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	snap, err := atFlag{}.snapshot(ctx, store, t.Table)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	return store, snap, nil
}

type samplesListCmd struct{ tableArgs }

func (c *samplesListCmd) Run(ctx context.Context, a *app) error {
	store, snap, err := c.newest(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	lists, err := snap.SampleLists(ctx)
	if err != nil {
		return err
	}
	out := struct {
		Store string                `json:"store"`
		Table string                `json:"table"`
		Lists []*selection.ListInfo `json:"sample_lists"`
	}{store.Blobs().URI(), c.Table, []*selection.ListInfo{}}
	var rows [][]string
	for _, l := range lists {
		i, _, err := selection.Describe(ctx, snap, l)
		if err != nil {
			return err
		}
		out.Lists = append(out.Lists, i)
		rows = append(rows, []string{i.Name, countText(i.Rows), shareText(i.Share), countText(i.Added), i.Definition})
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(rows) == 0 {
		a.printf("no sample lists of %s\n", oneLine(c.Table))
		return nil
	}
	a.printTable([]string{"sample list", "rows", "share", "snapshot", "definition"}, rows, "rows", "share", "snapshot")
	return nil
}

type samplesShowCmd struct {
	tableArgs
	listArg
}

func (c *samplesShowCmd) Run(ctx context.Context, a *app) error {
	store, snap, err := c.newest(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := snap.SampleList(ctx, c.List)
	if err != nil {
		return err
	}
	i, partitions, err := selection.Describe(ctx, snap, list)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			*selection.ListInfo
			Partitions []selection.PartitionShare `json:"partitions"`
		}{i, partitions})
	}
	facts := [][2]string{
		{"sample list", i.Name},
		{"definition", i.Definition},
		{"rows", fmt.Sprintf("%s of %s (%s), in %s", countText(i.Rows), countText(i.TableRows), shareText(i.Share), plural(i.Segments, "segment"))},
		{"snapshot", fmt.Sprintf("made in %d; rows ingested since are not in it", i.Added)},
	}
	if i.Deleted > 0 {
		facts = append(facts, [2]string{"deleted", plural(i.Deleted, "row") + " of it, which nobody reads"})
	}
	a.printFacts(facts)
	var rows [][]string
	for _, p := range partitions {
		rows = append(rows, []string{p.Partition, countText(p.Rows), countText(p.TableRows), shareText(p.Share)})
	}
	if len(rows) > 1 {
		a.printTable([]string{"partition", "rows", "of", "share"}, rows, "rows", "of", "share")
	}
	return nil
}

type samplesDropCmd struct {
	tableArgs
	listArg
}

func (c *samplesDropCmd) Run(ctx context.Context, a *app) error {
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := c.whole(ctx, store, "sample lists are dropped")
	if err != nil {
		return err
	}
	made, err := selection.Drop(ctx, table, c.List)
	if err != nil {
		return err
	}
	return a.committed(store, c.Table, made, "sample list "+oneLine(c.List)+" dropped")
}
