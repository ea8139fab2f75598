package reader

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/transform"
)

// valuesAt reads an epoch and returns where the values of its first batch lay.
func valuesAt(t *testing.T, s *Scanner) unsafe.Pointer {
	t.Helper()
	var at unsafe.Pointer
	for b := range eachBatch(t, s) {
		if at == nil {
			at = unsafe.Pointer(unsafe.SliceData(b.Tensors.Sparse.Values))
		}
	}
	return at
}

// A scanner with Reuse goes on with the memory of one that was closed, if it has the same features, batches and
// options.
func TestReuse(t *testing.T) {
	ReleaseReused()
	defer ReleaseReused()
	table := plainTable(t, plainShape{dense: 2, sparse: 3, segments: 1, stripes: 2, stripeRows: 256, session: 4})
	all := indices(len(table.features))
	read := func(l *Layout, opts Options) unsafe.Pointer {
		s := open(t, l, opts)
		defer s.Close()
		return valuesAt(t, s)
	}
	opts := Options{Workers: 1, MaxBatches: 1, Reuse: true}
	layout := func() *Layout { return table.dedupLayout(all, 100, OutputTensors, DedupKJT) }
	first := read(layout(), opts)
	if again := read(layout(), opts); again != first {
		t.Error("the memory of the scanner before is not used")
	}
	chain, err := transform.ParseChain("first(1)")
	if err != nil {
		t.Fatal(err)
	}
	transformed := make([]transform.Bound, len(all))
	for i, f := range table.features {
		if f.Type.Kind == vector.Sparse {
			transformed[i] = transform.Bound{Chain: chain, StoredType: f.Type, StoredLogical: f.Logical}
		}
	}
	for name, x := range map[string]struct {
		l    *Layout
		opts Options
	}{
		"transforms": {table.layoutOf(all, Plan{Table: "t", Snapshot: 1, BatchSize: 100, Output: OutputTensors,
			Transforms: transformed}), opts},
		"fewer features": {table.dedupLayout(all[1:], 100, OutputTensors, DedupKJT), opts},
		"other batches":  {table.dedupLayout(all, 101, OutputTensors, DedupKJT), opts},
		"another form":   {table.dedupLayout(all, 100, OutputTensors, DedupPartial), opts},
		"presence":       {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true, Presence: true}},
		"rounded":        {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true, RoundIntegers: true}},
		"another allocator": {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true,
			Allocator: &countingAllocator{live: map[*byte]int{}}}},
		"no reuse": {layout(), Options{Workers: 1, MaxBatches: 1}},
		"other limits": {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true,
			Limits: format.Limits{StripeRows: 1 << 20}}},
		"less memory":  {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true, MemoryBudget: 1 << 20}},
		"more workers": {layout(), Options{Workers: 2, MaxBatches: 1, Reuse: true}},
		"info":         {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true, Info: true}},
		"kept slots":   {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true, KeepSlots: true}},
		"kept batches": {layout(), Options{Workers: 1, MaxBatches: 1, Reuse: true, KeepBatches: true}},
	} {
		ReleaseReused()
		first := read(layout(), opts)
		closed := execution.ClosedPools()
		if len(closed) != 1 {
			t.Fatalf("%s: %d pools are kept", name, len(closed))
		}
		s := open(t, x.l, x.opts)
		if s.x.Pools == closed[0] {
			t.Errorf("%s: the memory of another scanner is used", name)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if again := read(layout(), opts); again != first {
			t.Errorf("%s: what was kept is gone", name)
		}
	}
}

