package reader

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
)

// WeightFeature is the name that the weights of PlanOptions.Downsample have in a plan.
const WeightFeature = "sample_weight"

// weightID is the id of the weights. No feature of a table has it: ids are hashes, and Validate refuses the one in 2^64.
const weightID storage.FeatureID = math.MaxUint64

func weightFeature() storage.Feature {
	return storage.Feature{ID: weightID, Name: WeightFeature, Type: vector.Type{Kind: vector.Dense, Elem: vector.Float32}, Role: storage.RoleLabel}
}

func isWeight(f storage.Feature) bool { return f.ID == weightID }

// addWeights makes text the downsampling of a plan whose features are there.
func (p *Plan) addWeights(ctx context.Context, snap schema, text string) error {
	if _, err := parseThinning(ctx, snap, text); err != nil {
		return err
	}
	p.Downsample = text
	p.Features = append(p.Features[:len(p.Features):len(p.Features)], weightFeature())
	if p.Transforms != nil {
		p.Transforms = append(p.Transforms, transform.Bound{})
	}
	return nil
}

// validateWeights is Validate for the downsampling.
func (p *Plan) validateWeights() error {
	for i, f := range p.Features {
		last := p.Downsample != "" && i == len(p.Features)-1
		switch {
		case last && f != weightFeature():
			return fmt.Errorf("downsample: the last feature is %q, not %s", f.Name, WeightFeature)
		case !last && (isWeight(f) || p.Downsample != "" && f.Name == WeightFeature):
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

// A downsample is PlanOptions.Downsample, read: of the rows of a class a sample stays, and stands for the rest by its weight.
//
//	click = 0 AND sample(0.1, key=request_id, seed=7)
//	\_______/     \___ what stays of the class ____/     weight 1/0.1 = 10; of all other rows 1
//	 the class
//
// A row whose key is null can be in no sample: it is of no class, and stays with weight 1, so that weighted sums stay unbiased. Both
// parts are filters, so that what they select of a segment is kept as for any other (Selections).
type downsample struct {
	class  string // rows that may be left out
	stays  string // those of them that are not
	weight float32
}

// parseDownsample reads an expression that has one sample, alone or joined by AND with what the class is.
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
		return nil, badDownsample(text, len(text), "want what is sampled and how, as in click = 0 AND sample(0.1, key=request_id, seed=7)")
	case !(sample.Fraction > 0) || math.IsInf(float64(float32(1/sample.Fraction)), 0):
		return nil, badDownsample(text, sample.Offset, "of a sample of %g nothing stays to stand for the rest: leave the rows out with a filter", sample.Fraction)
	}
	// In SQL's logic this is true exactly of rows for which the class is true and the key is there.
	class = append(class, &expr.IsNull{X: sample.Key, Negated: true})
	d := &downsample{class: class[0].String(), stays: e.String(), weight: float32(1 / sample.Fraction)}
	if len(class) > 1 {
		d.class = (&expr.And{Terms: class}).String()
	}
	return d, nil
}

func badDownsample(text string, offset int, reason string, args ...any) error {
	return fmt.Errorf("downsample: %w", &expr.Error{Text: text, Offset: offset, Reason: fmt.Sprintf(reason, args...)})
}

// A thinning is a downsample against a schema.
type thinning struct {
	downsample
	ofClass, ofStays *expr.Filter
	features         []storage.Feature // that both read
}

func parseThinning(ctx context.Context, snap schema, text string) (*thinning, error) {
	d, err := parseDownsample(text)
	if err != nil {
		return nil, err
	}
	t := &thinning{downsample: *d}
	// The user's own text first, so that an error points into it. Its features are those of the class, too.
	if t.ofStays, t.features, err = parseFilter(ctx, snap, text); err != nil {
		return nil, fmt.Errorf("downsample: %w", err)
	}
	t.ofClass, _, err = parseFilter(ctx, snap, d.class)
	return t, err
}

// thin leaves rows of the class out, and says which rows have the weight.
func (l *Layout) thin(ctx context.Context, t *thinning, opts LayoutOptions) error {
	class, err := l.sieved(ctx, t.ofClass, t.features, opts)
	if err != nil {
		return err
	}
	stays, err := l.sieved(ctx, t.ofStays, t.features, opts)
	if err != nil {
		return err
	}
	l.weight = t.weight
	weighted := make(map[string]*roaring.Bitmap, len(l.segments))
	selected := make([]*roaring.Bitmap, len(l.segments))
	for i, d := range l.segments {
		all := l.selectionOf(i)
		if all == nil {
			if err := selectable(d); err != nil {
				return err
			}
			all = roaring.New()
			all.AddRange(0, d.Rows)
		}
		in := func(b *roaring.Bitmap) *roaring.Bitmap {
			if b == nil { // every row
				return all
			}
			return roaring.And(all, b)
		}
		weighted[d.ID] = in(stays[i])
		selected[i] = roaring.AndNot(all, roaring.AndNot(in(class[i]), weighted[d.ID]))
	}
	if err := l.restrict(selected); err != nil {
		return err
	}
	l.weighted = make([]*roaring.Bitmap, len(l.segments))
	for i, d := range l.segments {
		l.weighted[i] = weighted[d.ID]
	}
	return nil
}

// sieved returns the rows of each segment for which a filter is true; nil: every row.
func (l *Layout) sieved(ctx context.Context, filter *expr.Filter, features []storage.Feature, opts LayoutOptions) ([]*roaring.Bitmap, error) {
	if opts.Selections == nil {
		opts.Selections = sharedSelections
	}
	var own []storage.Feature // in the filter's order
	for _, name := range filter.Features() {
		for _, f := range features {
			if f.Name == name {
				own = append(own, f)
				break
			}
		}
	}
	v, err := l.newSieve(filter, own, opts.Read, opts.Selections)
	if err != nil {
		return nil, err
	}
	defer v.close()
	rows, err := v.all(ctx, l.segments)
	if err == nil {
		l.filters.add(v)
	}
	return rows, err
}

// weigh makes d.column the weights of rows of a stripe that begins at row first of its segment: of those of picked, nil: of all.
func (d *decoded) weigh(weighted *roaring.Bitmap, weight float32, first uint64, rows int, picked []int32) {
	d.stored = vector.Column{Type: weightFeature().Type, Rows: rows, Slots: rows, Floats: vector.Resize(d.stored.Floats, rows)}
	d.column = &d.stored
	out := d.stored.Floats
	for i := range out {
		out[i] = 1
	}
	if picked != nil {
		for i, r := range picked {
			if weighted.Contains(uint32(first) + uint32(r)) {
				out[i] = weight
			}
		}
		return
	}
	it := weighted.Iterator()
	for it.AdvanceIfNeeded(uint32(first)); it.HasNext(); {
		r := uint64(it.Next())
		if r >= first+uint64(rows) {
			return
		}
		out[r-first] = weight
	}
}
