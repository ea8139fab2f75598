package storage

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// parallelRequests is how many requests of one operation are under way at once. Over a network that many take about as long as one.
const parallelRequests = 32

// parallel calls f for 0 to n-1, parallelRequests at a time, until one returns an error, which it returns.
func parallel(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRequests)
	for i := range n {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return f(gctx, i) })
	}
	return g.Wait()
}
