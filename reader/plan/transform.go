package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
)

// StoredType returns the type of the i-th of p's features in the schema. Features has the type after transforms.
func (p *Plan) StoredType(i int) vector.Type {
	if x := p.transform(i); x != nil {
		return x.StoredType
	}
	return p.Features[i].Type
}

// transform returns the transforms of the i-th of p's features, or nil.
func (p *Plan) transform(i int) *transform.Bound {
	if p.Transforms == nil || len(p.Transforms[i].Chain) == 0 {
		return nil
	}
	return &p.Transforms[i]
}

// TransformBy sets the transforms of p's features by rules. Before the call the features have the schema's types.
func (p *Plan) TransformBy(rules []transform.Rule) error {
	if len(rules) == 0 {
		return nil
	}
	names := make([]string, len(p.Features))
	for i, f := range p.Features {
		names[i] = f.Name
	}
	match := func(pattern string) (func(int) bool, error) {
		m, err := Matcher(pattern)
		return func(i int) bool { return m(p.Features[i]) }, err
	}
	chains, err := chainsOf(names, match, rules)
	if err != nil {
		return err
	}
	p.Transforms = make([]transform.Bound, len(p.Features))
	for i, chain := range chains {
		if len(chain) > 0 {
			if err := p.SetTransform(i, chain); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetTransform sets the transforms of the i-th feature, and changes its type and Logical accordingly. Before the call
// it has its stored type, and Transforms has an element for it.
func (p *Plan) SetTransform(i int, chain transform.Chain) error {
	f := &p.Features[i]
	if IsPartitionKey(*f) {
		return fmt.Errorf("transforms of %q: it is a partition key, which has none", f.Name)
	}
	if err := validateType(f.Name, f.Type, f.Logical); err != nil {
		return err
	}
	x := &p.Transforms[i]
	x.Chain, x.StoredType, x.StoredLogical = chain, f.Type, f.Logical
	t, logical, err := x.Output()
	if err != nil {
		return fmt.Errorf("transforms of %q: %w", f.Name, err)
	}
	f.Type, f.Logical = t, logical
	return nil
}

// validateTransforms checks that Transforms turn the stored types into the types of Features.
func (p *Plan) validateTransforms() error {
	if p.Transforms == nil {
		return nil
	}
	if len(p.Transforms) != len(p.Features) {
		return fmt.Errorf("transforms of %d features, there are %d", len(p.Transforms), len(p.Features))
	}
	some := false
	for i, f := range p.Features {
		x := &p.Transforms[i]
		if len(x.Chain) == 0 {
			if x.StoredType != (vector.Type{}) || x.StoredLogical != "" {
				return fmt.Errorf("feature %q: a stored type without transforms", f.Name)
			}
			continue
		}
		some = true
		if IsPartitionKey(f) {
			return fmt.Errorf("transforms of %q: it is a partition key, which has none", f.Name)
		}
		if err := validateType(f.Name, x.StoredType, x.StoredLogical); err != nil {
			return err
		}
		t, logical, err := x.Output()
		if err != nil {
			return fmt.Errorf("transforms of %q: %w", f.Name, err)
		}
		if t != f.Type || logical != f.Logical {
			return fmt.Errorf("feature %q: its transforms give %v %q, not %v %q", f.Name, t, logical, f.Type, f.Logical)
		}
	}
	if !some {
		return errors.New("transforms without a transform")
	}
	return nil
}

// Transformers returns the compiled transforms of each feature, nil if it has none.
func (p *Plan) Transformers() ([]*transform.Program, error) {
	out := make([]*transform.Program, len(p.Features))
	for i, f := range p.Features {
		if x := p.transform(i); x != nil {
			var err error
			if out[i], err = x.Compile(); err != nil {
				return nil, fmt.Errorf("plan: transforms of %q: %w", f.Name, err)
			}
		}
	}
	return out, nil
}

// chainsOf returns the chain of each name: that of the rule with this name, else that of the rule whose glob or set
// selects it. match returns the predicate of a glob or set.
func chainsOf(names []string, match func(pattern string) (func(i int) bool, error),
	rules []transform.Rule) ([]transform.Chain, error) {
	out := make([]transform.Chain, len(names))
	by := make([]*transform.Rule, len(names))
	for k := range rules {
		r := &rules[k]
		switch {
		case r.Features == "":
			return nil, errors.New("transforms: an empty name")
		case len(r.Chain) == 0:
			return nil, fmt.Errorf("transforms of %q: none given", r.Features)
		}
		if err := r.Chain.Validate(); err != nil {
			return nil, fmt.Errorf("transforms of %q: %w", r.Features, err)
		}
		selects := func(i int) bool { return names[i] == r.Features }
		if isPattern(r.Features) {
			var err error
			if selects, err = match(r.Features); err != nil {
				return nil, err
			}
		} else if !slices.Contains(names, r.Features) {
			return nil, fmt.Errorf("transforms of %q: %w among the features of the plan%s", r.Features,
				storage.ErrNotFound, suggest.Hint(r.Features, names))
		}
		found := false
		for i := range names {
			if !selects(i) {
				continue
			}
			found = true
			switch before := by[i]; {
			case before == nil || isPattern(before.Features) && !isPattern(r.Features):
				by[i], out[i] = r, r.Chain
			case isPattern(before.Features) == isPattern(r.Features):
				return nil, fmt.Errorf("transforms of %q: both %q and %q select it: write one by name, which goes "+
					"before globs", names[i], before.Features, r.Features)
			}
		}
		if !found {
			return nil, fmt.Errorf("transforms of %q: %w among the features of the plan", r.Features,
				storage.ErrNotFound)
		}
	}
	return out, nil
}
