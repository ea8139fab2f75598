package metamorphic

import (
	"context"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

// newPlan makes a plan over what a view reads.
func newPlan(ctx context.Context, v *storage.View, opts reader.PlanOptions) (*reader.Plan, error) {
	return reader.NewPlan(ctx, v.Snapshot, inList(v, opts))
}

func newLayout(ctx context.Context, v *storage.View, p *reader.Plan, opts reader.LayoutOptions) (*reader.Layout, error) {
	return reader.NewLayoutWith(ctx, v.Snapshot, p, opts)
}

func newMatch(ctx context.Context, v *storage.View, opts reader.PlanOptions) (*reader.Match, error) {
	return reader.Matching(ctx, v.Snapshot, inList(v, opts), reader.LayoutOptions{})
}

// inList makes the list of a branch the plan's: they are of one snapshot.
func inList(v *storage.View, opts reader.PlanOptions) reader.PlanOptions {
	if v.List != "" {
		opts.SampleList = v.List
	}
	return opts
}
