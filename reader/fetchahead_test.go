package reader

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// The next I/O task of an object store is fetched while the stripes of one wait for memory: an epoch takes as long as
// the network or the job does, not both.
func TestFarFetchesAhead(t *testing.T) {
	table := plainTable(t, plainShape{dense: 40, segments: 1, stripes: 100, stripeRows: 4000})
	table.blobs.far = true
	stored := len(table.blobs.objects[table.names[0]])
	const network = 10 * time.Second // for all bytes
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var busy time.Time // until when the network is
		table.blobs.hook = func(_ context.Context, _ string, p []byte, _ int64) error {
			mu.Lock()
			if now := time.Now(); busy.Before(now) {
				busy = now
			}
			busy = busy.Add(network * time.Duration(len(p)) / time.Duration(stored))
			until := busy.Add(20 * time.Millisecond)
			mu.Unlock()
			time.Sleep(time.Until(until))
			return nil
		}
		l := table.layout(indices(len(table.features)), 1000, OutputTensors)
		budget := int64(stored) * 2 / 3 // less than a fourth of what is decoded
		s := open(t, l, Options{MemoryBudget: budget, Workers: 2, RequestBytes: budget / 32, AheadBytes: budget / 4,
			GapBytes: budget / 1024})
		defer s.Close()
		begin, first := time.Now(), time.Duration(0)
		for {
			b, err := s.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if first == 0 {
				first = time.Since(begin)
			}
			time.Sleep(network / time.Duration(l.Batches())) // the job
			b.Release()
		}
		took := time.Since(begin)
		t.Logf("first batch after %v, all after %v; %d requests", first, took, s.Stats().Requests)
		if took-first > network*11/10 {
			t.Errorf("%v from the first batch to the last, want little more than the %v of the job alone", took-first,
				network)
		}
	})
}

// Scanners of an object store give all rows, and their memory and goroutines back, however little memory they have, and
// wherever a caller gives up, a read fails, or the job stops.
func TestFarScannersEnd(t *testing.T) {
	defer goleak.VerifyNone(t)
	tables := []*testTable{
		plainTable(t, plainShape{dense: 2, sparse: 3, segments: 3, stripes: 30, stripeRows: 100, session: 10}),
		plainTable(t, plainShape{dense: 1, segments: 5, stripes: 7, stripeRows: 100}),
	}
	for seed := range uint64(150) {
		farScan(t, tables[seed%2], seed)
	}
}

func farScan(t *testing.T, table *testTable, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 5))
	failed := errors.New("a read failed")
	var mu sync.Mutex
	left := 1000 // reads before the one that fails
	if r.IntN(2) == 0 {
		left = r.IntN(100)
	}
	table.blobs.far = true
	table.blobs.hook = func(context.Context, string, []byte, int64) error {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			return failed
		}
		return nil
	}
	plan := Plan{Table: "t", Snapshot: 1, BatchSize: 1 + r.IntN(900), Output: OutputTensors,
		Dedup: []Dedup{DedupKJT, DedupIKJT, DedupPartial}[r.IntN(3)]}
	if r.IntN(2) == 0 {
		plan.Shuffle = Shuffle{Unit: UnitRow, BufferStripes: 1 + r.IntN(9), Seed: 3}
	}
	l := table.layoutOf(indices(len(table.features)), plan)
	opts := Options{
		MemoryBudget: []int64{1, 1000, 30_000, 300_000, 1 << 20, 64 << 20}[r.IntN(6)], Workers: 1 + r.IntN(3),
		Requests: 1 + r.IntN(5), MaxBatches: 1 + r.IntN(4), RequestBytes: int64(2000 + r.IntN(20_000)),
		GapBytes: []int64{-1, 100, 256 << 10}[r.IntN(3)],
	}
	s := open(t, l, opts)
	defer s.Close()
	var kept []*Batch
	defer func() {
		for _, b := range kept {
			b.Release()
		}
	}()
	for rows := uint64(0); r.IntN(60) > 0; {
		patience, hasty := time.Minute, r.IntN(4) == 0
		if hasty {
			patience = time.Duration(r.IntN(200)) * time.Microsecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		b, err := s.Next(ctx)
		cancel()
		switch {
		case err == nil:
			rows += uint64(b.Rows)
			if len(kept) < opts.MaxBatches-1 && r.IntN(3) == 0 {
				kept = append(kept, b)
			} else {
				b.Release()
			}
		case errors.Is(err, io.EOF):
			s.stop()
			if free := freeMemory(s); rows != l.Rows() || free != opts.MemoryBudget {
				t.Fatalf("seed %d: %d rows of %d, %d bytes of memory of %d at the end", seed, rows, l.Rows(), free,
					opts.MemoryBudget)
			}
			return
		case errors.Is(err, failed):
			if err := s.Seek(s.Position()); err != nil { // and on
				t.Fatal(err)
			}
		case !hasty || !errors.Is(err, context.DeadlineExceeded):
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
