package change

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/tools/dsi/app"
	"github.com/dsistore/dsistore/tools/terminal"
)

// FeaturesRename gives a feature another name.
type FeaturesRename struct {
	app.TableArgs
	Feature string `arg:"" help:"Name of the feature."`
	Name    string `arg:"" help:"New name of the feature."`
}

// Run runs the command.
func (c *FeaturesRename) Run(ctx context.Context, e *app.Env) error {
	if c.Name == "" || c.Name == c.Feature {
		return terminal.Usagef("feature %q: the new name is %q: want another", c.Feature, c.Name)
	}
	did := fmt.Sprintf("feature %s renamed to %s", terminal.OneLine(c.Feature), terminal.OneLine(c.Name))
	return changeFeatures(ctx, e, c.TableArgs, did, commit.FeatureChange{Feature: c.Feature, Rename: c.Name})
}

func changeFeatures(ctx context.Context, e *app.Env, t app.TableArgs, did string,
	changes ...commit.FeatureChange) error {
	table, err := t.OpenTable(ctx, e)
	if err != nil {
		return err
	}
	made, err := table.Commit(ctx, commit.Change{Operation: "features",
		Ops: []commit.Operation{commit.ChangeFeatures(changes)}})
	if err != nil {
		return err
	}
	return e.PrintCommitted(t.Table, made, did)
}

// namedFeatures are the arguments of commands that set what becomes of features.
type namedFeatures struct {
	app.TableArgs
	Features []string `arg:"" optional:"" complete:"features" help:"Names, globs (user_*) or sets (@all, @labels) of the features."`
	From     string   `placeholder:"FILE" help:"A file of names, one per line, or - for standard input."`
	DryRun   bool     `help:"Print which features would change, and change nothing."`
}

const (
	// maxNames bounds a file of names.
	maxNames = 64 << 20
	// changedFeatures is how many features are printed.
	changedFeatures = 100
)

// entries returns what the arguments select, as --features does elsewhere. The names in the file are no globs.
func (n *namedFeatures) entries(ctx context.Context, e *app.Env) ([]string, error) {
	out := slices.Clone(n.Features)
	if n.From != "" {
		in := e.Interruptible(ctx)
		if n.From != "-" {
			f, err := os.Open(n.From)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			in = f
		}
		text, err := io.ReadAll(io.LimitReader(in, maxNames+1))
		if err != nil {
			return nil, fmt.Errorf("--from %s: %w", n.From, err)
		}
		if len(text) > maxNames {
			return nil, terminal.Usagef("--from %s: more than %s", n.From, terminal.Bytes(maxNames))
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				out = append(out, reader.Literal(line))
			}
		}
	}
	if len(out) == 0 {
		if n.From != "" {
			return nil, terminal.Usagef("--from %s: no names in it", n.From)
		}
		return nil, terminal.Usagef("say which features: their names or globs, or --from FILE")
	}
	return out, nil
}

// A statusChange is what a command makes of features.
type statusChange struct {
	to   catalog.FeatureStatus
	from []catalog.FeatureStatus // of the features that it changes
	did  string
}

// changes reports whether it changes a feature.
func (c statusChange) changes(f catalog.Feature) bool { return slices.Contains(c.from, f.Status) }

// want names the status of the features that it changes.
func (c statusChange) want() string {
	var out []string
	for _, s := range c.from {
		out = append(out, s.String())
	}
	return strings.Join(out, " or ")
}

// check returns an error if a feature that was selected cannot change.
func (c statusChange) check(f catalog.Feature) error {
	switch {
	case c.changes(f) && c.to == catalog.FeatureDropped && f.Role.IsKey():
		return fmt.Errorf("feature %s is the %v: it cannot be dropped", f.Name, f.Role)
	case c.changes(f):
		return nil
	case f.Status == catalog.FeatureDropped:
		return &catalog.NotFoundError{Kind: "feature", Name: f.Name, Dropped: true}
	}
	return fmt.Errorf("feature %s is %v: want one that is %s; nothing was changed", f.Name, f.Status, c.want())
}

