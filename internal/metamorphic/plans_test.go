package metamorphic

import (
	"context"

	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

// newLayout puts a plan against what a view reads.
func newLayout(ctx context.Context, v *storage.View, p *reader.Plan, opts reader.LayoutOptions) (*reader.Layout,
	error) {
	opts.View = v
	return reader.NewLayoutWith(ctx, v.Snapshot, p, opts)
}

func newMatch(ctx context.Context, v *storage.View, opts reader.PlanOptions) (*reader.Match, error) {
	return reader.Matching(ctx, v.Snapshot, opts, reader.LayoutOptions{View: v})
}
