package reader

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/dsistore/dsistore/reader/memory"
)

// scarceMemory has memory for so many blocks.
type scarceMemory struct {
	memory.Heap
	left atomic.Int64
}

func (s *scarceMemory) Allocate(n int) []byte {
	if s.left.Add(-1) < 0 {
		return nil
	}
	return s.Heap.Allocate(n)
}

// TestNoMemory: a batch for which there is no memory is an error of the reader, at any of its allocations. With memory
// the same reader gives all batches after a Seek.
func TestNoMemory(t *testing.T) {
	table := plainTable(t, plainShape{dense: 2, sparse: 3, segments: 3, stripes: 3, stripeRows: 100, session: 10})
	for _, dedup := range []Dedup{DedupKJT, DedupIKJT, DedupPartial} {
		failed := 0
		for left := range int64(40) {
			l := table.layoutOf(indices(len(table.features)), Plan{Table: "t", Snapshot: 1, BatchSize: 300,
				Output: OutputTensors, Dedup: dedup})
			scarce := &scarceMemory{}
			scarce.left.Store(left)
			s := open(t, l, Options{Allocator: scarce, Workers: 2})
			rows, err := allRows(t, s)
			switch {
			case errors.Is(err, ErrNoMemory):
				failed++
			case err != nil || rows != l.Rows() || scarce.left.Load() < 0:
				t.Fatalf("%v, %d blocks: %d rows, %v", dedup, left, rows, err)
			}
			scarce.left.Store(1 << 40)
			if err := s.Seek(Position{}); err != nil {
				t.Fatal(err)
			}
			if rows, err := allRows(t, s); err != nil || rows != l.Rows() {
				t.Fatalf("%v, %d blocks, then enough: %d rows, %v", dedup, left, rows, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if failed < 2 {
			t.Errorf("%v: failed %d times", dedup, failed)
		}
	}
}

// allRows reads to the end or to the first error, and returns how many rows came.
func allRows(t *testing.T, s *Scanner) (rows uint64, err error) {
	for {
		b, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows += uint64(b.Rows)
		b.Release()
	}
}
