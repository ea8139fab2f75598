package storage

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/dsistore/dsistore/storage/wire"
)

// Properties say how a table is to be written; but for one of storage's own no reader needs them. Each is a name and a value, both UTF-8, and a commit may set
// some: those set last count.
const (
	maxPropertyName  = 64
	maxPropertyValue = 1024
	maxProperties    = 16 // of one change
)

// ProfileProperty is what ingest stores feature files for: speed, balanced or size.
const ProfileProperty = "profile"

// partitionKeysProperty is set by the commit that takes the last segment of a table away: its partition keys, as the canonical form of a
// partition of them with empty values. Readers need it, for expressions that name the keys; where it would be too long, or no UTF-8, it is left out.
const partitionKeysProperty = "partition_keys"

// lastPartitionKeys returns the partition keys of a table that has no segments.
func (s *Snapshot) lastPartitionKeys(ctx context.Context) ([]string, error) {
	text, err := s.Property(ctx, partitionKeysProperty)
	if err != nil {
		return nil, err
	}
	p, err := ParsePartition(text)
	if err != nil {
		return nil, wire.Corrupt(s.treeName(s.m.schema), "property "+partitionKeysProperty+": "+err.Error())
	}
	var keys []string
	for _, v := range p {
		keys = append(keys, v.Key)
	}
	return keys, nil
}

// emptied notes the partition keys of a table that the change leaves without segments.
func (e *edit) emptied(ctx context.Context) error {
	if e.info.Segments > 0 || e.base.m.info.Segments == 0 {
		return nil
	}
	keys, err := e.base.PartitionKeys(ctx)
	if err != nil {
		return err
	}
	p := make(Partition, len(keys))
	for i, k := range keys {
		p[i].Key = k
	}
	value := p.String()
	if checkProperty(partitionKeysProperty, value) != nil {
		value = ""
	}
	old, err := e.base.Property(ctx, partitionKeysProperty)
	if err != nil || old == value {
		return err
	}
	e.schema = append(e.schema, entry{propertyKey(partitionKeysProperty), []byte(value)})
	return nil
}

func checkProperty(name, value string) error {
	switch {
	case name == "" || len(name) > maxPropertyName || !utf8.ValidString(name):
		return fmt.Errorf("property %.100q: want a name of 1 to %d bytes of UTF-8", name, maxPropertyName)
	case len(value) > maxPropertyValue || !utf8.ValidString(value):
		return fmt.Errorf("property %s: value of %d bytes: want at most %d of UTF-8", name, len(value), maxPropertyValue)
	}
	return nil
}

// Property returns the value of a table's property, empty where it has none. Its cost is one look-up.
func (s *Snapshot) Property(ctx context.Context, name string) (string, error) {
	values, err := s.t.s.get(ctx, s.m.schema, propertyKey(name))
	if err != nil || values[0] == nil {
		return "", err
	}
	if err := checkProperty(name, string(values[0])); err != nil {
		return "", wire.Corrupt(s.treeName(s.m.schema), err.Error())
	}
	return string(values[0]), nil
}
