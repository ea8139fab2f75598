package main

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/selection"
)

type deleteCmd struct {
	tableArgs
	whichFlags
	usageFlags
	SampleList string `placeholder:"NAME" help:"The rows in this list."`
	DryRun     bool   `help:"Say what would be deleted, and delete nothing."`
}

func (c *deleteCmd) Run(ctx context.Context, a *app) error {
	lists := ""
	if c.SampleList != "" {
		lists = selection.ListName(c.SampleList)
	}
	q, err := c.query(ctx, a, lists)
	if err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := c.whole(ctx, store, "rows are deleted")
	if err != nil {
		return err
	}
	r, err := selection.Delete(ctx, table, q, selection.Options{DryRun: c.DryRun, Read: reader.Options{Usage: c.usage("delete")}})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	did := "deleted"
	switch {
	case c.DryRun:
		did = "would delete"
	case r.Deleted == 0:
		did = "nothing to delete:"
	}
	a.printf("%s %s of %s in %s; %s left, in snapshot %d\n", did, plural(r.Deleted, "row"), oneLine(r.Table),
		plural(uint64(len(r.Segments)), "segment"), countText(r.Left), r.Snapshot)
	a.printFacts(keyFacts(r.Keys))
	var rows [][]string
	for _, s := range r.Segments[:min(len(r.Segments), shownSegments)] {
		rows = append(rows, []string{s.Segment, s.Partition, countText(s.Rows), countText(s.Before), countText(s.Deleted)})
	}
	if len(rows) > 0 {
		a.printTable([]string{"segment", "partition", "rows", "deleted before", "deleted"}, rows, "rows", "deleted before", "deleted")
	}
	if more := len(r.Segments) - shownSegments; more > 0 {
		a.printf("and %s more (--json has all)\n", plural(uint64(more), "segment"))
	}
	return nil
}

// shownSegments is how many segments are listed for people.
const shownSegments = 20

// shareText prints a share for people.
func shareText(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
