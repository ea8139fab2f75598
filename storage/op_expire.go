package storage

import (
	"context"
	"fmt"
)

// Snapshots that expire.

var expireSnapshots = operation{
	asked: func(c *Change) bool { return c.Oldest > 0 },
	apply: (*edit).oldest,
}

// oldest says which snapshots have expired.
func (e *edit) oldest(_ context.Context, c *Change) error {
	if c.Oldest > e.base.m.info.Number {
		return fmt.Errorf("oldest snapshot %d: the newest is %d", c.Oldest, e.base.m.info.Number)
	}
	e.info.Oldest = max(e.info.Oldest, c.Oldest)
	return nil
}
