package execution

import (
	"sync"
	"sync/atomic"
)

// Parallel calls do for each i below n, starting in order, at most limit at a time. After an error it starts no more
// calls. It returns the error of the lowest i when all calls have returned.
func Parallel(n, limit int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() { // all calls below a failed one have started, so the first error in order is found
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if errs[i] = do(i); errs[i] != nil {
				failed.Store(true)
			}
		}
	}
	var wg sync.WaitGroup
	for range min(limit, n) - 1 {
		wg.Go(work)
	}
	if n > 0 {
		work()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
