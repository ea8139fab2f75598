package read

import (
	"context"
	"io"
	"time"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/arrowbatch"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Export writes rows to a file.
type Export struct {
	tableArgs
	Features []string  `default:"@all" complete:"features" help:"Names, globs (user_*) or sets (@all, @labels, @keys, @partitions)."`
	To       string    `required:"" placeholder:"FILE" help:"out.parquet, out.arrow (an IPC file), out.arrows (an IPC stream), out.jsonl (an object per row), or - for an IPC stream on standard output."`
	Fold     bool      `help:"Put features of one source map or struct back into one column."`
	Dedup    app.Dedup `bare:"ikjt" help:"Keep duplicates shared, in Arrow: as dictionaries of lists (ikjt, which --dedup alone means; .arrows and - only) or as list views (partial)."`
	terminal.ForceFlag
	readFlags
	app.MetricsFlag
}

// exportJSON is what export prints with --json.
type exportJSON struct {
	Table    string  `json:"table"`
	Snapshot uint64  `json:"snapshot"`
	To       string  `json:"to"`
	Features int     `json:"features"`
	Rows     uint64  `json:"rows"`
	Bytes    int64   `json:"bytes"`
	Seconds  float64 `json:"seconds"`
}

// Run runs the command.
func (c *Export) Run(ctx context.Context, e *app.Env) error {
	format := arrowbatch.IPCStream
	if c.To != "-" {
		var err error
		if format, err = arrowbatch.ParseFormat(c.To); err != nil {
			return terminal.Usagef("--to: %w", err)
		}
	} else if e.JSON {
		return terminal.Usagef("--json with --to -: both want standard output")
	}
	switch d := reader.Dedup(c.Dedup); {
	case d != reader.DedupKJT && format.Plain():
		return terminal.Usagef("--dedup=%v: %v has a value per row: want .arrow, .arrows or -", d, format)
	case d == reader.DedupIKJT && format == arrowbatch.IPCFile:
		return terminal.Usagef("--dedup=%v: an Arrow file holds one dictionary a column: want .arrows or -, or "+
			"--dedup=partial", d)
	}
	view, plan, err := c.plan(ctx, e, c.tableArgs,
		reader.PlanOptions{Features: c.Features, Dedup: reader.Dedup(c.Dedup)})
	if err != nil {
		return err
	}
	start := time.Now()
	s, err := reader.OpenView(ctx, view, plan, c.options("export"))
	if err != nil {
		return err
	}
	defer e.Metrics.AddReader(s)()
	defer s.Close()
	var rows uint64
	write := func(w io.Writer) error {
		var err error
		rows, err = arrowbatch.Write(ctx, w, format, s, arrowbatch.Options{Fold: c.Fold})
		return err
	}
	if c.To == "-" {
		return write(e.Out)
	}
	n, err := c.WriteFile(c.To, write)
	if err != nil {
		return err
	}
	out := exportJSON{c.Table, plan.Snapshot, c.To, len(plan.Features), rows, n, time.Since(start).Seconds()}
	if e.JSON {
		return e.PrintJSON(out)
	}
	e.Printf("%s: %s, %s, %s, %.1f s\n", terminal.OneLine(c.To), terminal.Plural(rows, "row"),
		terminal.Plural(uint64(out.Features), "feature"), terminal.Bytes(uint64(n)), out.Seconds)
	return nil
}
