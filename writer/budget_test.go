package writer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// TestBudgetIsShared: what is taken is never more than there is, and all get theirs in the end.
func TestBudgetIsShared(t *testing.T) {
	b := newMemoryBudget(10)
	var used atomic.Int64
	var wg sync.WaitGroup
	for i := range int64(40) {
		wg.Go(func() {
			n := 1 + i%10
			for range 50 {
				if i%4 != 0 {
					if err := b.acquire(t.Context(), n); err != nil {
						t.Error(err)
						return
					}
				} else if !b.tryAcquire(n) { // perhaps never, beside so many that wait
					continue
				}
				if now := used.Add(n); now > 10 {
					t.Errorf("%d of 10 are used", now)
				}
				used.Add(-n)
				b.release(n)
			}
		})
	}
	wg.Wait()
	if b.left != 10 || !b.tryAcquire(10) || b.tryAcquire(1) {
		t.Errorf("%d are left, and 10 of 10 were", b.left)
	}
}

// TestBudgetLetsOthersPast: who waits for much neither keeps others from the little that is left nor waits on when its
// ctx ends.
func TestBudgetLetsOthersPast(t *testing.T) {
	b := newMemoryBudget(10)
	if err := b.acquire(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error)
	go func() { waits <- b.acquire(ctx, 8) }()
	for range 100 {
		if !b.tryAcquire(4) || b.tryAcquire(1) {
			t.Fatal("4 of 10 are left, no more")
		}
		b.release(4)
		time.Sleep(10 * time.Microsecond)
	}
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) || b.left != 4 {
		t.Errorf("%v, %d left", err, b.left)
	}
}

// TestSpread: every number is worked on once, by no more workers than are idle and have memory, each with a seeker of
// its own; an error is that of the lowest number.
func TestSpread(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		for _, memory := range []int64{0, 7, 1000} {
			j := &segmentJob{
				output: &output{memory: newMemoryBudget(memory),
					seekers: &sync.Pool{New: func() any { return new(seeker) }}},
				idle: semaphore.NewWeighted(int64(workers)),
			}
			if !j.idle.TryAcquire(1) { // the caller
				t.Fatal("no worker")
			}
			helpers := min(int64(workers-1), memory/5)
			for _, bad := range []int{-1, 3} {
				var calls [100]atomic.Int32
				var busy atomic.Int64
				var seekers sync.Map
				err := j.spread(len(calls), new(seeker), 5, func(s *seeker, k int) error {
					if _, used := seekers.LoadOrStore(s, true); used {
						t.Error("two calls at once have one seeker")
					}
					defer seekers.Delete(s)
					if busy.Add(1) > 1+helpers {
						t.Errorf("more than one worker and %d helpers", helpers)
					}
					defer busy.Add(-1)
					calls[k].Add(1)
					if bad >= 0 && k >= bad {
						return fmt.Errorf("number %d", k)
					}
					return nil
				})
				if bad >= 0 && (err == nil || err.Error() != fmt.Sprint("number ", bad)) || bad < 0 && err != nil {
					t.Errorf("%d workers: %v", workers, err)
				}
				for k := range calls {
					if n := calls[k].Load(); n > 1 || n == 0 && (bad < 0 || k <= bad) {
						t.Errorf("%d workers: number %d has %d calls", workers, k, n)
					}
				}
				if j.memory.left != memory {
					t.Errorf("%d of %d are left", j.memory.left, memory)
				}
			}
			if !j.idle.TryAcquire(int64(workers - 1)) {
				t.Error("a worker is missing")
			}
		}
	}
}
