package change

import (
	"context"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Delete deletes rows.
type Delete struct {
	app.TableArgs
	app.RowFlags
	app.UsageFlags
	SampleList string `placeholder:"NAME" help:"The rows in this list."`
	DryRun     bool   `help:"Say what would be deleted, and delete nothing."`
}

// Run runs the command.
func (c *Delete) Run(ctx context.Context, e *app.Env) error {
	lists := ""
	if c.SampleList != "" {
		lists = selection.ListName(c.SampleList)
	}
	q, err := c.Query(ctx, e, lists)
	if err != nil {
		return err
	}
	table, err := c.OpenWhole(ctx, e, 0, "rows are deleted")
	if err != nil {
		return err
	}
	r, err := selection.Delete(ctx, table, q,
		selection.Options{DryRun: c.DryRun, Read: reader.Options{Usage: c.Usage("delete")}})
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(r)
	}
	did := terminal.Did(c.DryRun, "deleted", "delete")
	if r.Deleted == 0 && !c.DryRun {
		did = "nothing to delete:"
	}
	e.Printf("%s %s of %s in %s; %s left, in snapshot %d\n", did, terminal.Plural(r.Deleted, "row"),
		terminal.OneLine(r.Table), terminal.Plural(uint64(len(r.Segments)), "segment"), terminal.Count(r.Left),
		r.Snapshot)
	e.PrintFacts(app.KeyFacts(r.Keys)...)
	terminal.PrintSome(e.Env, app.ShownSegments, "segment", "segment, partition, #rows, #deleted before, #deleted",
		r.Segments, func(s selection.SegmentDeletes) []string {
			return []string{s.Segment, s.Partition, terminal.Count(s.Rows), terminal.Count(s.Before),
				terminal.Count(s.Deleted)}
		})
	return nil
}
