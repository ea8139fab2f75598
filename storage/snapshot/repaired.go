package snapshot

import (
	"context"

	"github.com/dsistore/dsistore/storage/catalog"
)

// Repaired returns what repairs did to the table, up to this snapshot, in order.
func (s *Snapshot) Repaired(ctx context.Context) (out []catalog.Repaired, err error) {
	err = s.EachIn(ctx, catalog.RepairedSpace, func(key, value []byte) string {
		r, reason := catalog.ParseRepaired(key, value)
		out = append(out, r)
		return reason
	})
	return out, err
}
