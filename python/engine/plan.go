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
	"github.com/dsistore/dsistore/storage/catalog"
)

// planParams say what to read.
type planParams struct {
	tableRef
	Features   []string          `json:"features"`
	Overlay    []string          `json:"overlay"` // names, the lowest first
	Partitions string            `json:"partitions"`
	Filter     string            `json:"filter"`
	SampleList string            `json:"sample_list"`
	Downsample string            `json:"downsample"`
	BatchSize  int               `json:"batch_size"`
	Labels     []string          `json:"labels"`     // names among the features that are labels, whatever their role is
	Integers   []string          `json:"integers"`   // names among the features that come as exact integers
	Sparse     []string          `json:"sparse"`     // names among the features: integers that come as lists of one id
	Output     string            `json:"output"`     // columns (default) or tensors
	Dedup      string            `json:"dedup"`      // kjt (default), ikjt or partial
	Expand     []string          `json:"expand"`     // names, globs and sets among the features: never deduplicated
	Shuffle    *shuffle          `json:"shuffle"`    // nil: none
	Transforms map[string]string `json:"transforms"` // chains by feature name, glob or set
}

type shuffle struct {
	Unit          string `json:"unit"`
	BufferStripes int    `json:"buffer_stripes"`
	Seed          uint64 `json:"seed"`
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

func (e *Engine) plan(ctx context.Context, p *planParams) (any, error) {
	layout, snap, err := e.makePlan(ctx, p)
	if err != nil {
		return nil, err
	}
	plan := layout.Plan()
	text, hash, err := plan.Encode()
	if err != nil {
		return nil, err
	}
	key := layoutKey{placeOf(ctx, p.URI), fmt.Sprintf("%016x", hash)}
	cache(e, e.layouts, key, keptLayout{layout, snap})
	return planAnswer{
		Plan: string(text), Hash: key.hash, Snapshot: plan.Snapshot, Rows: layout.Rows(), Batches: layout.Batches(),
		Features: featuresOf(plan.Features),
	}, nil
}

// makePlan returns the layout of a new plan, and the plan's snapshot.
func (e *Engine) makePlan(ctx context.Context, p *planParams) (*reader.Layout, *storage.Snapshot, error) {
	view, err := e.view(ctx, &p.tableRef)
	if err != nil {
		return nil, nil, err
	}
	opts, err := p.options()
	if err != nil {
		return nil, nil, usageError{err}
	}
	plan, err := reader.NewViewPlan(ctx, view, opts)
	if err != nil {
		return nil, nil, unlessOfSystem(readToo(err))
	}
	if err := setSparse(plan, p.Sparse, p.Labels); err != nil {
		return nil, nil, usageError{err}
	}
	if err := setLabels(plan, p.Labels, p.Features); err != nil {
		return nil, nil, usageError{err}
	}
	layout, err := reader.NewLayoutWith(ctx, view.Snapshot, plan, reader.LayoutOptions{View: view})
	return layout, view.Snapshot, err
}

func (p *planParams) options() (opts reader.PlanOptions, err error) {
	opts = reader.PlanOptions{
		Features: p.Features, Partition: p.Partitions, Filter: p.Filter, SampleList: p.SampleList,
		Downsample: p.Downsample, Overlays: p.Overlay, BatchSize: p.BatchSize, Integers: p.Integers, Expand: p.Expand,
	}
	if p.Output != "" {
		if opts.Output, err = reader.ParseOutput(p.Output); err != nil {
			return opts, err
		}
	}
	if p.Dedup != "" {
		if opts.Dedup, err = reader.ParseDedup(p.Dedup); err != nil {
			return opts, err
		}
	}
	if s := p.Shuffle; s != nil {
		unit, err := reader.ParseUnit(s.Unit)
		if err != nil {
			return opts, err
		}
		if unit != reader.UnitNone {
			opts.Shuffle = reader.Shuffle{Unit: unit, BufferStripes: s.BufferStripes, Seed: s.Seed}
		}
	}
	for _, features := range slices.Sorted(maps.Keys(p.Transforms)) {
		chain, err := transform.ParseChain(p.Transforms[features])
		if err != nil {
			return opts, fmt.Errorf("transforms of %q: %w", features, err)
		}
		opts.Transforms = append(opts.Transforms, transform.Rule{Features: features, Chain: chain})
	}
	return opts, nil
}

// setSparse makes lists of one id of the integers of names, after what the plan makes of them anyway. Keys among them
// are then ordinary features.
func setSparse(plan *reader.Plan, names, labels []string) error {
	for _, name := range names {
		i := slices.IndexFunc(plan.Features, func(f catalog.Feature) bool { return f.Name == name })
		if i < 0 {
			return fmt.Errorf("sparse: %q is not among the features", name)
		}
		f := &plan.Features[i]
		switch {
		case f.Type.Kind != vector.Dense || !f.Type.Elem.IsInteger():
			hint := ""
			key := reader.Literal(name) // of transforms, which are globs
			switch f.Type.Kind {
			case vector.Dense:
				hint = fmt.Sprintf("; if its values are whole numbers: transforms={%q: \"cast(int64)\"}", key)
			case vector.Bytes, vector.String:
				hint = fmt.Sprintf("; an id of a text: leave it in sparse, as without that the id is a number of the "+
					"dense matrix, and add transforms={%q: \"hash(100000)\"}, the number of ids", key)
			}
			return fmt.Errorf("sparse: %q is %v: want a dense integer, of which a list of one id is made%s", name,
				f.Type, hint)
		case plan.IsExact(i):
			return fmt.Errorf("%q is among sparse and among integers: want it in one of them", name)
		case slices.Contains(labels, name):
			return fmt.Errorf("%q is among sparse and among labels: want it in one of them", name)
		}
		list, err := transform.ParseChain("list")
		if err != nil {
			return err
		}
		if plan.Transforms == nil {
			plan.Transforms = make([]transform.Bound, len(plan.Features))
		}
		x := &plan.Transforms[i]
		if len(x.Chain) > 0 {
			list = slices.Concat(x.Chain, list)
			f.Type, f.Logical = x.StoredType, x.StoredLogical
		}
		if err := plan.SetTransform(i, list); err != nil {
			return err
		}
		f.Role = catalog.RoleFeature
	}
	return nil
}

// setLabels makes the features of names the labels of a plan: no others are, unless there are no names. A feature that
// is a label by its role is then an ordinary one where it was asked for by name. Where a glob or a set alone selects it
// nobody may have thought of it, and a model would be given what it shall predict.
func setLabels(plan *reader.Plan, names, asked []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		i := slices.IndexFunc(plan.Features, func(f catalog.Feature) bool { return f.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("labels: %q is not among the features", name)
		case plan.Features[i].Type.Kind != vector.Dense:
			return fmt.Errorf("labels: %q is %v: want a dense feature", name, plan.Features[i].Type)
		case plan.Exact != nil && plan.Exact[i]:
			return fmt.Errorf("%q is among labels, which are float32, and among integers: want it in one of them", name)
		}
		plan.Features[i].Role = catalog.RoleLabel
	}
	var unnamed []string
	for i := range plan.Features {
		f := &plan.Features[i]
		switch {
		// the weight
		case f.Role != catalog.RoleLabel || slices.Contains(names, f.Name) || plan.Downsample != "" &&
			i == len(plan.Features)-1:
		case slices.ContainsFunc(asked, func(entry string) bool { return reader.Names(entry, f.Name) }):
			f.Role = catalog.RoleFeature
		default:
			unnamed = append(unnamed, strconv.Quote(f.Name))
		}
	}
	if len(unnamed) > 0 {
		return fmt.Errorf("features: a glob or set selects what is a label by its role, and not among labels: %s. "+
			"Ask for each by name to have it "+
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

// A keptLayout is that of one of the last plans: where it is opened, its segments need not be listed again.
type keptLayout struct {
	layout   *reader.Layout
	snapshot *storage.Snapshot
}

type layoutKey struct {
	place
	hash string
}

// layoutOf returns the layout that is kept of a plan, while its snapshot stands, or nil.
func (e *Engine) layoutOf(ctx context.Context, key layoutKey) (*reader.Layout, error) {
	k, ok := cached(e, e.layouts, key)
	if !ok {
		return nil, nil
	}
	if ok, err := k.snapshot.Exists(ctx); err != nil || !ok {
		return nil, err
	}
	return k.layout, nil
}

// openPlan returns the layout of a plan that makePlan made, perhaps in another process.
func (e *Engine) openPlan(ctx context.Context, uri, text string) (*reader.Layout, error) {
	l, err := e.layoutOf(ctx, layoutKey{placeOf(ctx, uri), fmt.Sprintf("%016x", xxhash.Sum64String(text))})
	if l != nil || err != nil {
		return l, err
	}
	plan := new(reader.Plan)
	if err := json.Unmarshal([]byte(text), plan); err != nil {
		return nil, err
	}
	snap, err := e.snapshotAt(ctx, uri, plan.Table, plan.Snapshot)
	if err != nil {
		return nil, err
	}
	return reader.NewLayout(ctx, snap, plan)
}
