package maintain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Erase takes rows out physically.
type Erase struct {
	app.TableArgs
	rewriteFlags
	app.PopularFlag
	app.MetricsFlag
	Memory app.Size `default:"1GiB" placeholder:"SIZE" help:"Memory for rewriting segments, as in 512MiB, 1GiB or 4g. The keys of the erased rows take more: about 100 bytes per key, plus the length of text keys."`
	Where  string   `placeholder:"EXPR" help:"Erase the rows for which this is true, as in user_id = 17, and all rows that were deleted before."`
	app.KeyFiles
	Key          string `placeholder:"FEATURE" help:"Feature that --keys refers to; default: the table's user key, and without one the command is refused. With --where, the feature whose values are searched for after the rows were erased; default: the table's user key, else its request key, else its session key."`
	DropBranches bool   `help:"Drop branches that may have the rows. Without this, the command names them and changes nothing."`
	DryRun       bool   `help:"Say what would be touched, and change nothing. The exit code is the one that the erasure would have, if leases, branches or the bucket are in its way, or the definition of a sample list names a key."`
}

// eraseJSON is what erase prints with --json.
type eraseJSON struct {
	Store string `json:"store"`
	*compaction.EraseReport
}

// Run runs the command.
func (c *Erase) Run(ctx context.Context, e *app.Env) error {
	switch {
	case c.Where == "" && len(c.Keys) == 0:
		return terminal.Usagef("say which rows: --where EXPR or --keys FILE")
	case c.Where != "" && len(c.Keys) > 0:
		return terminal.Usagef("--where and --keys: want one of them")
	}
	table, err := c.OpenWhole(ctx, e, int64(c.Rate), "rows are erased")
	if err != nil {
		return err
	}
	what := compaction.Erasure{Where: c.Where, Key: c.Key, DropBranches: c.DropBranches, DryRun: c.DryRun,
		Compact: c.options(c.Memory)}
	what.Compact.Popularity, _ = c.Popularity(ctx, e, table)
	if len(c.Keys) > 0 {
		if what.Keys, err = c.keys(ctx, e, table); err != nil {
			return err
		}
	}
	var finish func()
	what.Compact.Progress, finish = progress(e, "erasing")
	r, err := compaction.Erase(ctx, table, what)
	finish()
	if err != nil && !errors.Is(err, compaction.ErrFound) && !(c.DryRun && errors.Is(err, compaction.ErrHeld)) {
		return err
	}
	if err == nil {
		warnAbsent(e, r)
	}
	if e.JSON {
		return errors.Join(e.PrintJSON(eraseJSON{table.Store().Blobs().URI(), r}), err)
	}
	printErasure(e, r)
	return err
}

// keys reads the files of keys.
func (c *Erase) keys(ctx context.Context, e *app.Env, table *storage.Table) (*compaction.Keys, error) {
	snap, err := table.Latest(ctx)
	if err != nil {
		return nil, err
	}
	key, err := compaction.KeyFeature(ctx, snap, c.Key)
	if errors.Is(err, compaction.ErrNoKey) {
		return nil, terminal.UsageError{Err: err}
	}
	if err != nil {
		return nil, err
	}
	keys, err := compaction.NewKeys(key)
	if err != nil {
		return nil, err
	}
	return keys, c.Source(ctx, e).Each(ctx, key, keys.Add)
}

// warnAbsent warns if there was nothing to erase. This is no error: who was erased before is rightly gone. But it is
// the same if the keys are those of another feature, or are written in another way.
func warnAbsent(e *app.Env, r *compaction.EraseReport) {
	k := r.Keys
	switch {
	case k == nil || k.Missing < k.Keys || len(r.Expired) > 0 || r.Expires: // an older snapshot may have had them
	case k.Keys == 0:
		e.Warnf("the files of --keys have no key: nothing is erased")
	default:
		e.Warnf("no row of table %s has one of the keys (%s of %s): they were erased before, are written differently "+
			"in the table, or are of another feature (--key)", r.Table, terminal.Plural(k.Keys, "key"), k.Feature)
	}
}

