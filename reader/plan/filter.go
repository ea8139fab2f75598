package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/storage/catalog"
)

// ParseFilter parses a filter and binds it to a schema. It returns the features that it reads, in the filter's order.
func ParseFilter(ctx context.Context, snap schema, text string) (*expr.Filter, []catalog.Feature, error) {
	known := map[string]catalog.Feature{}
	f, err := expr.ParseFilter(text, func(names []string) ([]expr.Field, error) {
		found, keys, err := findOrKeys(ctx, snap, names)
		if err != nil {
			return nil, err
		}
		out := make([]expr.Field, len(names))
		for i, x := range found {
			switch {
			case x != nil:
				known[names[i]] = *x
				out[i] = expr.Field{Type: x.Type, Logical: x.Logical}
			case slices.Contains(keys, names[i]):
				out[i].Partition = true
			default:
				out[i].Err = unknownName(ctx, snap, names[i])
			}
		}
		return out, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("filter: %w", err)
	}
	var features []catalog.Feature
	for _, name := range f.Features() {
		features = append(features, known[name])
	}
	return f, features, nil
}
