package main

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
)

type countCmd struct {
	tableArgs
	selectFlags
	usageFlags
}

// countJSON is what count prints with --json.
type countJSON struct {
	Table     string  `json:"table"`
	Snapshot  uint64  `json:"snapshot"`
	Rows      uint64  `json:"rows"`
	TableRows uint64  `json:"table_rows"` // of the snapshot, without those that are deleted
	Share     float64 `json:"share"`
	Segments  uint64  `json:"segments"` // with such rows
	// Filter is there with --where.
	Filter *filterJSON `json:"filter,omitempty"`
}

func (c *countCmd) Run(ctx context.Context, a *app) error {
	store, view, err := c.openTable(ctx, c.tableArgs)
	if err != nil {
		return err
	}
	defer store.Close()
	snap := view.Snapshot
	m, err := reader.Matching(ctx, snap, c.selection(), reader.LayoutOptions{View: view, Read: reader.Options{Usage: c.usage("count")}})
	if err != nil {
		return err
	}
	out := countJSON{
		Table: c.Table, Snapshot: snap.Info().Number, Rows: m.Rows, TableRows: snap.Info().LiveRows(), Segments: uint64(len(m.Segments)),
		Filter: newFilterJSON(c.Where, m.Pruning),
	}
	if out.TableRows > 0 {
		out.Share = float64(out.Rows) / float64(out.TableRows)
	}
	if a.json {
		return a.printJSON(out)
	}
	a.printFacts(append([][2]string{
		{"rows", fmt.Sprintf("%s of %s (%s), in %s", countText(out.Rows), countText(out.TableRows), shareText(out.Share), plural(out.Segments, "segment"))},
	}, out.Filter.facts()...))
	return nil
}
