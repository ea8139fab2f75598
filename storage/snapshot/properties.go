package snapshot

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
)

// ProfileProperty is what ingest stores feature files for: speed, balanced or size.
const ProfileProperty = "profile"

// PartitionKeysProperty is set by the commit that takes the last segment of a table away: its partition keys, as the
// canonical form of a partition of them with empty values. Readers need it, for expressions that name the keys; where
// it would be too long, or no UTF-8, it is left out.
const PartitionKeysProperty = "partition_keys"

// lastPartitionKeys returns the partition keys of a table that has no segments.
func (s *Snapshot) lastPartitionKeys(ctx context.Context) ([]string, error) {
	text, err := s.Property(ctx, PartitionKeysProperty)
	if err != nil {
		return nil, err
	}
	p, err := catalog.ParsePartition(text)
	if err != nil {
		return nil, s.CorruptSchema("property " + PartitionKeysProperty + ": " + err.Error())
	}
	var keys []string
	for _, v := range p {
		keys = append(keys, v.Key)
	}
	return keys, nil
}

// Property returns the value of a table's property, empty where it has none. Its cost is one look-up.
func (s *Snapshot) Property(ctx context.Context, name string) (string, error) {
	values, err := s.GetSchema(ctx, catalog.PropertyKey(name))
	if err != nil || values[0] == nil {
		return "", err
	}
	if err := catalog.CheckProperty(name, string(values[0])); err != nil {
		return "", s.CorruptSchema(err.Error())
	}
	return string(values[0]), nil
}
