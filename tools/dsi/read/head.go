package read

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/ingest"
	"github.com/dsistore/dsistore/tools/terminal"
	"github.com/dsistore/dsistore/writer"
)

// Head prints the first rows.
type Head struct {
	tableArgs
	Features []string `complete:"features" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions). Default: as many as fit, keys and labels first, then the features that were read most."`
	Rows     int      `short:"n" default:"10" help:"Number of rows."`
	Vertical bool     `help:"Print one line per value instead of one line per row; the default if there are many features."`
	readFlags
}

const (
	// manyFeatures do not fit beside one another.
	manyFeatures = 12
	// mostShown is how many features are read where nobody says which: no terminal has room for more.
	mostShown = 40
	// widestCell is how much of a value is shown where the columns that fit are.
	widestCell = 24
	// elsewhere is the width where there is no terminal.
	elsewhere = 80
)

// Help says what is recorded.
func (c *Head) Help() string {
	return "This is a look, not a job: a usage record is written only with --job."
}

// Run runs the command.
func (c *Head) Run(ctx context.Context, e *app.Env) error {
	if c.Rows < 1 || c.Rows > reader.MaxBatchSize {
		return terminal.Usagef("--rows %d: want 1 to %d", c.Rows, reader.MaxBatchSize)
	}
	view, plan, left, err := c.openPlan(ctx, e)
	if err != nil {
		return err
	}
	read := c.options("head")
	read.Usage.Off = c.NoUsage || c.Job == "" // a look is no job: the features are as unread as before
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
		Left     int      `json:"features_left_out"`
		Rows     [][]any  `json:"rows"`
	}{c.Table, plan.Snapshot, nil, left, [][]any{}}
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
	width := cmp.Or(e.Width, elsewhere)
	switch {
	case c.Vertical || len(c.Features) > 0 && len(out.Features) > manyFeatures:
		c.printVertical(e, out.Features, rows)
	case len(c.Features) > 0:
		terminal.Table(e.Out, out.Features, rows)
	default:
		for _, row := range rows {
			for i := range row {
				row[i] = terminal.Shorten(row[i], widestCell)
			}
		}
		left += terminal.FittingTable(e.Out, width, out.Features, rows)
	}
	if left > 0 {
		terminal.Wrap(e.Out, width, 2, fmt.Sprintf("and %s: --features chooses, as in --features "+
			"'@labels,user_*'; dsi features %s lists them", terminal.Plural(uint64(left), "more feature"),
			c.Place().Typed()))
	}
	return nil
}

// openPlan opens what the arguments mean, plans to read it, and returns how many features it leaves out because nobody
// said which.
func (c *Head) openPlan(ctx context.Context, e *app.Env) (view *storage.View, plan *reader.Plan, left int, err error) {
	opts := reader.PlanOptions{Features: c.Features, BatchSize: c.Rows}
	if len(c.Features) == 0 {
		opts.Features = []string{"@all"}
	}
	view, plan, err = c.plan(ctx, e, c.tableArgs, opts)
	if err != nil || len(c.Features) > 0 {
		return view, plan, 0, err
	}
	all := plan.Features
	if c.Downsample != "" {
		all = all[:len(all)-1] // the weight, which comes by itself
	}
	if len(all) == 0 {
		return view, plan, 0, nil
	}
	opts.Features = choose(ctx, e, view.Snapshot.Table(), all)
	if opts, err = c.planOptions(opts); err != nil {
		return nil, nil, 0, err
	}
	plan, err = reader.NewViewPlan(ctx, view, opts)
	return view, plan, len(all) - len(opts.Features), err
}

// printVertical prints a line per value.
func (c *Head) printVertical(e *app.Env, names []string, rows [][]string) {
	for i, row := range rows {
		e.Printf("%srow %d\n", strings.Repeat("\n", min(i, 1)), i)
		facts := make([][2]string, len(row))
		for j, cell := range row {
			facts[j] = [2]string{"  " + terminal.OneLine(names[j]), cell}
		}
		e.PrintFacts(facts...)
	}
}

// choose returns the features that are read where nobody says which: keys, then labels, then what was read most in the
// last days, then the first ones. As names, they are escaped.
func choose(ctx context.Context, e *app.Env, table *storage.Table, all []catalog.Feature) []string {
	popular := make([]float64, len(all))
	if len(all) > manyFeatures {
		if p, _ := (app.PopularFlag{PopularDays: ingest.PopularDays}).Popularity(ctx, e, table); p != nil {
			popular = p.Popularity(all)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(writer.RoleOrder(all[a].Role), writer.RoleOrder(all[b].Role)),
			cmp.Compare(popular[b], popular[a]))
	})
	var names []string
	for _, i := range order[:min(len(order), mostShown)] {
		names = append(names, strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "@", `\@`).Replace(all[i].Name))
	}
	return names
}
