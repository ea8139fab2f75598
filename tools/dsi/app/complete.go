package app

import (
	"context"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/tools/terminal"
)

// Complete returns the names that a shell may complete a word of a command to: the "tables" of its store, or the
// "features" of its table. Nothing is printed of what cannot be read: it has no names.
func (e *Env) Complete(ctx context.Context, command any, what string) []string {
	ctx, cancel := context.WithTimeout(ctx, terminal.CompleteTime)
	defer cancel()
	c, ok := command.(interface {
		names(ctx context.Context, e *Env, what string) ([]string, error)
	})
	if !ok {
		return nil
	}
	names, _ := c.names(ctx, e, what)
	return names
}

func (s StoreArg) names(ctx context.Context, e *Env, what string) ([]string, error) {
	if what != "tables" {
		return nil, nil
	}
	store, err := s.Open(ctx, e)
	if err != nil {
		return nil, err
	}
	return store.Tables(ctx)
}

func (t TableArgs) names(ctx context.Context, e *Env, what string) ([]string, error) {
	if what == "tables" {
		return t.StoreArg.names(ctx, e, what)
	}
	view, err := t.OpenView(ctx, e, AtFlag{})
	if err != nil {
		return nil, err
	}
	plan, err := reader.NewViewPlan(ctx, view, reader.PlanOptions{Features: []string{"@all"}})
	if err != nil {
		return nil, err
	}
	names := []string{"@all", "@labels", "@keys", "@partitions"}
	for _, f := range plan.Features {
		names = append(names, f.Name)
	}
	return names, nil
}
