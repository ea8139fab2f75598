package reader

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
)

// checkLayers refuses a snapshot with something over its segments that this reader does not apply: rather no rows than values that
// were replaced.
func checkLayers(ctx context.Context, snap *storage.Snapshot) error {
	overlays, err := snap.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		if o.Merged != 0 {
			return fmt.Errorf("table %s, snapshot %d: %w: overlay %s is part of the table, which this reader does not lay over it",
				snap.Table().Name(), snap.Info().Number, format.ErrUnsupported, o.Name)
		}
	}
	return nil
}
