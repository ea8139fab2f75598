package main

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/usage"
)

type lookupCmd struct {
	tableArgs
	keyFlags
	atFlag
	usageFlags
}

// shownPositions is how many rows of a segment are listed for people.
const shownPositions = 10

func (c *lookupCmd) Run(ctx context.Context, a *app) error {
	if len(c.Keys) == 0 {
		return usagef("say which keys: --keys FILE")
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	view, err := c.view(ctx, store, c.Table)
	if err != nil {
		return err
	}
	read := reader.Options{Usage: c.usage("lookup")}
	read.Usage.Purpose = usage.PurposeCount
	r, err := selection.Lookup(ctx, view, c.source(ctx, a), read)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(r)
	}
	a.printf("%s of %s in %s, in snapshot %d\n", plural(r.Rows, "row"), oneLine(r.Table), plural(uint64(len(r.Segments)), "segment"), r.Snapshot)
	a.printFacts(keyFacts(r.Keys))
	var rows [][]string
	for _, s := range r.Segments[:min(len(r.Segments), shownSegments)] {
		at := ""
		for _, p := range s.Positions[:min(len(s.Positions), shownPositions)] {
			at = joined(at, fmt.Sprint(p))
		}
		if len(s.Positions) > shownPositions {
			at += ", ..."
		}
		rows = append(rows, []string{s.Segment, s.Partition, countText(uint64(len(s.Rows))), at})
	}
	if len(rows) > 0 {
		a.printTable([]string{"segment", "partition", "rows", "positions"}, rows, "rows")
	}
	if more := len(r.Segments) - shownSegments; more > 0 {
		a.printf("and %s more (--json has all)\n", plural(uint64(more), "segment"))
	}
	return nil
}
