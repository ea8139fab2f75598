package usage

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// stuck is a store whose writes do not end, whatever becomes of their contexts, until it is let go.
type stuck struct {
	object.Store
	let     chan struct{}
	mu      sync.Mutex
	waiting int // guarded by mu
}

func (s *stuck) PutIfAbsent(ctx context.Context, name string, b []byte) error {
	s.mu.Lock()
	s.waiting++
	s.mu.Unlock()
	<-s.let
	return s.Store.PutIfAbsent(context.WithoutCancel(ctx), name, b)
}

// TestStoreThatHangs: readers of a store whose writes hang are opened, read and closed without any waiting; one write
// waits, and not one for each; closing the store waits two seconds, and so does the end of the process. What could not
// be written by then is counted as lost.
func TestStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := object.NewMemory()
		blobs := &stuck{Store: memory, let: make(chan struct{})}
		table := tableIn(t, blobs)
		within := func(what string, most time.Duration, f func()) {
			t.Helper()
			start := time.Now() // of the bubble: it moves when all wait
			f()
			if took := time.Since(start); took > most {
				t.Errorf("%s took %v: want at most %v", what, took, most)
			}
		}
		reads := func(n int) {
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					r := newReading(3)
					s := Begin(table, Key{Job: fmt.Sprint("job", i%3)}, 1, r)
					r.read(1)
					s.End()
				})
			}
			wg.Wait()
		}
		lostBefore := Totals().Lost
		within("100 readers", 0, func() { reads(100) })
		time.Sleep(10 * time.Minute) // the timer has fired
		synctest.Wait()
		within("100 readers while a write hangs", 0, func() { reads(100) })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		blobs.mu.Lock()
		if blobs.waiting != 1 {
			t.Errorf("%d writes wait at once", blobs.waiting)
		}
		blobs.mu.Unlock()
		within("the end of the process", 2*time.Second, func() { FlushAll(t.Context()) })
		within("closing the store", 2*time.Second, func() {
			if err := table.Store().Close(); err != nil {
				t.Error(err)
			}
		})
		within("a reader of the store that was closed", 0, func() { reads(1) })
		table.Store().Close()
		close(blobs.let)
		synctest.Wait()
		// The writes that hung are there. What came after the first was given up when the store was closed, and that is
		// counted: 3 records.
		x := load(t, tableIn(t, memory))
		if x.Total.Readers != 101 || x.Total.Rows != 101 || x.DamagedCount != 0 {
			t.Errorf("%+v", x.Total)
		}
		if lost := Totals().Lost - lostBefore; lost != 3 {
			t.Errorf("%d records lost", lost)
		}
		writers.mu.Lock()
		defer writers.mu.Unlock()
		if len(writers.byTable) > 1 {
			t.Errorf("%d tables are not forgotten", len(writers.byTable))
		}
	})
}
