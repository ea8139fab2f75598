package change

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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
	Features []string `arg:"" optional:"" complete:"features" help:"Names of the features."`
	From     string   `placeholder:"FILE" help:"A file of names, one per line, or - for standard input."`
	DryRun   bool     `help:"Say which features would change, and change nothing."`
}

// maxNames bounds a file of names.
const maxNames = 64 << 20

// names returns those of the arguments and those of the file, each once.
func (n *namedFeatures) names(ctx context.Context, e *app.Env) ([]string, error) {
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
				out = append(out, line)
			}
		}
	}
	if len(out) == 0 {
		if n.From != "" {
			return nil, terminal.Usagef("--from %s: no names in it", n.From)
		}
		return nil, terminal.Usagef("say which features: their names, or --from FILE")
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	}), nil
}

// set gives the features a status.
func (n *namedFeatures) set(ctx context.Context, e *app.Env, status catalog.FeatureStatus, did string) error {
	names, err := n.names(ctx, e)
	if err != nil {
		return err
	}
	count := terminal.Plural(uint64(len(names)), "feature")
	if n.DryRun {
		return n.would(ctx, e, names, status, count+" would be "+did)
	}
	var changes []commit.FeatureChange
	for _, f := range names {
		changes = append(changes, commit.FeatureChange{Feature: f, Status: &status})
	}
	return changeFeatures(ctx, e, n.TableArgs, count+" "+did, changes...)
}

// would checks that the table has the features, and says what would become of them.
func (n *namedFeatures) would(ctx context.Context, e *app.Env, names []string, status catalog.FeatureStatus,
	did string) error {
	snap, err := n.OpenNewest(ctx, e)
	if err != nil {
		return err
	}
	if status == catalog.FeatureActive { // those that are dropped too, which Lookup does not find
		all, err := snap.AllFeatures(ctx)
		if err != nil {
			return err
		}
		known := make([]string, len(all))
		for i, f := range all {
			known[i] = f.Name
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				return fmt.Errorf("table %s: %w", n.Table, catalog.NotFound("feature", name, known))
			}
		}
	} else if _, err := snap.Lookup(ctx, names...); err != nil {
		return err
	}
	if e.JSON {
		return e.PrintJSON(struct {
			app.Head
			DryRun   bool     `json:"dry_run"`
			Features []string `json:"features"`
		}{app.Of(snap.Table().Store(), n.Table, 0), true, names})
	}
	e.Printf("%s in a new snapshot of %s\n", did, terminal.OneLine(n.Table))
	return nil
}

// FeaturesDeprecate says that features are to go.
type FeaturesDeprecate struct{ namedFeatures }

// Run runs the command.
func (c *FeaturesDeprecate) Run(ctx context.Context, e *app.Env) error {
	return c.set(ctx, e, catalog.FeatureDeprecated, "deprecated")
}

// FeaturesDrop drops features.
type FeaturesDrop struct{ namedFeatures }

// Run runs the command.
func (c *FeaturesDrop) Run(ctx context.Context, e *app.Env) error {
	return c.set(ctx, e, catalog.FeatureDropped, "dropped")
}

// FeaturesRestore takes back that features are deprecated or dropped.
type FeaturesRestore struct{ namedFeatures }

// Run runs the command.
func (c *FeaturesRestore) Run(ctx context.Context, e *app.Env) error {
	return c.set(ctx, e, catalog.FeatureActive, "restored")
}
