package snapshot

import (
	"context"
	"encoding/binary"

	"github.com/dsistore/dsistore/storage/catalog"
)

// NewFeatures returns the features with id and generation as a change to the table, which has this as its newest
// snapshot, must give them: those of the schema's feature of the name where it has one, else those of a new one. A name
// whose features were dropped or renamed gets the next generation. Its cost is a look-up or two, and one more for each
// generation.
func (s *Snapshot) NewFeatures(ctx context.Context, features ...catalog.Feature) ([]catalog.Feature, error) {
	names := make([]string, len(features))
	for i, f := range features {
		names[i] = f.Name
	}
	known, err := s.FindAll(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.Feature, len(features))
	var open []int // without an id yet
	for i, f := range features {
		out[i] = f
		out[i].Status = catalog.FeatureActive
		switch k := known[i]; {
		case k != nil && k.Status != catalog.FeatureDropped:
			out[i].ID, out[i].Generation, out[i].Status = k.ID, k.Generation, k.Status
			continue
		case k != nil:
			out[i].Generation = k.Generation + 1
		default:
			out[i].Generation = 0
		}
		open = append(open, i)
	}
	for len(open) > 0 {
		keys := make([][]byte, len(open))
		for k, i := range open {
			out[i].ID = catalog.NewFeatureID(out[i].Name, out[i].Generation)
			keys[k] = catalog.FeatureIDKey(out[i].ID)
		}
		owners, err := s.GetSchema(ctx, keys...)
		if err != nil {
			return nil, err
		}
		rest := open[:0]
		for k, i := range open {
			if owners[k] != nil {
				out[i].Generation++
				rest = append(rest, i)
			}
		}
		open = rest
	}
	return out, nil
}

// FeatureIDs returns the ids that features of the table have or had: a new feature must have another. Its cost is the
// schema's; nil, at no cost, where none was dropped or renamed, and every id is that of a feature in Features.
func (s *Snapshot) FeatureIDs(ctx context.Context) (map[catalog.FeatureID]bool, error) {
	if s.Manifest.Retired == 0 {
		return nil, nil
	}
	lower, upper := catalog.SpaceBounds(catalog.FeatureIDSpace)
	out := map[catalog.FeatureID]bool{}
	err := s.each(ctx, s.Manifest.Schema, lower, upper, func(key, _ []byte) string {
		if len(key) != 9 {
			return "feature id key is malformed"
		}
		out[catalog.FeatureID(binary.BigEndian.Uint64(key[1:]))] = true
		return ""
	})
	return out, err
}
