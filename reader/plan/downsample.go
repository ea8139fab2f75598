package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage/catalog"
)

// WeightFeature is the name that the weights of Options.Downsample have in a plan.
const WeightFeature = "sample_weight"

// weightID is the id of the weights. Feature ids are hashes; Validate refuses a plan with a feature that has this one.
const weightID catalog.FeatureID = math.MaxUint64

// WeightColumn returns the feature that holds the weights.
func WeightColumn() catalog.Feature {
	return catalog.Feature{ID: weightID, Name: WeightFeature,
		Type: vector.Type{Kind: vector.Dense, Elem: vector.Float32}, Role: catalog.RoleLabel}
}

// IsWeight reports whether f is WeightColumn.
func IsWeight(f catalog.Feature) bool { return f.ID == weightID }

// addWeights sets Downsample, and adds the weights after the plan's other features.
func (p *Plan) addWeights(ctx context.Context, snap schema, text string) error {
	if _, err := BindDownsample(ctx, snap, text); err != nil {
		return err
	}
	p.Downsample = text
	p.Features = append(p.Features[:len(p.Features):len(p.Features)], WeightColumn())
	if p.Transforms != nil {
		p.Transforms = append(p.Transforms, transform.Bound{})
	}
	return nil
}

// AllRows returns a plan that reads the same features of all rows of the partition and the branch: without filter,
// sample list, downsampling and the weights that it adds. What both share is borrowed.
func (p *Plan) AllRows() *Plan {
	all := *p
	if p.Downsample != "" {
		last := len(p.Features) - 1
		all.Features = p.Features[:last:last]
		if p.Transforms != nil {
			all.Transforms = p.Transforms[:last:last]
		}
		if p.Exact != nil {
			all.Exact = p.Exact[:last:last]
		}
		if p.Expanded != nil {
			all.Expanded = p.Expanded[:last:last]
		}
	}
	all.Filter, all.SampleList, all.Downsample = "", "", ""
	return &all
}

// validateWeights is Validate for the downsampling.
func (p *Plan) validateWeights() error {
	for i, f := range p.Features {
		last := p.Downsample != "" && i == len(p.Features)-1
		switch {
		case last && f != WeightColumn():
			return fmt.Errorf("downsample: the last feature is %q, not %s", f.Name, WeightFeature)
		case !last && (IsWeight(f) || p.Downsample != "" && f.Name == WeightFeature):
			return fmt.Errorf("feature %q: it would be taken for the weights of a downsampling", f.Name)
		}
	}
	if p.Downsample == "" {
		return nil
	}
	if len(p.Features) == 1 {
		return errors.New("downsample: no features besides the weights")
	}
	_, err := parseDownsample(p.Downsample)
	return err
}

// A downsample is a parsed Options.Downsample: a sample of the rows of a class is kept, and gets a higher weight to
// represent the rest.
//
//	click = 0 AND sample(0.1, key=request_id, seed=7)
//	\_______/     \___ which rows of it are kept __/     weight 1/0.1 = 10; all other rows have weight 1
//	 the class
//
// A row whose key is null cannot be sampled: it is not in the class, and is kept with weight 1, so that weighted sums
// stay unbiased. class and stays are filters, so their selected rows are cached as those of any filter (Selections).
type downsample struct {
	class  string // selects the rows of the class
	stays  string // selects the rows of the class that are kept
	Weight float32
}

// parseDownsample parses an expression with one sample, alone or joined by AND with the class.
func parseDownsample(text string) (*downsample, error) {
	e, err := expr.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("downsample: %w", err)
	}
	terms := []expr.Expr{e}
	if and, ok := e.(*expr.And); ok {
		terms = and.Terms
	}
	var sample *expr.Sample
	var class []expr.Expr
	for _, t := range terms {
		s, ok := t.(*expr.Sample)
		if !ok {
			class = append(class, t)
			continue
		}
		if sample != nil {
			return nil, badDownsample(text, s.Offset, "one sample says what stays, and this is another")
		}
		sample = s
	}
	switch {
	case sample == nil:
		return nil, badDownsample(text, len(text),
			"want what is sampled and how, as in click = 0 AND sample(0.1, key=request_id, seed=7)")
	case !(sample.Fraction > 0) || math.IsInf(float64(float32(1/sample.Fraction)), 0):
		return nil, badDownsample(text, sample.Offset,
			"of a sample of %g nothing stays to stand for the rest: leave the rows out with a filter", sample.Fraction)
	}
	// In SQL's logic this is true exactly for rows for which the class is true and the key is not null.
	class = append(class, &expr.IsNull{X: sample.Key, Negated: true})
	d := &downsample{class: class[0].String(), stays: e.String(), Weight: float32(1 / sample.Fraction)}
	if len(class) > 1 {
		d.class = (&expr.And{Terms: class}).String()
	}
	return d, nil
}

func badDownsample(text string, offset int, reason string, args ...any) error {
	return fmt.Errorf("downsample: %w", &expr.Error{Text: text, Offset: offset, Reason: fmt.Sprintf(reason, args...)})
}

// A Downsampling is a downsample that is bound to a schema.
type Downsampling struct {
	downsample
	OfClass, OfStays *expr.Filter
	Features         []catalog.Feature // that the two filters read
}

// BindDownsample parses an Options.Downsample and binds it to a schema.
func BindDownsample(ctx context.Context, snap schema, text string) (*Downsampling, error) {
	d, err := parseDownsample(text)
	if err != nil {
		return nil, err
	}
	t := &Downsampling{downsample: *d}
	// The user's text comes first, so that an error points into it. It has all features of the class.
	if t.OfStays, t.Features, err = ParseFilter(ctx, snap, text); err != nil {
		return nil, fmt.Errorf("downsample: %w", err)
	}
	t.OfClass, _, err = ParseFilter(ctx, snap, d.class)
	return t, err
}

// Filtered returns the features that one of the filters reads, in its order.
func (t *Downsampling) Filtered(filter *expr.Filter) []catalog.Feature {
	var out []catalog.Feature
	for _, name := range filter.Features() {
		out = append(out, t.Features[slices.IndexFunc(t.Features,
			func(f catalog.Feature) bool { return f.Name == name })])
	}
	return out
}