// keyFacts says how many keys rows have, and which ones no row has.
func keyFacts(k *compaction.KeyReport) [][2]string {
	if k == nil {
		return nil
	}
	found := "all"
	switch {
	case k.Missing == k.Keys:
		found = "none"
	case k.Missing > 0:
		found = fmt.Sprintf("%s of them", terminal.Count(k.Keys-k.Missing))
	}
	facts := [][2]string{{"keys", fmt.Sprintf("%s of %s, %s found in the newest snapshot",
		terminal.Plural(k.Keys, "key"), k.Feature, found)}}
	if k.Missing > 0 {
		facts = append(facts, app.MissingKeys(k.Examples, k.Missing))
	}
	return facts
}

func printErasure(e *app.Env, r *compaction.EraseReport) {
	if r.DryRun {
		expire := "no snapshot"
		if r.Expires {
			expire = "all snapshots before"
		}
		e.Printf("would erase %s rows, and %s that were deleted before, rewrite %s of %s, %s of %s, and let %s "+
			"expire\n",
			terminal.Count(r.Rows), terminal.Count(r.Deleted), terminal.Count(r.Segments),
			terminal.Plural(r.TableSegments, "segment"), terminal.Bytes(r.Bytes), terminal.Bytes(r.TableBytes), expire)
		if r.Expires && r.Segments == 0 {
			e.Printf("only snapshots before may have the rows\n")
		}
		e.PrintFacts(keyFacts(r.Keys)...)
		if len(r.Branches) > 0 {
			e.Printf("would drop branches %s\n", terminal.OneLine(strings.Join(r.Branches, ", ")))
		}
		if r.KeepsVersions {
			e.Printf("would remove older versions of the table's objects, which the bucket keeps or may keep\n")
		}
		return
	}
	facts := append(keyFacts(r.Keys), [][2]string{
		{"rows", fmt.Sprintf("%s erased, and %s that were deleted before", terminal.Count(r.Rows),
			terminal.Count(r.Deleted))},
		{"rewritten", fmt.Sprintf("%s of %s, %s of %s, as %s", terminal.Count(r.Segments),
			terminal.Plural(r.TableSegments, "segment"), terminal.Bytes(r.Bytes), terminal.Bytes(r.TableBytes),
			terminal.Bytes(r.BytesMade))},
		{"expired", terminal.Plural(uint64(len(r.Expired)), "snapshot")},
		{"removed", fmt.Sprintf("%s, %s", terminal.Plural(r.Removed, "object"), terminal.Bytes(r.BytesRemoved))},
		{"snapshot", terminal.Count(r.Snapshot)},
	}...)
	add := func(name, value string) { facts = append(facts, [2]string{name, value}) }
	if r.Versions > 0 {
		add("versions", fmt.Sprintf("%s that the bucket kept, %s, removed",
			terminal.Plural(r.Versions, "older version"), terminal.Bytes(r.VersionBytes)))
	}
	if len(r.Branches) > 0 {
		add("branches", strings.Join(r.Branches, ", ")+" dropped")
	}
	switch s := r.Search; {
	case s == nil:
		add("not searched", "there is no key: the table has no key feature, no row was erased, or the files are empty")
	case len(s.Found) > 0:
		for _, place := range s.Found {
			add("found", place)
		}
		if s.More > 0 {
			add("found", fmt.Sprintf("in %s more", terminal.Plural(s.More, "place")))
		}
	default:
		add("searched", fmt.Sprintf("%s of %s: %s decoded in %s, %s read in %s; none was found",
			terminal.Plural(uint64(s.Keys), "key"), s.Feature, terminal.Plural(s.Slots, "value"),
			terminal.Plural(s.Segments, "segment"), terminal.Bytes(s.Bytes), terminal.Plural(s.Objects, "object")))
		add("proved", s.Proves())
		add("not proved", s.Unproved())
	}
	add("not touched", "source files, exports, backups and copies of the store")
	switch {
	case r.UnnamedError != "":
		add("not known", "what is in objects that no snapshot names: "+r.UnnamedError)
	case r.Unnamed > 0:
		add("not searched", fmt.Sprintf("%s, %s, that no snapshot names: an ingest or compaction that runs, or was "+
			"killed, wrote them; dsi gc removes them after a day",
			terminal.Plural(r.Unnamed, "object"), terminal.Bytes(r.UnnamedBytes)))
	}
	add("time", fmt.Sprintf("%.1f s", r.Seconds))
	e.PrintFacts(facts...)
}
