package commit

import (
	"context"
	"fmt"
)

// ExpireBelow makes the snapshots below a number expire. 0: none.
type ExpireBelow uint64

func (ExpireBelow) phase() phase           { return phaseBranches }
func (ExpireBelow) validate(*Change) error { return nil }

func (x ExpireBelow) apply(_ context.Context, e *edit) error {
	if uint64(x) > e.base.Manifest.Info.Number {
		return fmt.Errorf("oldest snapshot %d: the newest is %d", x, e.base.Manifest.Info.Number)
	}
	e.info.Oldest = max(e.info.Oldest, uint64(x))
	return nil
}
