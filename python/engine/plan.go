package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
)

// planParams say what to read.
type planParams struct {
	place
	Features   []string `json:"features"`
	Partitions string   `json:"partitions,omitempty"`
	BatchSize  int      `json:"batch_size,omitempty"`
	Labels     []string `json:"labels,omitempty"` // names among the features that are labels, whatever their role is
	Output     string   `json:"output,omitempty"` // columns (default) or tensors
	Dedup      string   `json:"dedup,omitempty"`  // kjt (default), ikjt or windowed
	Shuffle    *shuffle `json:"shuffle,omitempty"`
	// Transforms are chains by feature name, glob or set.
	Transforms map[string]string `json:"transforms,omitempty"`
}

type shuffle struct {
	Unit   string `json:"unit"`
	Window int    `json:"window,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
}

// planAnswer is a plan as Python keeps and pickles it.
type planAnswer struct {
	Plan     string        `json:"plan"` // the encoding of reader.Plan: opaque, the same bytes for the same plan
	Hash     string        `json:"hash"`
	Snapshot uint64        `json:"snapshot"`
	Rows     uint64        `json:"rows"`
	Batches  uint64        `json:"batches"`
	Features []featureInfo `json:"features"`
	// Groups are the dedup groups of the first segment, as places in Features: which features a loader gives deduplicated,
	// and in which order.
	Groups [][]int32 `json:"groups"`
}

func (e *Engine) plan(ctx context.Context, raw json.RawMessage) (any, error) {
	var p planParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	plan, snap, err := e.makePlan(ctx, p)
	if err != nil {
		return nil, err
	}
	layout, err := reader.NewLayout(ctx, snap, plan)
	if err != nil {
		return nil, err
	}
	groups := [][]int32{}
	if plan.Dedup != reader.DedupKJT {
		found, err := layout.Groups(ctx)
		if err != nil {
			return nil, err
		}
		groups = append(groups, found...)
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	out := planAnswer{
		Plan: string(text), Hash: fmt.Sprintf("%016x", plan.Hash()), Snapshot: plan.Snapshot,
		Rows: layout.Rows(), Batches: layout.Batches(), Features: make([]featureInfo, len(plan.Features)),
		Groups: groups,
	}
	for i, f := range plan.Features {
		out.Features[i] = featureOf(f)
	}
	return out, nil
}

func (e *Engine) makePlan(ctx context.Context, p planParams) (*reader.Plan, *storage.Snapshot, error) {
	snap, err := e.snapshot(ctx, p.place)
	if err != nil {
		return nil, nil, err
	}
	opts := reader.PlanOptions{Features: p.Features, Partition: p.Partitions, BatchSize: p.BatchSize}
	if p.Output != "" {
		if opts.Output, err = reader.ParseOutput(p.Output); err != nil {
			return nil, nil, usageError{err}
		}
	}
	if p.Dedup != "" {
		if opts.Dedup, err = reader.ParseDedup(p.Dedup); err != nil {
			return nil, nil, usageError{err}
		}
	}
	if s := p.Shuffle; s != nil {
		unit, err := reader.ParseUnit(s.Unit)
		if err != nil {
			return nil, nil, usageError{err}
		}
		if unit != reader.UnitNone {
			opts.Shuffle = reader.Shuffle{Unit: unit, Window: s.Window, Seed: s.Seed}
		}
	}
	for _, features := range slices.Sorted(maps.Keys(p.Transforms)) {
		chain, err := reader.ParseChain(p.Transforms[features])
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("transforms of %q: %w", features, err)}
		}
		opts.Transforms = append(opts.Transforms, reader.TransformRule{Features: features, Chain: chain})
	}
	plan, err := reader.NewPlan(ctx, snap, opts)
	if err != nil {
		return nil, nil, unlessOfSystem(err)
	}
	for _, name := range p.Labels {
		i := slices.IndexFunc(plan.Features, func(f storage.Feature) bool { return f.Name == name })
		switch {
		case i < 0:
			return nil, nil, usageError{fmt.Errorf("labels: %q is not among the features", name)}
		case plan.Features[i].Type.Kind != vector.Dense:
			return nil, nil, usageError{fmt.Errorf("labels: %q is %v: want a dense feature", name, plan.Features[i].Type)}
		}
		plan.Features[i].Role = storage.RoleLabel
	}
	return plan, snap, nil
}

// openPlan finds the snapshot of a plan that makePlan made, perhaps in another process.
func (e *Engine) openPlan(ctx context.Context, uri, text string) (*reader.Layout, error) {
	plan := new(reader.Plan)
	if err := json.Unmarshal([]byte(text), plan); err != nil {
		return nil, err
	}
	snap, err := e.at(ctx, uri, plan.Table, plan.Snapshot)
	if err != nil {
		return nil, err
	}
	return reader.NewLayout(ctx, snap, plan)
}
