package main

import (
	"context"
	"io"

	"github.com/dsistore/dsistore/reader"
)

type headCmd struct {
	tableArgs
	Features []string `required:"" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)."`
	Rows     int      `short:"n" default:"10" help:"How many rows."`
	Vertical bool     `help:"A line a value instead of a line a row. Default when there are many features."`
	readFlags
}

// manyFeatures do not fit beside one another.
const manyFeatures = 12

func (c *headCmd) Run(ctx context.Context, a *app) error {
	if c.Rows < 1 || c.Rows > reader.MaxBatchSize {
		return usagef("--rows %d: want 1 to %d", c.Rows, reader.MaxBatchSize)
	}
	opts, err := c.planOptions(c.Features)
	if err != nil {
		return err
	}
	store, view, err := c.openTable(ctx, c.tableArgs)
	if err != nil {
		return err
	}
	defer store.Close()
	opts.BatchSize = c.Rows
	plan, err := reader.NewViewPlan(ctx, view, opts)
	if err != nil {
		return err
	}
	s, err := reader.OpenView(ctx, view, plan, reader.Options{MaxBatches: 1, Workers: 1, Usage: c.usage("head"), Lease: c.lease()})
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
				if a.json {
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
	if a.json {
		return a.printJSON(out)
	}
	if !c.Vertical && len(out.Features) <= manyFeatures {
		a.printTable(out.Features, rows)
		return nil
	}
	for i, row := range rows {
		if i > 0 {
			a.printf("\n")
		}
		a.printf("row %d\n", i)
		facts := make([][2]string, len(row))
		for j, cell := range row {
			facts[j] = [2]string{"  " + oneLine(out.Features[j]), cell}
		}
		a.printFacts(facts)
	}
	return nil
}
