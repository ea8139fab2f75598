package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/jsontext"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
)

// planParams say what to read.
type planParams struct {
	place
	Features   []string `json:"features"`
	Overlay    []string `json:"overlay,omitempty"` // names, the lowest first
	Partitions string   `json:"partitions,omitempty"`
	Filter     string   `json:"filter,omitempty"`
	SampleList string   `json:"sample_list,omitempty"`
	Downsample string   `json:"downsample,omitempty"`
	BatchSize  int      `json:"batch_size,omitempty"`
	Labels     []string `json:"labels,omitempty"`   // names among the features that are labels, whatever their role is
	Integers   []string `json:"integers,omitempty"` // names among the features that come as exact integers
	Output     string   `json:"output,omitempty"`   // columns (default) or tensors
	Dedup      string   `json:"dedup,omitempty"`    // kjt (default), ikjt or partial
	Expand     []string `json:"expand,omitempty"`   // names, globs and sets among the features: never deduplicated
	Shuffle    *shuffle `json:"shuffle,omitempty"`
	// Transforms are chains by feature name, glob or set.
	Transforms map[string]string `json:"transforms,omitempty"`
}

func (p *planParams) fields() map[string]any {
	f := placeFields(&p.place)
	f["features"], f["partitions"], f["filter"], f["batch_size"], f["labels"] = &p.Features, &p.Partitions, &p.Filter, &p.BatchSize, &p.Labels
	f["integers"] = &p.Integers
	f["sample_list"], f["downsample"] = &p.SampleList, &p.Downsample
	f["overlay"] = &p.Overlay
	f["output"], f["dedup"], f["expand"], f["shuffle"], f["transforms"] = &p.Output, &p.Dedup, &p.Expand, &p.Shuffle, &p.Transforms
	return f
}

type shuffle struct {
	Unit          string `json:"unit"`
	BufferStripes int    `json:"buffer_stripes,omitempty"`
	Seed          uint64 `json:"seed,omitempty"`
}

// planAnswer is a plan as Python keeps and pickles it.
type planAnswer struct {
	Plan     string        `json:"plan"` // the encoding of reader.Plan: opaque, the same bytes for the same plan
	Hash     string        `json:"hash"`
	Snapshot uint64        `json:"snapshot"`
	Rows     uint64        `json:"rows"`
	Batches  uint64        `json:"batches"`
	Features []featureInfo `json:"features"`
}

func (e *Engine) plan(ctx context.Context, raw json.RawMessage) (any, error) {
	var p planParams
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	plan, view, err := e.makePlan(ctx, p)
	if err != nil {
		return nil, err
	}
	layout, err := reader.NewLayoutWith(ctx, view.Snapshot, plan, reader.LayoutOptions{View: view})
	if err != nil {
		return nil, err
	}
	text, hash, err := plan.Encode()
	if err != nil {
		return nil, err
	}
	out := planAnswer{
		Plan: string(text), Hash: fmt.Sprintf("%016x", hash), Snapshot: plan.Snapshot,
		Rows: layout.Rows(), Batches: layout.Batches(), Features: make([]featureInfo, len(plan.Features)),
	}
	e.keepLayout(keptLayout{uri: p.URI, hash: out.Hash, layout: layout, snapshot: view.Snapshot})
	for i, f := range plan.Features {
		out.Features[i] = featureOf(f)
	}
	return out, nil
}

func (e *Engine) makePlan(ctx context.Context, p planParams) (*reader.Plan, *storage.View, error) {
	view, err := e.view(ctx, p.place)
	if err != nil {
		return nil, nil, err
	}
	opts := reader.PlanOptions{
		Features: p.Features, Partition: p.Partitions, Filter: p.Filter, SampleList: p.SampleList, Downsample: p.Downsample, Overlays: p.Overlay, BatchSize: p.BatchSize,
		Integers: p.Integers, Expand: p.Expand,
	}
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
			opts.Shuffle = reader.Shuffle{Unit: unit, BufferStripes: s.BufferStripes, Seed: s.Seed}
		}
	}
	for _, features := range slices.Sorted(maps.Keys(p.Transforms)) {
		chain, err := transform.ParseChain(p.Transforms[features])
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("transforms of %q: %w", features, err)}
		}
		opts.Transforms = append(opts.Transforms, transform.Rule{Features: features, Chain: chain})
	}
	plan, err := reader.NewViewPlan(ctx, view, opts)
	if err != nil {
		return nil, nil, unlessOfSystem(err)
	}
	if err := setLabels(plan, p.Labels, p.Features); err != nil {
		return nil, nil, usageError{err}
	}
	return plan, view, nil
}