// Two scanners that are open at once share no memory, and a batch that is held over a close stays what it was while the
// next scanner reads.
func TestReuseSharesNothing(t *testing.T) {
	ReleaseReused()
	defer ReleaseReused()
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t, smallShape)
		features := drawProjection(t, table)
		opts := Options{Workers: 2, Reuse: true, KeepBatches: true, Presence: true, RoundIntegers: true}
		for range 3 {
			a := open(t, table.layout(features, 7, OutputTensors), opts)
			b := open(t, table.layout(features, 7, OutputTensors), opts)
			if a.x.Pools == b.x.Pools {
				t.Fatal("two open scanners share pools")
			}
			held, err := a.Next(context.Background())
			if err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			c := open(t, table.layout(features, 7, OutputTensors), opts)
			if c.x.Pools != a.x.Pools {
				t.Fatal("the pools of the closed scanner are not used")
			}
			for _, s := range []*Scanner{b, c} {
				row := 0
				for {
					x, err := s.Next(context.Background())
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					checkBatch(t, table, features, x, row)
					row += x.Rows
					x.Release()
				}
			}
			if held != nil {
				checkBatch(t, table, features, held, 0)
				held.Release()
			}
			for _, s := range []*Scanner{b, c} {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// What is kept of closed readers is bounded, and given up when it is released: also what comes back later.
func TestReuseIsBounded(t *testing.T) {
	ReleaseReused()
	defer ReleaseReused()
	table := plainTable(t, plainShape{dense: 2, sparse: 3, segments: 1, stripes: 2, stripeRows: 256, session: 4})
	all := indices(len(table.features))
	alloc := &countingAllocator{live: map[*byte]int{}}
	var held []*Batch
	for size := range execution.MaxClosedPools + 2 {
		s := open(t, table.dedupLayout(all, 100+size, OutputTensors, DedupKJT),
			Options{Reuse: true, Allocator: alloc, KeepBatches: true})
		b, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
		drain(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(execution.ClosedPools()); n != execution.MaxClosedPools {
		t.Errorf("%d pools are kept, want %d", n, execution.MaxClosedPools)
	}
	ReleaseReused()
	for _, b := range held {
		b.Release()
	}
	if err := alloc.check(); err != nil {
		t.Error(err)
	}
}

// What a closed scanner leaves has been trimmed to its share of the memory.
func TestReusedIsTrimmed(t *testing.T) {
	ReleaseReused()
	defer ReleaseReused()
	table := plainTable(t, plainShape{dense: 2, sparse: 3, segments: 1, stripes: 6, stripeRows: 256, session: 4})
	const memory = 1 << 14 // less than a stripe: what is needed is let through
	s := open(t, table.dedupLayout(indices(len(table.features)), 100, OutputTensors, DedupKJT),
		Options{Workers: 2, MemoryBudget: memory, Reuse: true})
	drain(t, s)
	p := s.x.Pools
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	h := p.Held()
	if batches := p.Batches.Counts().Bytes; batches > 3*memory/8 || h.ColumnBytes > 3*memory/8 ||
		h.BufferBytes > 2*memory/8 {
		t.Errorf("%d bytes of batches and %+v are kept, of %d", batches, h, memory)
	}
}

// Trimmed pools hold no more than they may.
func TestTrim(t *testing.T) {
	table := plainTable(t, plainShape{dense: 2, sparse: 3, segments: 1, stripes: 6, stripeRows: 256, session: 4})
	s := open(t, table.dedupLayout(indices(len(table.features)), 100, OutputTensors, DedupKJT), Options{Workers: 2})
	drain(t, s)
	p := s.x.Pools
	all := p.Held()
	if all.Columns == 0 || p.Batches.Counts().Idle == 0 || all.BufferBytes == 0 {
		t.Fatalf("%+v and %d batches are idle: nothing to trim", all, p.Batches.Counts().Idle)
	}
	const whole = math.MaxInt64
	p.Trim(whole, all.ColumnBytes, whole)
	if h := p.Held(); h != all {
		t.Errorf("%+v are left of %+v though all may stay", h, all)
	}
	p.Trim(whole, all.ColumnBytes/2, whole)
	if h := p.Held(); h.ColumnBytes > all.ColumnBytes/2 || h.Columns == 0 {
		t.Errorf("%+v are left of %+v", h, all)
	}
	p.Trim(0, 0, 0)
	if h, n := p.Held(), p.Batches.Counts(); h != (execution.Held{}) || n.Idle != 0 || n.Bytes != 0 {
		t.Errorf("%+v and %+v are left", h, n)
	}
	if got := drain(t, s); got != 0 {
		t.Fatalf("%d rows after the end", got)
	}
	if err := s.Seek(Position{}); err != nil {
		t.Fatal(err)
	}
	if rows := drain(t, s); uint64(rows) != s.Rows() {
		t.Errorf("%d rows after a trim, want %d", rows, s.Rows())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
