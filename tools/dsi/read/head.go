package read

import (
	"context"
	"io"
	"strings"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Head prints the first rows.
type Head struct {
	tableArgs
	Features []string `required:"" complete:"features" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)."`
	Rows     int      `short:"n" default:"10" help:"How many rows."`
	Vertical bool     `help:"A line per value instead of a line per row. Default when there are many features."`
	readFlags
}

// manyFeatures do not fit beside one another.
const manyFeatures = 12

// Run runs the command.
func (c *Head) Run(ctx context.Context, e *app.Env) error {
	if c.Rows < 1 || c.Rows > reader.MaxBatchSize {
		return terminal.Usagef("--rows %d: want 1 to %d", c.Rows, reader.MaxBatchSize)
	}
	view, plan, err := c.plan(ctx, e, c.tableArgs, reader.PlanOptions{Features: c.Features, BatchSize: c.Rows})
	if err != nil {
		return err
	}
	read := c.options("head")
	read.MaxBatches, read.Workers = 1, 1
	s, err := reader.OpenView(ctx, view, plan, read)
	if err != nil {
		return err
	}
	defer s.Close()
	out := struct {
		Table    string   `json:"table"`
		Snapshot uint64   `json:"snapshot"`
		Features []string `json:"features"`
		Rows     [][]any  `json:"rows"`
	}{c.Table, plan.Snapshot, nil, [][]any{}}
	for _, f := range plan.Features {
		out.Features = append(out.Features, f.Name)
	}
	var rows [][]string
	err = each(ctx, s, func(b *reader.Batch) error {
		for row := range b.Rows {
			var values []any
			var cells []string
			for i, f := range plan.Features {
				if e.JSON {
					values = append(values, cellValue(b.Columns[i], row))
				} else {
					cells = append(cells, cellText(b.Columns[i], f.Logical, row))
				}
			}
			out.Rows = append(out.Rows, values)
			rows = append(rows, cells)
		}
		return io.EOF
	})
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(out)
	}
	if !c.Vertical && len(out.Features) <= manyFeatures {
		terminal.Table(e.Out, out.Features, rows)
		return nil
	}
	for i, row := range rows {
		e.Printf("%srow %d\n", strings.Repeat("\n", min(i, 1)), i)
		facts := make([][2]string, len(row))
		for j, cell := range row {
			facts[j] = [2]string{"  " + terminal.OneLine(out.Features[j]), cell}
		}
		e.PrintFacts(facts...)
	}
	return nil
}
