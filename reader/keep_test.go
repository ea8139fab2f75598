package reader

import (
	"context"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// With KeepBatches a caller holds every batch of a scan, whatever MaxBatches is; what the pool does not need again is freed,
// and after Close and the last Release nothing is left.
func TestKeepBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		l := table.layout(features, drawBatchSize(t), OutputTensors)
		opts := drawOptions(t)
		alloc := &countingAllocator{live: map[*byte]int{}}
		opts.KeepBatches, opts.Allocator = true, alloc
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
			if s.batches.made > opts.MaxBatches || len(s.batches.idle) != s.batches.made {
				t.Fatalf("%d batches made and %d idle, at most %d wanted", s.batches.made, len(s.batches.idle), opts.MaxBatches)
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
