package read

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Lookup finds rows by their keys.
type Lookup struct {
	tableArgs
	app.KeyFlags
	app.AtFlag
	app.UsageFlags
}

// shownPositions is how many rows of a segment are listed for people.
const shownPositions = 10

// Run runs the command.
func (c *Lookup) Run(ctx context.Context, e *app.Env) error {
	if len(c.Keys) == 0 {
		return terminal.Usagef("say which keys: --keys FILE")
	}
	view, err := c.cached().OpenView(ctx, e, c.AtFlag)
	if err != nil {
		return err
	}
	r, err := selection.Lookup(ctx, view, c.Source(ctx, e), reader.Options{Usage: c.Usage("lookup")})
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(r)
	}
	e.Printf("%s of %s in %s, in snapshot %d\n", terminal.Plural(r.Rows, "row"), terminal.OneLine(r.Table),
		terminal.Plural(uint64(len(r.Segments)), "segment"), r.Snapshot)
	e.PrintFacts(app.KeyFacts(r.Keys)...)
	terminal.PrintSome(e.Env, app.ShownSegments, "segment", "segment, partition, #rows, positions", r.Segments,
		func(s selection.FoundRows) []string {
			shown := s.Positions[:min(len(s.Positions), shownPositions)]
			at := strings.ReplaceAll(strings.Trim(fmt.Sprint(shown), "[]"), " ", ", ")
			if len(s.Positions) > shownPositions {
				at += ", ..."
			}
			return []string{s.Segment, s.Partition, terminal.Count(len(s.Rows)), at}
		})
	return nil
}
