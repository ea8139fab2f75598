package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
)

// snapshotPuts counts how often a snapshot is put.
type snapshotPuts struct {
	object.Store
	n atomic.Int64
}

func (s *snapshotPuts) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if strings.Contains(name, names.SnapshotsDir) {
		s.n.Add(1)
	}
	return s.Store.PutIfAbsent(ctx, name, data)
}

// TestManyWriters counts the commits a second, and the puts a commit, of writers that append to one table without a
// pause, each by a handle of its own that is 46 to 54 ms away; and how long the slowest commit takes. PROTOCOL.md has
// the figures. Time is the bubble's.
func TestManyWriters(t *testing.T) {
	for _, of := range []struct {
		writers, each int
		rate, puts    float64 // commits a second, at least; puts of snapshots a commit, at most
		slowest       time.Duration
	}{
		{1, 40, 10, 1, 150 * time.Millisecond},
		{2, 40, 8, 1.5, 5 * time.Second},
		{8, 40, 8, 1.5, 10 * time.Second},
		{16, 40, 8, 1.5, 15 * time.Second},
	} {
		t.Run(fmt.Sprint(of.writers), func(t *testing.T) {
			mem := object.NewMemory()
			near := newTable(t, mem)
			mustCommit(t, near, commit.Change{Operation: "first"})
			segments := make([][]catalog.SegmentDescriptor, of.writers)
			for w := range segments {
				for range of.each {
					d, err := fakeSegment(t.Context(), near, nil, 1)
					if err != nil {
						t.Fatal(err)
					}
					segments[w] = append(segments[w], d)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				puts := &snapshotPuts{Store: mem}
				var slowest atomic.Int64
				var writers sync.WaitGroup
				begin := time.Now()
				var firstEnd time.Time // of a writer
				var commits, counted atomic.Int64
				var once sync.Once
				for w := range of.writers {
					far := object.NewDelayed(puts, time.Duration(46+w*8/of.writers)*time.Millisecond)
					tab := newTable(t, far)
					writers.Go(func() {
						for _, d := range segments[w] {
							start := time.Now()
							if _, err := tab.Commit(t.Context(), commit.Change{Operation: "append",
								Ops: []commit.Operation{commit.AddSegments{d}}}); err != nil {
								t.Error(err)
							}
							commits.Add(1)
							slowest.Store(max(slowest.Load(), int64(time.Since(start))))
						}
						once.Do(func() { firstEnd = time.Now(); counted.Store(commits.Load()) })
					})
				}
				writers.Wait()
				rate := float64(counted.Load()) / firstEnd.Sub(begin).Seconds()
				each := float64(puts.n.Load()) / float64(commits.Load())
				t.Logf("%d writers: %.1f commits/s, %.2f puts a commit, the slowest in %v", of.writers, rate, each,
					time.Duration(slowest.Load()))
				if rate < of.rate || each > of.puts || time.Duration(slowest.Load()) > of.slowest {
					t.Errorf("want at least %v commits/s, at most %v puts a commit, the slowest in %v", of.rate,
						of.puts, of.slowest)
				}
				s, err := near.Latest(t.Context())
				if err != nil || s.Info().Segments != uint64(of.writers*of.each) {
					t.Fatal(s, err)
				}
			})
		})
	}
}

// A writer that is much farther away than the others, as gc is that has to make its fence, does not fall behind for
// good: it has committed as soon as they are quiet. It may have drawn to wait for seven others then, with the patience
// of three requests for each, and has some requests to make.
func TestFarWriter(t *testing.T) {
	for _, of := range []struct {
		near         int
		latency, far time.Duration
	}{
		{1, 10 * time.Millisecond, 50 * time.Millisecond},
		{4, 20 * time.Millisecond, 100 * time.Millisecond},
		{8, 50 * time.Millisecond, 150 * time.Millisecond},
	} {
		soon := (7*3 + 8) * of.far
		synctest.Test(t, func(t *testing.T) {
			mem := object.NewMemory()
			mustCommit(t, newTable(t, mem), commit.Change{Operation: "first"})
			const busy = 10 * time.Second
			begin := time.Now()
			var writers sync.WaitGroup
			for range of.near {
				tab := newTable(t, object.NewDelayed(mem, of.latency))
				writers.Go(func() {
					for time.Since(begin) < busy {
						mustCommit(t, tab, commit.Change{Operation: "near"})
					}
				})
			}
			far := newTable(t, object.NewDelayed(mem, of.far))
			mustCommit(t, far, commit.Change{Operation: commit.Fence})
			took := time.Since(begin)
			writers.Wait()
			t.Logf("%d writers %v away, and one %v away, which took %v", of.near, of.latency, of.far, took)
			if took > busy+soon {
				t.Errorf("want %v after the others at most", soon)
			}
		})
	}
}

// A commit that always finds its number taken gives up.
func TestTooFast(t *testing.T) {
	mem := object.NewMemory()
	near := newTable(t, mem)
	mustCommit(t, near, commit.Change{Operation: "first"})
	tab := newTable(t, &outrun{mem, near, t})
	_, err := tab.Commit(t.Context(), commit.Change{Operation: "slow"})
	if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "too fast") {
		t.Fatal(err)
	}
}

// outrun is a store in which somebody commits before each snapshot that is put.
type outrun struct {
	object.Store
	near *Table
	t    *testing.T
}

func (s *outrun) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if strings.Contains(name, names.SnapshotsDir) {
		mustCommit(s.t, s.near, commit.Change{Operation: "before"})
	}
	return s.Store.PutIfAbsent(ctx, name, data)
}