// setLabels makes the features of names the labels of a plan: no others are, unless there are no names. A feature that is a label by its
// role is then an ordinary one where it was asked for by name. Where a glob or a set alone selects it nobody may have thought of it, and
// a model would be given what it shall predict.
func setLabels(plan *reader.Plan, names, asked []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		i := slices.IndexFunc(plan.Features, func(f storage.Feature) bool { return f.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("labels: %q is not among the features", name)
		case plan.Features[i].Type.Kind != vector.Dense:
			return fmt.Errorf("labels: %q is %v: want a dense feature", name, plan.Features[i].Type)
		case plan.Exact != nil && plan.Exact[i]:
			return fmt.Errorf("%q is among labels, which are float32, and among integers: want it in one of them", name)
		}
		plan.Features[i].Role = storage.RoleLabel
	}
	var unnamed []string
	for i := range plan.Features {
		f := &plan.Features[i]
		switch {
		case f.Role != storage.RoleLabel || slices.Contains(names, f.Name) || plan.Downsample != "" && i == len(plan.Features)-1: // the weight
		case slices.ContainsFunc(asked, func(entry string) bool { return reader.Names(entry, f.Name) }):
			f.Role = storage.RoleFeature
		default:
			unnamed = append(unnamed, strconv.Quote(f.Name))
		}
	}
	if len(unnamed) > 0 {
		return fmt.Errorf("features: a glob or set selects what is a label by its role, and not among labels: %s. Ask for each by name to have it "+
			"as a feature, or give it among labels", strings.Join(unnamed, ", "))
	}
	return nil
}

// appendJSON writes a as encoding/json would.
func (a planAnswer) appendJSON(b []byte) []byte {
	b = jsontext.AppendText(append(b, '{'), "plan", a.Plan)
	b = jsontext.AppendText(b, "hash", a.Hash)
	b = jsontext.AppendUint(b, "snapshot", a.Snapshot)
	b = jsontext.AppendUint(b, "rows", a.Rows)
	b = jsontext.AppendUint(b, "batches", a.Batches)
	b = append(jsontext.AppendMember(b, "features"), '[')
	for i := range a.Features {
		if i > 0 {
			b = append(b, ',')
		}
		b = a.Features[i].appendJSON(b)
	}
	return append(b, "]}"...)
}

// A keptLayout is what a plan came to, for who opens the plan: its segments need not be listed again.
type keptLayout struct {
	uri, hash string
	layout    *reader.Layout
	snapshot  *storage.Snapshot
}

// maxLayouts is how many layouts are kept: those of the last plans.
const maxLayouts = 4

func (e *Engine) keepLayout(k keptLayout) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.layouts) == maxLayouts {
		e.layouts = slices.Delete(e.layouts, 0, 1)
	}
	e.layouts = append(e.layouts, k)
}

// layoutOf returns the layout that is kept of a plan, while its snapshot stands, or nil.
func (e *Engine) layoutOf(ctx context.Context, uri, hash string) (*reader.Layout, error) {
	e.mu.Lock()
	at := slices.IndexFunc(e.layouts, func(k keptLayout) bool { return k.uri == uri && k.hash == hash })
	var k keptLayout
	if at >= 0 {
		k = e.layouts[at]
	}
	e.mu.Unlock()
	if at < 0 {
		return nil, nil
	}
	ok, err := k.snapshot.Exists(ctx)
	if err != nil || !ok {
		return nil, err
	}
	return k.layout, nil
}

// openPlan finds the snapshot of a plan that makePlan made, perhaps in another process.
func (e *Engine) openPlan(ctx context.Context, uri, text string) (*reader.Layout, error) {
	if l, err := e.layoutOf(ctx, uri, fmt.Sprintf("%016x", xxhash.Sum64String(text))); l != nil || err != nil {
		return l, err
	}
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
