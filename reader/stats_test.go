package reader

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
)

// Prefetched counts the batches that are made ahead: up to MaxBatches, none once all are given, and none after Close.
func TestPrefetchedAreMadeAndNotGiven(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 1, segments: 1, stripes: 6, stripeRows: 50})
	s := open(t, table.layout([]int{0}, 25, OutputColumns), Options{MaxBatches: 3, Workers: 1})
	defer s.Close()
	b, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for s.Stats().Prefetched < 2 {
		runtime.Gosched()
	}
	if n := s.Stats().Prefetched; n != 2 {
		t.Errorf("%d batches prefetched beside one that is held, want 2 of 3", n)
	}
	b.Release()
	for err == nil {
		if b, err = s.Next(context.Background()); err == nil {
			b.Release()
		}
	}
	if !errors.Is(err, io.EOF) || s.Stats().Prefetched != 0 {
		t.Errorf("after the last batch: %v, %d prefetched", err, s.Stats().Prefetched)
	}
	if err := s.Seek(Position{Batch: 2}); err != nil {
		t.Fatal(err)
	}
	if b, err = s.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.Release()
	if err := s.Close(); err != nil || s.Stats().Prefetched != 0 {
		t.Errorf("closed: %v, %d prefetched", err, s.Stats().Prefetched)
	}
}

// The stats of a rank may be asked for while it reads, as a server of metrics does.
func TestRankStatsFromAnotherGoroutine(t *testing.T) {
	table := plainTable(t, plainShape{sparse: 1, segments: 1, stripes: 6, stripeRows: 50})
	s, err := table.layout([]int{0}, 25, OutputColumns).OpenRank(Options{Workers: 1}, Ranks{World: 1, Shards: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for last := uint64(0); ; {
			st := s.Stats()
			if st.Rows < last {
				t.Errorf("%d rows after %d", st.Rows, last)
			}
			last = st.Rows
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	rows := 0
	for {
		b, _, err := s.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rows += b.Rows
		b.Release()
	}
	close(done)
	wg.Wait()
	if st := s.Stats(); st.Rows != uint64(rows) || rows != 300 || st.Prefetched != 0 {
		t.Errorf("%d rows given of 300, stats %+v", rows, st)
	}
}