// choose returns the features that entries select, each once: those that they name, and of those that a glob or set
// selects the ones that change.
func (c statusChange) choose(all []catalog.Feature, entries []string) (out []catalog.Feature, err error) {
	byName := make(map[string]catalog.Feature, len(all))
	for _, f := range all {
		byName[f.Name] = f
	}
	seen := map[string]bool{}
	for _, entry := range entries {
		var found []catalog.Feature
		isName := reader.Literal(entry) == entry
		if f, ok := byName[entry]; ok && isName {
			found = append(found, f)
		} else if !isName {
			match, err := reader.Matcher(entry)
			if err != nil {
				return nil, terminal.UsageError{Err: err}
			}
			for _, f := range all {
				if match(f) && (c.changes(f) || reader.Names(entry, f.Name)) {
					found = append(found, f)
				}
			}
		}
		switch {
		case found == nil && isName:
			return nil, catalog.NotFound("feature", entry, slices.Collect(maps.Keys(byName)))
		case found == nil:
			return nil, &catalog.NotFoundError{Kind: c.want() + " feature", Name: entry, Pattern: true}
		}
		for _, f := range found {
			if err := c.check(f); err != nil {
				return nil, err
			}
			if !seen[f.Name] {
				seen[f.Name] = true
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// A changeJSON is what --json prints of features that have changed, or would.
type changeJSON struct {
	app.Head
	DryRun   bool     `json:"dry_run"`
	Features []string `json:"features"`
	// Null are restored features that are null in some rows. LeftOut would be null in all.
	Null    []nullFeature `json:"null,omitempty"`
	LeftOut []string      `json:"left_out,omitempty"`
}

// A nullFeature is null in some rows of the table: nothing is stored of it there.
type nullFeature struct {
	Feature  string `json:"feature"`
	Rows     uint64 `json:"rows"` // of the table
	NullRows uint64 `json:"null_rows"`
}

// nullIn returns which of the features that were dropped are null in rows of a snapshot. Compaction takes nothing of
// the others.
func nullIn(ctx context.Context, snap *storage.Snapshot, features []catalog.Feature) (out []nullFeature, err error) {
	features = slices.DeleteFunc(slices.Clone(features), func(f catalog.Feature) bool {
		return f.Status != catalog.FeatureDropped
	})
	if len(features) == 0 {
		return nil, nil
	}
	ids := make([]catalog.FeatureID, len(features))
	for i, f := range features {
		ids[i] = f.ID
	}
	held, err := snap.HeldRows(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for i, f := range features {
		if rows := snap.Info().Rows; held[i] < rows {
			out = append(out, nullFeature{f.Name, rows, rows - held[i]})
		}
	}
	return out, nil
}

// set gives the features a status.
func (n *namedFeatures) set(ctx context.Context, e *app.Env, c statusChange) error {
	entries, err := n.entries(ctx, e)
	if err != nil {
		return err
	}
	snap, err := n.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	all, err := snap.AllFeatures(ctx)
	if err != nil {
		return err
	}
	features, err := c.choose(all, entries)
	if err != nil {
		return fmt.Errorf("table %s: %w", n.Table, err)
	}
	out := changeJSON{Head: app.Of(snap.Table().Store(), n.Table, 0), DryRun: n.DryRun}
	if c.to == catalog.FeatureActive {
		if out.Null, err = nullIn(ctx, snap, features); err != nil {
			return err
		}
		features = slices.DeleteFunc(features, func(f catalog.Feature) bool {
			gone := slices.Contains(out.Null, nullFeature{f.Name, snap.Info().Rows, snap.Info().Rows})
			if gone {
				out.LeftOut = append(out.LeftOut, f.Name)
			}
			return gone
		})
		if len(features) == 0 {
			return fmt.Errorf("table %s: nothing is stored of %s: a restored feature would be null in every "+
				"row. Ingest it again: it is a new feature then", n.Table, firstNames(out.LeftOut, shownFeatures))
		}
	}
	var changes []commit.FeatureChange
	for _, f := range features {
		out.Features = append(out.Features, f.Name)
		changes = append(changes, commit.FeatureChange{Feature: f.Name, Status: &c.to})
	}
	where, did := "a new snapshot", "would be "+c.did
	if !n.DryRun {
		made, err := snap.Table().Commit(ctx, commit.Change{Operation: "features",
			Ops: []commit.Operation{commit.ChangeFeatures(changes)}})
		if err != nil {
			return err
		}
		out.Snapshot = made.Info().Number
		where, did = fmt.Sprintf("snapshot %d", out.Snapshot), c.did
		snap = made // a compaction may have come between
	}
	if out.Null = nil; c.to == catalog.FeatureActive {
		if out.Null, err = nullIn(ctx, snap, features); err != nil {
			return fmt.Errorf("%s in %s: in how many rows they are null is not known: %w", did, where, err)
		}
	}
	if e.JSON {
		return e.PrintJSON(out)
	}
	e.Printf("%s %s in %s of %s\n", terminal.Plural(uint64(len(features)), "feature"), did, where,
		terminal.OneLine(n.Table))
	if n.DryRun {
		terminal.PrintSome(e.Env, changedFeatures, "feature", "feature, type, role, status", features,
			func(f catalog.Feature) []string {
				return []string{f.Name, f.Type.String(), f.Role.String(), f.Status.String()}
			})
	}
	for _, f := range out.Null[:min(len(out.Null), changedFeatures)] {
		e.Printf("%s is null in %s of %s: nothing is stored of it there\n", terminal.OneLine(f.Feature),
			terminal.Count(f.NullRows), terminal.Plural(f.Rows, "row"))
	}
	if c.to == catalog.FeatureDropped && !n.DryRun {
		e.Printf("a later dump that has the column brings it back as a new feature; \"drop\": true for the column in " +
			"a mapping file leaves it out\n")
	}
	if len(out.LeftOut) > 0 {
		e.Printf("left out, because nothing is stored of them: %s; a feature that is ingested again is a new one\n",
			firstNames(out.LeftOut, shownFeatures))
	}
	return nil
}

// FeaturesDeprecate says that features are to go.
type FeaturesDeprecate struct{ namedFeatures }

// Run runs the command.
func (c *FeaturesDeprecate) Run(ctx context.Context, e *app.Env) error {
	return c.set(ctx, e, statusChange{catalog.FeatureDeprecated, []catalog.FeatureStatus{catalog.FeatureActive},
		"deprecated"})
}

// FeaturesDrop drops features.
type FeaturesDrop struct{ namedFeatures }

// Run runs the command.
func (c *FeaturesDrop) Run(ctx context.Context, e *app.Env) error {
	return c.set(ctx, e, statusChange{catalog.FeatureDropped,
		[]catalog.FeatureStatus{catalog.FeatureActive, catalog.FeatureDeprecated}, "dropped"})
}

// FeaturesRestore takes back that features are deprecated or dropped.
type FeaturesRestore struct{ namedFeatures }

// Run runs the command.
func (c *FeaturesRestore) Run(ctx context.Context, e *app.Env) error {
	return c.set(ctx, e, statusChange{catalog.FeatureActive,
		[]catalog.FeatureStatus{catalog.FeatureDeprecated, catalog.FeatureDropped}, "restored"})
}
