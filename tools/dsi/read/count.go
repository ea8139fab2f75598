package read

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Count counts rows, without reading them.
type Count struct {
	tableArgs
	selectFlags
	app.UsageFlags
}

// countJSON is what count prints with --json.
type countJSON struct {
	Table     string      `json:"table"`
	Snapshot  uint64      `json:"snapshot"`
	Rows      uint64      `json:"rows"`
	TableRows uint64      `json:"table_rows"` // of the snapshot, without those that are deleted
	Share     float64     `json:"share"`
	Segments  uint64      `json:"segments"`         // with such rows
	Filter    *filterJSON `json:"filter,omitempty"` // with --where
}

// Run runs the command.
func (c *Count) Run(ctx context.Context, e *app.Env) error {
	view, err := c.cached().OpenView(ctx, e, c.AtFlag)
	if err != nil {
		return err
	}
	snap := view.Snapshot
	m, err := reader.Matching(ctx, snap, c.planOptions(reader.PlanOptions{}),
		reader.LayoutOptions{View: view, Read: reader.Options{Usage: c.Usage("count")}})
	if err != nil {
		return err
	}
	out := countJSON{
		Table: c.Table, Snapshot: snap.Info().Number, Rows: m.Rows, TableRows: snap.Info().LiveRows(),
		Segments: uint64(len(m.Segments)), Filter: newFilterJSON(c.Where, m.Pruning),
	}
	if out.TableRows > 0 {
		out.Share = float64(out.Rows) / float64(out.TableRows)
	}
	return e.Print(out, append([][2]string{{"rows", fmt.Sprintf("%s of %s (%s), in %s", terminal.Count(out.Rows),
		terminal.Count(out.TableRows), terminal.Percent(out.Share), terminal.Plural(out.Segments, "segment"))},
	}, out.Filter.facts()...)...)
}
