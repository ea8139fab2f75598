package commit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// SetProperties sets properties of the table by name. Other properties stay.
type SetProperties map[string]string

func (SetProperties) phase() phase { return phaseTable }

func (p SetProperties) validate(*Change) error {
	if len(p) > catalog.MaxProperties {
		return fmt.Errorf("%d properties: want at most %d", len(p), catalog.MaxProperties)
	}
	for name, value := range p {
		if err := catalog.CheckProperty(name, value); err != nil {
			return err
		}
		if name == snapshot.PartitionKeysProperty {
			return fmt.Errorf("property %s is set by commits that empty a table", name)
		}
	}
	return nil
}

func (p SetProperties) apply(ctx context.Context, e *edit) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		old, err := e.base.Property(ctx, name)
		if err != nil {
			return err
		}
		if value := p[name]; value != old {
			e.setSchema(catalog.PropertyKey(name), []byte(value))
		}
	}
	return nil
}

// emptied notes the partition keys of a table that the change leaves without segments.
func (e *edit) emptied(ctx context.Context) error {
	if e.info.Segments > 0 || e.base.Manifest.Info.Segments == 0 {
		return nil
	}
	keys, err := e.base.PartitionKeys(ctx)
	if err != nil {
		return err
	}
	p := make(catalog.Partition, len(keys))
	for i, k := range keys {
		p[i].Key = k
	}
	value := p.String()
	if catalog.CheckProperty(snapshot.PartitionKeysProperty, value) != nil {
		value = ""
	}
	old, err := e.base.Property(ctx, snapshot.PartitionKeysProperty)
	if err != nil || old == value {
		return err
	}
	e.setSchema(catalog.PropertyKey(snapshot.PartitionKeysProperty), []byte(value))
	return nil
}
