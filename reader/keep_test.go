package reader

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/storage/catalog"
)

// With KeepBatches a caller holds every batch of a scan, whatever MaxBatches is; what the pool does not need again is
// freed, and after Close and the last Release nothing is left.
func TestKeepBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.layout(features, drawBatchSize(t), OutputTensors)
		opts := drawOptions(t)
		alloc := &countingAllocator{live: map[*byte]int{}}
		opts.KeepBatches, opts.Allocator, opts.Reuse = true, alloc, false
		s := open(t, l, opts)
		for range 2 {
			var batches []*Batch
			for {
				b, err := s.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				batches = append(batches, b)
			}
			row := 0
			for _, b := range batches {
				checkBatch(t, table, features, b, row)
				row += b.Rows
			}
			if row != len(table.rows) {
				t.Fatalf("%d rows, want %d", row, len(table.rows))
			}
			for _, b := range batches {
				b.Release()
			}
			if n := s.x.Pools.Batches.Counts(); n.Made > n.Max || n.Idle != n.Made {
				t.Fatalf("%d batches made and %d idle, at most %d wanted", n.Made, n.Idle, n.Max)
			}
			if err := s.Seek(Position{}); err != nil {
				t.Fatal(err)
			}
		}
		b, err := s.Next(context.Background())
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if b != nil {
			checkBatch(t, table, features, b, 0)
			b.Release()
		}
		if err := alloc.check(); err != nil {
			t.Fatal(err)
		}
	})
}

// Every mode gives the same rows under one order, transformed or not, and a batch that is kept stays what it was while
// others are made and, from any goroutine, released.
func TestKeepBatchesOfAllModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawShuffled(t, rapid.SampledFrom([]tableShape{
			shuffledShape,
			{features: 12, segments: 3, stripes: 3, stripeRows: 70, sessions: true},
		}).Draw(t, "shape"))
		plan := *x.layout.plan
		plan.BatchSize = rapid.SampledFrom([]int{1, 3, 17, 64, 129, 1000}).Draw(t, "batch size")
		if rapid.IntRange(0, 3).Draw(t, "plain order") == 0 {
			plan.Shuffle = Shuffle{}
		}
		want, p := drawTransformed(t, x.table, x.features, plan, catalog.RoleRequestKey)
		var scanners [3]*Scanner
		for dedup := range scanners {
			q := *p
			q.Dedup = Dedup(dedup)
			l, err := x.table.newLayout(&q)
			if err != nil {
				t.Fatal(err)
			}
			opts := drawOptions(t)
			opts.KeepBatches = true
			scanners[dedup] = open(t, l, opts)
			defer scanners[dedup].Close()
		}
		for range 2 { // the second time into used memory
			from := Position{Batch: rapid.Uint64Range(0, scanners[0].Batches()).Draw(t, "from")}
			var kept [3][]*Batch
			for dedup, s := range scanners {
				if err := s.Seek(from); err != nil {
					t.Fatal(err)
				}
				for {
					b, err := s.Next(t.Context())
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					kept[dedup] = append(kept[dedup], b)
				}
			}
			for i, kjt := range kept[DedupKJT] {
				rows := slices.Clone(kjt.Columns[len(x.features)-1].Ints)
				for r, n := range rows {
					rows[r] = int64(x.table.positions[n])
				}
				for dedup := range scanners {
					b := kept[dedup][i]
					checkRows(t, want, x.features, b, intsOf(rows))
					if Dedup(dedup) == DedupKJT {
						continue
					}
					checkGroups(t, want, x.features, b, intsOf(rows))
					if b.Tensors != nil {
						checkExpanded(t, b, kjt)
					}
				}
			}
			var wg sync.WaitGroup
			defer wg.Wait()
			for _, b := range slices.Concat(kept[:]...) {
				wg.Go(b.Release)
			}
		}
	})
}

func intsOf(list []int64) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = int(v)
	}
	return out
}
