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
	var next atomic.Int64
	var ended atomic.Bool
	type failure struct {
		at            int // the column of err
		err, panicked error
	}
	failures := make([]failure, Workers(n, threads))
	run := func(w int) {
		for !ended.Load() {
			i := int(next.Add(1)) - 1
			if i >= n || i%64 == 0 && ctx.Err() != nil {
				return
			}
			if err := work(w, i); err != nil {
				failures[w] = failure{at: i, err: err}
				ended.Store(true)
			}
		}
	}
	if len(failures) == 1 {
		run(0)
	} else {
		var wg sync.WaitGroup
		for w := range failures {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						failures[w].panicked = Recovered(p)
						ended.Store(true)
					}
				}()
				run(w)
			})
		}
		wg.Wait()
	}
	first := failure{at: n}
	for _, f := range failures {
		if f.panicked != nil {
			panic(f.panicked)
		}
		if f.err != nil && f.at < first.at {
			first = f
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return first.err
}
