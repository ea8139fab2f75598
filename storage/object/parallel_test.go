package object

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestParallelEnds: what was left out because the context ended, or another failed, is never taken for done.
func TestParallelEnds(t *testing.T) {
	for _, n := range []int{2, 3, 100} {
		ctx, cancel := context.WithCancel(t.Context())
		var done atomic.Int64
		err := Parallel(ctx, 1, n, func(context.Context, int) error { // which does not look at its context
			done.Add(1)
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || n == 100 && done.Load() == 100 {
			t.Errorf("%d of %d done: %v", done.Load(), n, err)
		}
		failed := errors.New("failed")
		if err := Parallel(t.Context(), 4, n, func(_ context.Context, i int) error {
			if i == 1 {
				return failed
			}
			return nil
		}); err != failed {
			t.Errorf("%d: %v", n, err)
		}
	}
}
