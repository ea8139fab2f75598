package change

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/selection"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Samples keeps rows under a name.
type Samples struct {
	Create samplesCreate `cmd:"" help:"Create a sample list: rows under a name, for --sample-list." example:"dsi samples create store ads expensive --where 'price > 10'"`
	List   samplesList   `cmd:"" help:"List a table's sample lists, and how many rows they have." example:"dsi samples list store ads"`
	Show   samplesShow   `cmd:"" help:"Show a sample list, by partition." example:"dsi samples show store ads hard"`
	Drop   samplesDrop   `cmd:"" destructive:"" help:"Drop a sample list. Its rows stay." example:"dsi samples drop store ads hard"`
}

// listArg names a sample list.
type listArg struct {
	List string `arg:"" help:"Name of the sample list."`
}

type samplesCreate struct {
	app.TableArgs
	listArg
	app.RowFlags
	app.UsageFlags
	Lists   string `placeholder:"EXPR" help:"Other lists, joined: 'a AND NOT b', 'a OR b', with parentheses, and \"a name\" in quotes. Rows must match all flags."`
	Replace bool   `help:"Replace the list of this name."`
	DryRun  bool   `help:"Say what the list would contain, and create nothing."`
}

func (c *samplesCreate) Run(ctx context.Context, e *app.Env) error {
	q, err := c.Query(ctx, e, c.Lists)
	if err != nil {
		return err
	}
	table, err := c.OpenWhole(ctx, e, 0, "sample lists are made")
	if err != nil {
		return err
	}
	r, err := selection.Create(ctx, table, c.List, q, c.Replace,
		selection.Options{DryRun: c.DryRun, Read: reader.Options{Usage: c.Usage("samples create")}})
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(r)
	}
	e.Printf("sample list %s of %s %s %s of %s (%s), in %s; snapshot %d\n", terminal.OneLine(r.Name),
		terminal.OneLine(r.Table), terminal.Did(c.DryRun, "has", "have"), terminal.Plural(r.Rows, "row"),
		terminal.Count(r.TableRows), terminal.Percent(r.Share), terminal.Plural(r.Segments, "segment"), r.Snapshot)
	e.PrintFacts(app.KeyFacts(r.Keys)...)
	return nil
}

type samplesList struct{ app.TableArgs }

func (c *samplesList) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	lists, err := snap.SampleLists(ctx)
	if err != nil {
		return err
	}
	out := struct {
		app.Head
		Lists []*selection.ListInfo `json:"sample_lists"`
	}{app.Of(snap.Table().Store(), c.Table, 0), []*selection.ListInfo{}}
	for _, l := range lists {
		i, _, err := selection.Describe(ctx, snap, l)
		if err != nil {
			return err
		}
		out.Lists = append(out.Lists, i)
	}
	return terminal.PrintList(e.Env, out, "no sample lists of "+terminal.OneLine(c.Table),
		"sample list, #rows, #share, #added, definition", out.Lists, func(i *selection.ListInfo) []string {
			return []string{i.Name, terminal.Count(i.Rows), terminal.Percent(i.Share), terminal.Count(i.Added),
				i.Definition}
		})
}

type samplesShow struct {
	app.TableArgs
	listArg
}

func (c *samplesShow) Run(ctx context.Context, e *app.Env) error {
	snap, err := c.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	list, err := snap.SampleList(ctx, c.List)
	if err != nil {
		return err
	}
	i, partitions, err := selection.Describe(ctx, snap, list)
	if err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(struct {
			*selection.ListInfo
			Partitions []selection.PartitionShare `json:"partitions"`
		}{i, partitions})
	}
	facts := [][2]string{
		{"sample list", i.Name},
		{"definition", i.Definition},
		{"rows", fmt.Sprintf("%s of %s (%s), in %s", terminal.Count(i.Rows), terminal.Count(i.TableRows),
			terminal.Percent(i.Share), terminal.Plural(i.Segments, "segment"))},
		{"snapshot", fmt.Sprintf("made in %d; rows ingested since are not in it", i.Added)},
	}
	if i.Deleted > 0 {
		facts = append(facts, [2]string{"deleted", terminal.Plural(i.Deleted, "row") + " of it, which nobody reads"})
	}
	e.PrintFacts(facts...)
	if len(partitions) > 1 {
		terminal.PrintRows(e.Env, "partition, #rows, #of, #share", partitions,
			func(p selection.PartitionShare) []string {
				return []string{p.Partition, terminal.Count(p.Rows), terminal.Count(p.TableRows),
					terminal.Percent(p.Share)}
			})
	}
	return nil
}

type samplesDrop struct {
	app.TableArgs
	listArg
}

func (c *samplesDrop) Run(ctx context.Context, e *app.Env) error {
	table, err := c.OpenWhole(ctx, e, 0, "sample lists are dropped")
	if err != nil {
		return err
	}
	made, err := selection.Drop(ctx, table, c.List)
	if err != nil {
		return err
	}
	return e.PrintCommitted(c.Table, made, "sample list "+terminal.OneLine(c.List)+" dropped")
}
