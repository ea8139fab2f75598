package column

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// TestErrorIsOfTheFirstColumn: of several columns with errors the first one's is returned, however the goroutines are
// run.
func TestErrorIsOfTheFirstColumn(t *testing.T) {
	for range 500 {
		var calls [64]atomic.Int32
		err := Each(t.Context(), len(calls), 8, func(_, i int) error {
			calls[i].Add(1)
			if i%13 == 12 {
				return fmt.Errorf("column %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "column 12" {
			t.Fatalf("%v: want that of column 12", err)
		}
		for i := range calls {
			if n := calls[i].Load(); n > 1 || i <= 12 && n != 1 {
				t.Fatalf("column %d: %d calls", i, n)
			}
		}
	}
}

// TestEachColumnOnceByItsWorker: every column is worked on once, and no two calls with the same worker are under way.
func TestEachColumnOnceByItsWorker(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4, 9, 1000} {
		for _, threads := range []int{1, 2, 5, 400} {
			calls, busy := make([]atomic.Int32, n), make([]atomic.Int32, Workers(n, threads))
			err := Each(t.Context(), n, threads, func(worker, i int) error {
				if busy[worker].Add(1) != 1 {
					return errors.New("two calls with one worker")
				}
				calls[i].Add(1)
				busy[worker].Add(-1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range calls {
				if calls[i].Load() != 1 {
					t.Fatalf("%d columns, %d threads: column %d has %d calls", n, threads, i, calls[i].Load())
				}
			}
		}
	}
}

func TestEachColumnEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	err := Each(ctx, 1<<20, 4, func(int, int) error {
		if calls.Add(1) == 100 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || calls.Load() > 1000 {
		t.Errorf("%v after %d calls: want the end soon after the 100th", err, calls.Load())
	}
	for _, threads := range []int{1, 4} {
		func() {
			defer func() {
				if err := Recovered(recover()); !strings.Contains(err.Error(), "defect") {
					t.Errorf("%d threads: panic %v", threads, err)
				}
			}()
			_ = Each(t.Context(), 64, threads, func(_, i int) error {
				if i == 30 {
					panic("defect")
				}
				return nil
			})
		}()
	}
}

// TestDefect: a panic is not worded as damage, and says where it was.
func TestDefect(t *testing.T) {
	run := func(threads int) (err error) {
		defer func() { err = Recovered(recover()) }()
		return Each(t.Context(), 8, threads, func(_, i int) error {
			var none []int
			return fmt.Errorf("%d", none[i])
		})
	}
	for _, threads := range []int{1, 2} {
		err := run(threads)
		if want := "internal error: runtime error: index out of range"; !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "tools/ingest/source/column/each_test.go:") ||
			!strings.Contains(err.Error(), "please report it") || strings.Contains(err.Error(), "damage") {
			t.Errorf("%d threads: got %v", threads, err)
		}
	}
}
