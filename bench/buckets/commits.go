package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
)

// commits are those of writers that commit to one table without a pause, each by a store of its own. All requests take
// 50 ms longer.
type commits struct {
	Writers int     `json:"writers"`
	Each    int     `json:"commits_each"`
	Rate    float64 `json:"commits_per_second"` // until the first writer is done
	Puts    float64 `json:"puts_per_commit"`    // as the change is empty, of snapshots
	Slowest float64 `json:"slowest_seconds"`
}

func (f *flags) commits(ctx context.Context, s *service) (out commits, err error) {
	out.Writers, out.Each = f.Writers, f.Commits
	var done, counted atomic.Int64
	stores := make([]*object.Counted, f.Writers)
	tables := make([]*storage.Table, f.Writers)
	for i := range tables {
		blobs, err := s.open("commits", true)
		if err != nil {
			return out, err
		}
		stores[i] = object.NewCounted(blobs)
		st, err := storage.Create(ctx, stores[i], storage.Options{})
		if err != nil {
			return out, err
		}
		if tables[i], err = st.NewTable(ctx, "ads"); err != nil {
			return out, err
		}
	}
	change := commit.Change{Operation: "append"}
	if _, err := tables[0].Commit(ctx, change); err != nil {
		return out, err
	}
	s.delay.Store(int64(50 * time.Millisecond))
	s.proxy.Break(s.slow)
	defer s.proxy.Break(nil)
	before := stores[0].Counts().Writes
	var mu sync.Mutex // guards out.Slowest
	var first sync.Once
	var seconds float64
	begin := time.Now()
	err = object.Parallel(ctx, f.Writers, f.Writers, func(ctx context.Context, i int) error {
		for range f.Commits {
			start := time.Now()
			if _, err := tables[i].Commit(ctx, change); err != nil {
				return err
			}
			done.Add(1)
			mu.Lock()
			out.Slowest = max(out.Slowest, time.Since(start).Seconds())
			mu.Unlock()
		}
		first.Do(func() {
			counted.Store(done.Load())
			seconds = time.Since(begin).Seconds()
		})
		return nil
	})
	out.Rate = float64(counted.Load()) / seconds
	puts := -before
	for _, st := range stores {
		puts += st.Counts().Writes
	}
	out.Puts = float64(puts) / float64(done.Load())
	return out, err
}
