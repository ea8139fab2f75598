package column

import (
	"context"
	"sync"
	"sync/atomic"
)

// leastColumns is how many columns each goroutine of Each has to be worth starting.
const leastColumns = 4

// Workers returns how many goroutines work on n columns.
func Workers(n, threads int) int { return max(1, min(threads, n/leastColumns)) }

// Each calls work with the numbers of n columns, in Workers goroutines; worker is which of them calls, so that each may
// have memory of its own. It returns when all calls have. An error ends it: that of the column with the lowest number
// is returned, whichever goroutine was first, since columns are begun in order and what was begun is finished. When ctx
// ends, so does it, with ctx's error. A panic of work becomes the caller's.
func Each(ctx context.Context, n, threads int, work func(worker, i int) error) error {
	c := columnLoop{ctx: ctx, n: n, work: work, at: n}
	workers := Workers(n, threads)
	if workers == 1 {
		c.run(0)
	} else {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						c.end(-1, nil, Recovered(p))
					}
				}()
				c.run(w)
			})
		}
		wg.Wait()
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.err
}

// A columnLoop is one call of Each.
type columnLoop struct {
	ctx   context.Context // of the one call
	n     int
	work  func(worker, i int) error
	next  atomic.Int64
	ended atomic.Bool

	mu       sync.Mutex
	at       int // the column of err
	err      error
	panicked error
}

func (c *columnLoop) run(worker int) {
	for !c.ended.Load() {
		i := int(c.next.Add(1)) - 1
		if i >= c.n || i%64 == 0 && c.ctx.Err() != nil {
			return
		}
		if err := c.work(worker, i); err != nil {
			c.end(i, err, nil)
		}
	}
}

// end lets no more columns begin.
func (c *columnLoop) end(i int, err error, panicked error) {
	c.ended.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if panicked != nil {
		c.panicked = panicked
	} else if i < c.at {
		c.at, c.err = i, err
	}
}
