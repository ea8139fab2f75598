package plan

import (
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/internal/suggest"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Expands reports whether batches have a list of the feature for each row, whatever Dedup is.
func (p *Plan) Expands(feature int32) bool { return p.Expanded != nil && p.Expanded[feature] }

// expand sets Expanded for the features that entries select, which are names, globs and sets.
func (p *Plan) expand(entries []string) error {
	if len(entries) == 0 {
		return nil
	}
	p.Expanded = make([]bool, len(p.Features))
	for _, e := range entries {
		if e == "" {
			return errors.New("expand: an empty name")
		}
		match := func(f catalog.Feature) bool { return f.Name == e }
		if isPattern(e) {
			var err error
			if match, err = Matcher(e); err != nil {
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
