package commit

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/storage/catalog"
)

// OmitFeatures are dropped features that the added segments leave out of what the removed segments had. They must still
// be dropped: else their values would be lost.
type OmitFeatures []catalog.FeatureID

func (OmitFeatures) phase() phase           { return phaseChangeFeatures }
func (OmitFeatures) validate(*Change) error { return nil }

func (o OmitFeatures) apply(ctx context.Context, e *edit) error {
	if len(o) == 0 {
		return nil
	}
	keys := make([][]byte, len(o))
	for i, f := range o {
		keys[i] = catalog.FeatureIDKey(f)
	}
	owners, err := e.base.GetSchema(ctx, keys...)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range owners {
		names = append(names, string(name))
	}
	found, err := e.base.FindAll(ctx, names...)
	if err != nil {
		return err
	}
	for i, f := range found {
		// Another feature may have taken the name since.
		if f != nil && f.ID == o[i] && f.Status != catalog.FeatureDropped {
			return fmt.Errorf("feature %s, which the added segments leave out, is not dropped any more: %w", f.Name,
				catalog.ErrConflict)
		}
	}
	return nil
}
