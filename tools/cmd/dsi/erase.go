package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
)

type eraseCmd struct {
	tableArgs
	rewriteFlags
	popularFlag
	metricsFlag
	Where        string `placeholder:"EXPR" help:"Erase the rows for which this is true, as in user_id = 17, and all that were deleted before."`
	Keys         string `placeholder:"FILE" help:"Erase the rows that have one of the keys in this file, a line each, or in the column of the feature's name of .csv and .tsv; - is standard input."`
	Key          string `placeholder:"FEATURE" help:"The feature that --keys are of, or whose values are searched for. Default: the table's user key, else its request key, else its session key."`
	DropBranches bool   `help:"Drop the branches that may have the rows. Without it they are named, and nothing is done."`
	DryRun       bool   `help:"Say what would be touched, and change nothing."`
}

// eraseJSON is what erase prints with --json.
type eraseJSON struct {
	Store string `json:"store"`
	*compaction.EraseReport
}

func (c *eraseCmd) Run(ctx context.Context, a *app) error {
	if (c.Where == "") == (c.Keys == "") {
		return usagef("say which rows: --where EXPR or --keys FILE")
	}
	store, err := c.openThrottled(ctx, c.storeArg)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := c.whole(ctx, store, "rows are erased")
	if err != nil {
		return err
	}
	what := compaction.Erasure{Where: c.Where, Key: c.Key, DropBranches: c.DropBranches, DryRun: c.DryRun, Compact: c.options()}
	what.Compact.Popularity, _ = c.popularity(ctx, a, table)
	if c.Keys != "" {
		if what.Keys, err = c.keys(ctx, a, table); err != nil {
			return err
		}
	}
	bar := a.progress("erasing", unitBytes)
	defer bar.finish()
	what.Compact.Progress = func(p compaction.Progress) {
		bar.phase(fmt.Sprintf("job %d of %d", p.Job, p.Jobs), p.Bytes, p.TotalBytes)
	}
	r, err := compaction.Erase(ctx, table, what)
	bar.finish()
	switch {
	case err != nil && !errors.Is(err, compaction.ErrFound):
		return err
	case a.json:
		return errors.Join(a.printJSON(eraseJSON{store.Blobs().URI(), r}), err)
	}
	a.printErasure(r)
	return err
}

// keys reads the file of keys.
func (c *eraseCmd) keys(ctx context.Context, a *app, table *storage.Table) (*compaction.Keys, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	key, err := compaction.KeyFeature(ctx, snap, c.Key)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, usagef("table %s has no user, request or session key: say what the keys are of, --key FEATURE", c.Table)
	}
	if c.Keys == "-" {
		return compaction.ReadKeys(*key, interruptible(ctx, a.in), "standard input")
	}
	f, err := os.Open(c.Keys)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return compaction.ReadKeys(*key, f, c.Keys)
}

func (a *app) printErasure(r *compaction.EraseReport) {
	if r.DryRun {
		a.printf("would erase %s rows, and %s that were deleted before, rewrite %s of %s, %s of %s, and let all snapshots before expire\n",
			countText(r.Rows), countText(r.Deleted), countText(r.Segments), plural(r.TableSegments, "segment"), bytesText(r.Bytes), bytesText(r.TableBytes))
		if len(r.Branches) > 0 {
			a.printf("would drop branches %s\n", oneLine(strings.Join(r.Branches, ", ")))
		}
		return
	}
	facts := [][2]string{
		{"rows", fmt.Sprintf("%s erased, and %s that were deleted before", countText(r.Rows), countText(r.Deleted))},
		{"rewritten", fmt.Sprintf("%s of %s, %s of %s, as %s", countText(r.Segments), plural(r.TableSegments, "segment"), bytesText(r.Bytes),
			bytesText(r.TableBytes), bytesText(r.BytesMade))},
		{"expired", plural(uint64(len(r.Expired)), "snapshot")},
		{"removed", fmt.Sprintf("%s, %s", plural(r.Removed, "object"), bytesText(r.BytesRemoved))},
		{"snapshot", countText(r.Snapshot)},
	}
	if len(r.Branches) > 0 {
		facts = append(facts, [2]string{"branches", strings.Join(r.Branches, ", ") + " dropped"})
	}
	switch s := r.Search; {
	case s == nil:
		facts = append(facts, [2]string{"searched", "for nothing: no feature says which values are gone"})
	case len(s.Found) > 0:
		for _, place := range s.Found {
			facts = append(facts, [2]string{"found", place})
		}
		if s.More > 0 {
			facts = append(facts, [2]string{"found", fmt.Sprintf("in %s more", plural(s.More, "place"))})
		}
	default:
		facts = append(facts, [2]string{"searched", fmt.Sprintf("%s of %s: %s decoded in %s, %s read in %s; none was found", plural(uint64(s.Keys), "key"),
			s.Feature, plural(s.Slots, "value"), plural(s.Segments, "segment"), bytesText(s.Bytes), plural(s.Objects, "object"))},
			[2]string{"proved", s.Proves()})
	}
	switch {
	case r.UnnamedError != "":
		facts = append(facts, [2]string{"not known", "what is in objects that no snapshot names: " + r.UnnamedError})
	case r.Unnamed > 0:
		facts = append(facts, [2]string{"not known", fmt.Sprintf("what is in %s, %s, that no snapshot names: of an ingest or compaction under way, or killed; dsi gc takes them when they are older than a day",
			plural(r.Unnamed, "object"), bytesText(r.UnnamedBytes))})
	}
	facts = append(facts, [2]string{"time", fmt.Sprintf("%.1f s", r.Seconds)})
	a.printFacts(facts)
}
