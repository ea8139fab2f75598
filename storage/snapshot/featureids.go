package snapshot

import (
	"context"
	"encoding/binary"

	"github.com/dsistore/dsistore/storage/catalog"
)

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
