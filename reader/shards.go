package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Shards deals the batches of an epoch to Count shards, each a block of consecutive batches of the plan's order, whose
// lengths differ by one at the most. The batches of all shards in turns are the global order, in which ranks take them:
//
//	plan's order     0 1 2 | 3 4 5 | 6 7        Batches 8, Count 3
//	global order     0 3 6   1 4 7   2 5
//	rank 0 of 2      0   6     4     2          rank r of W takes each W-th
//
// The global order depends on the plan, the epoch and Count: not on the number of ranks. Where that divides Count, each rank
// reads shards of its own, and so no bytes twice but those of the stripes, or windows of a shuffle, that a shard's end cuts.
type Shards struct {
	Batches uint64
	Count   int // at least 1
}

// Block returns the batches [first, end) of the plan's order that a shard has.
func (s Shards) Block(shard int) (first, end uint64) {
	n, c := s.Batches/uint64(s.Count), uint64(shard)
	more := s.Batches % uint64(s.Count) // the first so many shards have one more
	first = c*n + min(c, more)
	end = first + n
	if c < more {
		end++
	}
	return first, end
}

// At returns the shard of a batch of the global order, and its place in the plan's order. j is less than Batches.
func (s Shards) At(j uint64) (shard int, batch uint64) {
	shard = int(j % uint64(s.Count))
	first, _ := s.Block(shard)
	return shard, first + j/uint64(s.Count)
}

// Ranks say which batches of the global order a RankScanner gives: those from Rank on, each World-th.
type Ranks struct {
	Rank, World int
	Shards      int  // Shards.Count
	DropLast    bool // an epoch ends before a batch that is short
}

// Validate names the first field that makes no sense.
func (r Ranks) Validate() error {
	switch {
	case r.World < 1:
		return fmt.Errorf("world size %d: want 1 or more", r.World)
	case r.Rank < 0 || r.Rank >= r.World:
		return fmt.Errorf("rank %d of world size %d", r.Rank, r.World)
	case r.Shards < 1 || r.Shards > MaxShards:
		return fmt.Errorf("%d shards: want 1 to %d", r.Shards, MaxShards)
	}
	return nil
}

// MaxShards bounds Ranks.Shards.
const MaxShards = 1 << 16

// skipBatches is how many batches are read and dropped rather than sought over: a Seek reads a stripe, or a window of a
// shuffle, anew.
const skipBatches = 16

// A RankScanner gives the batches of one rank in the global order. It has a Scanner for each shard that it reads of, which
// share the memory of its options. It is used from one goroutine, as a Scanner is.
type RankScanner struct {
	layout   *Layout
	opts     Options
	ranks    Ranks
	shards   Shards
	scanners map[int]*Scanner
	epoch    uint64
	next     uint64 // batch of the global order
	closed   bool
}

// OpenRank returns a RankScanner at the start of epoch 0. Of the options, memory and batches are what all its scanners
// have in sum; Split and EndBatch have no place here.
func (l *Layout) OpenRank(opts Options, ranks Ranks) (*RankScanner, error) {
	if err := ranks.Validate(); err != nil {
		return nil, err
	}
	if opts.Split != nil || opts.EndBatch != 0 {
		return nil, errors.New("ranks: they read whole epochs: leave Split and EndBatch empty")
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &RankScanner{layout: l, opts: opts, ranks: ranks, scanners: map[int]*Scanner{}, next: uint64(ranks.Rank)}
	s.shards = Shards{Batches: l.Batches(), Count: ranks.Shards}
	if ranks.DropLast {
		s.shards.Batches = l.Rows() / uint64(l.plan.BatchSize)
	}
	own := ranks.Shards / gcd(ranks.Shards, ranks.World) // shards that this rank comes by
	s.opts.MemoryBudget = max(s.opts.MemoryBudget/int64(own), 1)
	s.opts.MaxBatches = max(s.opts.MaxBatches/own, 2)
	return s, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Batches returns how many batches an epoch has for all ranks.
func (s *RankScanner) Batches() uint64 { return s.shards.Batches }

// Position returns the epoch, and the batch of the global order that Next gives.
func (s *RankScanner) Position() Position { return Position{Epoch: s.epoch, Batch: s.next} }

// Seek makes the rank's first batch of the global order from p.Batch on the next.
func (s *RankScanner) Seek(p Position) error {
	if s.closed {
		return errClosed
	}
	if p.Batch > s.shards.Batches {
		return fmt.Errorf("position: batch %d of %d", p.Batch, s.shards.Batches)
	}
	rank, world := uint64(s.ranks.Rank), uint64(s.ranks.World)
	s.epoch, s.next = p.Epoch, rank
	if p.Batch > rank {
		s.next = rank + (p.Batch-rank+world-1)/world*world
	}
	return nil
}

// Next returns the rank's next batch and its place in the global order, or io.EOF after the epoch's last; its Index is its
// place in the plan's order. Errors and ctx are as in Scanner.Next.
func (s *RankScanner) Next(ctx context.Context) (*Batch, uint64, error) {
	if s.closed {
		return nil, 0, errClosed
	}
	if s.next >= s.shards.Batches {
		return nil, 0, io.EOF
	}
	shard, batch := s.shards.At(s.next)
	scanner, err := s.scanner(shard)
	if err != nil {
		return nil, 0, err
	}
	b, err := s.read(ctx, scanner, batch)
	if err != nil {
		return nil, 0, err
	}
	at := s.next
	s.next += uint64(s.ranks.World)
	return b, at, nil
}

func (s *RankScanner) scanner(shard int) (*Scanner, error) {
	if x := s.scanners[shard]; x != nil {
		return x, nil
	}
	opts := s.opts
	_, opts.EndBatch = s.shards.Block(shard)
	x, err := s.layout.Open(opts)
	if err != nil {
		return nil, err
	}
	s.scanners[shard] = x
	return x, nil
}

// read returns a batch of the plan's order from x, going there if need be.
func (s *RankScanner) read(ctx context.Context, x *Scanner, batch uint64) (*Batch, error) {
	at, want := x.Position(), Position{Epoch: s.epoch, Batch: batch}
	near := x.run != nil && at.Epoch == want.Epoch && at.Batch <= batch && batch-at.Batch <= skipBatches
	if at != want && !near || x.err != nil {
		if err := x.Seek(want); err != nil {
			return nil, err
		}
	}
	for {
		b, err := x.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b.Index == batch {
			return b, nil
		}
		b.Release()
	}
}

// Stats adds up what the scanners have done.
func (s *RankScanner) Stats() Stats {
	all := make([]*counters, 0, len(s.scanners))
	for _, x := range s.scanners {
		all = append(all, &x.stats)
	}
	return statsOf(all...)
}

// Close stops all work and waits for it. Batches given stay valid until their Release.
func (s *RankScanner) Close() error {
	s.closed = true
	var errs []error
	for _, x := range s.scanners {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}
