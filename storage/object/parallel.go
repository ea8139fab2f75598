package object

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// RequestsAtOnce is how many requests of one operation are under way at once, as a rule. Over a network that many take
// about as long as one.
const RequestsAtOnce = 32

// Parallel calls f for 0 to n-1, limit at a time, until one returns an error, which it returns, or ctx ends.
func Parallel(ctx context.Context, limit, n int, f func(ctx context.Context, i int) error) error {
	if n == 1 {
		return f(ctx, 0)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for i := range n {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return f(gctx, i) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return ctx.Err() // it may have ended before some were begun
}
