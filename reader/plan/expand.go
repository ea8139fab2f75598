package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage"
)

// expands reports whether a feature's lists come a row each, whatever is stored.
func (p *Plan) Expands(feature int32) bool { return p.Expanded != nil && p.Expanded[feature] }

// expandedLast returns positions with those of the features that p expands after the others, each in their order.
func (p *Plan) ExpandedLast(positions []int32) []int32 {
	if p.Expanded == nil {
		return positions
	}
	slices.SortStableFunc(positions, func(a, b int32) int {
		switch {
		case p.Expanded[a] == p.Expanded[b]:
			return 0
		case p.Expanded[b]:
			return -1
		}
		return 1
	})
	return positions
}

// expand sets Expanded to the features that entries, names, globs and sets, select.
func (p *Plan) expand(entries []string) error {
	if len(entries) == 0 {
		return nil
	}
	p.Expanded = make([]bool, len(p.Features))
	for _, e := range entries {
		if e == "" {
			return errors.New("expand: an empty name")
		}
		match := func(f storage.Feature) bool { return f.Name == e }
		if isPattern(e) {
			var err error
			if match, err = matcher(e); err != nil {
				return fmt.Errorf("expand: %w", err)
			}
		}
		found := false
		for i, f := range p.Features {
			if !IsWeight(f) && match(f) {
				found = true
				p.Expanded[i] = true
			}
		}
		if !found {
			names := make([]string, len(p.Features))
			for i, f := range p.Features {
				names[i] = f.Name
			}
			return fmt.Errorf("expand: %q: %w among the features of the plan%s", e, storage.ErrNotFound,
				suggest.Hint(e, names))
		}
	}
	return nil
}

// validateExpanded is Validate for what is expanded.
func (p *Plan) validateExpanded() error {
	if p.Expanded == nil {
		return nil
	}
	if len(p.Expanded) != len(p.Features) {
		return fmt.Errorf("expanded: %d features, there are %d", len(p.Expanded), len(p.Features))
	}
	if !slices.Contains(p.Expanded, true) {
		return errors.New("expanded: none is")
	}
	return nil
}
