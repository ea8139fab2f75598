package plan

import (
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// IsExact reports whether the i-th of p's features is an exact column because Options.Integers names it.
func (p *Plan) IsExact(i int) bool { return p.Exact != nil && p.Exact[i] }

func (p *Plan) setExact(i int) {
	if p.Exact == nil {
		p.Exact = make([]bool, len(p.Features))
	}
	p.Exact[i] = true
}

// ExactBy marks the features of Options.Integers. Their types are those after transforms.
func (p *Plan) ExactBy(names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(p.Features, func(f catalog.Feature) bool { return f.Name == name })
		if i < 0 {
			return fmt.Errorf("integers: %q is not among the features that are read", name)
		}
		if err := mayBeExact(p.Features[i]); err != nil {
			return fmt.Errorf("integers: %w", err)
		}
		p.setExact(i)
	}
	return nil
}

func mayBeExact(f catalog.Feature) error {
	switch {
	case f.Type.Kind == vector.Dense && f.Type.Elem.IsInteger():
		return nil
	case f.Type.IsList() && f.Type.Elem.IsInteger():
		return fmt.Errorf("%q is %v, whose ids are int64 anyway: want a number per row", f.Name, f.Type)
	}
	return fmt.Errorf("%q is %v: want a dense integer", f.Name, f.Type)
}

// validateExact is Validate for Exact.
func (p *Plan) validateExact() error {
	if err := p.validateFlags("exact", p.Exact); err != nil {
		return err
	}
	for i, exact := range p.Exact {
		if exact {
			if err := mayBeExact(p.Features[i]); err != nil {
				return fmt.Errorf("exact: %w", err)
			}
		}
	}
	return nil
}

// validateFlags checks that there is a flag for each feature and that one is set. nil is valid.
func (p *Plan) validateFlags(what string, flags []bool) error {
	switch {
	case flags == nil:
		return nil
	case len(flags) != len(p.Features):
		return fmt.Errorf("%s: of %d features, there are %d", what, len(flags), len(p.Features))
	case !slices.Contains(flags, true):
		return fmt.Errorf("%s: no feature is", what)
	}
	return nil
}
