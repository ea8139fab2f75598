package execution

import (
	"sync"
	"sync/atomic"
)

// Parallel calls do for each i below n, at most limit at a time, in order. It returns the error of the first i that has
// one. After an error it begins no more calls.
func Parallel(n, limit int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() { // the calls before a failed one go on, so that the error is the first in order
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
