package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
)

// featuresCmd lists features, and changes what the schema says of them.
type featuresCmd struct {
	List      featuresListCmd      `cmd:"" default:"withargs" help:"List a table's features and their types."`
	Rename    featuresRenameCmd    `cmd:"" help:"Give a feature another name. No data is touched."`
	Deprecate featuresDeprecateCmd `cmd:"" help:"Say that features are to go. They are read as before."`
	Drop      featuresDropCmd      `cmd:"" help:"Drop features: nobody sees them, and compaction leaves them out."`
	Restore   featuresRestoreCmd   `cmd:"" help:"Take back that features are deprecated or dropped."`
}

type featuresRenameCmd struct {
	tableArgs
	Feature string `arg:"" help:"Name of the feature."`
	Name    string `arg:"" help:"Its new name."`
}

func (c *featuresRenameCmd) Run(ctx context.Context, a *app) error {
	if c.Name == "" || c.Name == c.Feature {
		return usagef("feature %q: %q is no new name", c.Feature, c.Name)
	}
	return c.change(ctx, a, fmt.Sprintf("feature %s renamed to %s", oneLine(c.Feature), oneLine(c.Name)),
		storage.FeatureChange{Feature: c.Feature, Rename: c.Name})
}

// change commits changes of features.
func (t tableArgs) change(ctx context.Context, a *app, what string, changes ...storage.FeatureChange) error {
	store, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	table, err := store.Table(ctx, t.Table)
	if err != nil {
		return err
	}
	made, err := table.Commit(ctx, storage.Change{Operation: "features", FeatureChanges: changes})
	if err != nil {
		return err
	}
	return a.committed(store, t.Table, made, what)
}

// namedFeatures are the arguments of commands that set what becomes of features.
type namedFeatures struct {
	tableArgs
	Features []string `arg:"" optional:"" help:"Names of the features."`
	From     string   `placeholder:"FILE" help:"A file of names, one a line, or - for standard input."`
	DryRun   bool     `help:"Say which it would be, and change nothing."`
}

// maxNames bounds a file of names.
const maxNames = 64 << 20

// names returns those of the arguments and those of the file, each once.
func (n *namedFeatures) names(ctx context.Context, a *app) ([]string, error) {
	out := slices.Clone(n.Features)
	if n.From != "" {
		in := io.Reader(interruptible(ctx, a.in))
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
			return nil, usagef("--from %s: more than %s", n.From, bytesText(maxNames))
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				out = append(out, line)
			}
		}
	}
	if len(out) == 0 {
		if n.From != "" {
			return nil, usagef("--from %s: no names in it", n.From)
		}
		return nil, usagef("say which features: their names, or --from FILE")
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	}), nil
}

func (n *namedFeatures) set(ctx context.Context, a *app, status storage.FeatureStatus, did string) error {
	names, err := n.names(ctx, a)
	if err != nil {
		return err
	}
	count := plural(uint64(len(names)), "feature")
	if n.DryRun {
		return n.would(ctx, a, names, status, count+" would be "+did)
	}
	var changes []storage.FeatureChange
	for _, f := range names {
		changes = append(changes, storage.FeatureChange{Feature: f, Status: &status})
	}
	return n.change(ctx, a, count+" "+did, changes...)
}

// would checks that the table has the features, and says what would become of them.
func (n *namedFeatures) would(ctx context.Context, a *app, names []string, status storage.FeatureStatus, what string) error {
	store, err := n.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	snap, err := atFlag{}.snapshot(ctx, store, n.Table)
	if err != nil {
		return err
	}
	if status == storage.FeatureActive { // those that are dropped too, which Lookup does not find
		all, err := snap.AllFeatures(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !slices.ContainsFunc(all, func(f storage.Feature) bool { return f.Name == name }) {
				return fmt.Errorf("table %s: feature %.100q: %w", n.Table, name, storage.ErrNotFound)
			}
		}
	} else if _, err := snap.Lookup(ctx, names...); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Store    string   `json:"store"`
			Table    string   `json:"table"`
			DryRun   bool     `json:"dry_run"`
			Features []string `json:"features"`
		}{store.Blobs().URI(), n.Table, true, names})
	}
	a.printf("%s in a new snapshot of %s\n", what, oneLine(n.Table))
	return nil
}

type featuresDeprecateCmd struct{ namedFeatures }

func (c *featuresDeprecateCmd) Run(ctx context.Context, a *app) error {
	return c.set(ctx, a, storage.FeatureDeprecated, "deprecated")
}

type featuresDropCmd struct{ namedFeatures }

func (c *featuresDropCmd) Run(ctx context.Context, a *app) error {
	return c.set(ctx, a, storage.FeatureDropped, "dropped")
}

type featuresRestoreCmd struct{ namedFeatures }

func (c *featuresRestoreCmd) Run(ctx context.Context, a *app) error {
	return c.set(ctx, a, storage.FeatureActive, "restored")
}
