package storage

import (
	"context"
	"fmt"
)

// The ledger of sources: what was ingested is not ingested again.

var addSources = operation{
	asked:    func(c *Change) bool { return len(c.Sources) > 0 },
	validate: (*Change).validateSources,
	apply:    (*edit).sources,
}

func (c *Change) validateSources() error {
	prints := make(map[string]bool, len(c.Sources))
	for _, s := range c.Sources {
		if err := s.Validate(); err != nil {
			return err
		}
		if prints[s.Fingerprint] {
			return fmt.Errorf("source %s twice: %w", s.Name, ErrDuplicateSource)
		}
		prints[s.Fingerprint] = true
	}
	return nil
}

// sources refuses what was ingested before and adds the rest to the ledger.
func (e *edit) sources(ctx context.Context, c *Change) error {
	keys := make([][]byte, len(c.Sources))
	for i, s := range c.Sources {
		keys[i] = sourceKey(s.Fingerprint)
	}
	values, err := e.store().get(ctx, e.base.m.listing, keys...)
	if err != nil {
		return err
	}
	for i, s := range c.Sources {
		if values[i] != nil {
			number, name, ok := parseSource(values[i])
			if !ok {
				return corrupt(e.base.treeName(e.base.m.listing), "source is malformed")
			}
			if len(c.Overwrite) == 0 || number > c.Base {
				return fmt.Errorf("source %s (as %s, in snapshot %d): %w", s.Name, name, number, ErrDuplicateSource)
			}
		}
		e.listing = append(e.listing, entry{keys[i], sourceValue(e.info.Number, s.Name)})
	}
	return nil
}
