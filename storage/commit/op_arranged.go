package commit

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
)

// An Arranged says by which keys the rows of the added segments are partitioned and sorted. If a commit after the base
// gave the table other keys, that is a conflict: the rows would not be found by these, or are not sorted by them.
type Arranged struct {
	Partition []string // the partition keys of the segments
	// Session and Time are the names that the session key and the time key of the table may have: those of the base,
	// and those that the rows are sorted by. A table may have neither.
	Session, Time []string
}

func (Arranged) phase() phase { return phaseDropOverlays }

func (Arranged) validate(*Change) error { return nil }

func (a Arranged) apply(ctx context.Context, e *edit) error {
	info := e.base.Manifest.Info
	if info.Number == e.change.Base {
		return nil // the maker of the change has looked
	}
	keys, err := e.base.PartitionKeys(ctx)
	if err != nil {
		return err
	}
	if (info.Segments > 0 || len(keys) > 0) && !slices.Equal(keys, a.Partition) {
		return e.rearranged("is partitioned by "+catalog.KeyNames(keys),
			"are partitioned by "+catalog.KeyNames(a.Partition))
	}
	features, err := e.base.KeyFeatures(ctx)
	if err != nil {
		return err
	}
	for _, f := range features {
		may := a.Session
		switch f.Role {
		case catalog.RoleSessionKey:
		case catalog.RoleTimeKey:
			may = a.Time
		default:
			continue
		}
		if !slices.Contains(may, f.Name) {
			return e.rearranged(fmt.Sprintf("has the %v %s", f.Role, f.Name), "were sorted without it")
		}
	}
	return nil
}

func (e *edit) rearranged(table, rows string) error {
	return fmt.Errorf("since a commit after snapshot %d, that the change was made against, the table %s, and the rows "+
		"of the change %s: %w", e.change.Base, table, rows, catalog.ErrConflict)
}
