package main

import (
	"context"
	"fmt"

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
	store, err := t.openExisting(ctx)
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
	Features []string `arg:"" help:"Names of the features."`
}

func (n namedFeatures) set(ctx context.Context, a *app, status storage.FeatureStatus, did string) error {
	var changes []storage.FeatureChange
	for _, f := range n.Features {
		changes = append(changes, storage.FeatureChange{Feature: f, Status: &status})
	}
	return n.change(ctx, a, plural(uint64(len(changes)), "feature")+" "+did, changes...)
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
