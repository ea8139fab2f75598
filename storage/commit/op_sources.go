package commit

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/storage/catalog"
)

// AddSources notes what was ingested. A source that was ingested before is ErrDuplicateSource, unless the change
// overwrites partitions and was made against a snapshot that held it.
type AddSources []catalog.Source

func (AddSources) phase() phase { return phaseTable }

func (a AddSources) validate(*Change) error {
	prints := make(map[string]bool, len(a))
	for _, s := range a {
		if err := s.Validate(); err != nil {
			return err
		}
		if prints[s.Fingerprint] {
			return fmt.Errorf("source %s twice: %w", s.Name, catalog.ErrDuplicateSource)
		}
		prints[s.Fingerprint] = true
	}
	return nil
}

func (a AddSources) apply(ctx context.Context, e *edit) error {
	overwrites := len(Op[OverwritePartitions](e.change)) > 0
	keys := make([][]byte, len(a))
	for i, s := range a {
		keys[i] = catalog.SourceKey(s.Fingerprint)
	}
	values, err := e.base.GetListing(ctx, keys...)
	if err != nil {
		return err
	}
	for i, s := range a {
		if values[i] != nil {
			number, name, ok := catalog.ParseSource(values[i])
			if !ok {
				return e.base.CorruptListing("source is malformed")
			}
			if !overwrites || number > e.change.Base {
				return fmt.Errorf("source %s (as %s, in snapshot %d): %w", s.Name, name, number,
					catalog.ErrDuplicateSource)
			}
		}
		e.setListing(keys[i], catalog.SourceValue(e.info.Number, s.Name))
	}
	return nil
}
