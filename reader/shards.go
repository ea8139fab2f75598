package reader

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/usage"
)

// Shards divides the batches of an epoch into Count shards: blocks of consecutive batches of the plan's order, whose
// lengths differ by at most one. The global order takes one batch from each shard in turn. Ranks take turns in it:
//
//	plan's order     0 1 2 | 3 4 5 | 6 7        Batches 8, Count 3
//	global order     0 3 6   1 4 7   2 5
//	rank 0 of 2      0   6     4     2          rank r of W takes every W-th
//
// The global order depends on the plan, the epoch and Count, not on the number of ranks. If that divides Count, each
// rank reads shards of its own. Then only the stripes, or shuffle buffers, at the end of a shard are read by two ranks.
type Shards struct {
	Batches uint64
	Count   int // at least 1
}

// Block returns the batches [first, end) of the plan's order that are in a shard.
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

// At returns the shard of a batch of the global order, and its position in the plan's order. j is less than Batches.
func (s Shards) At(j uint64) (shard int, batch uint64) {
	shard = int(j % uint64(s.Count))
	first, _ := s.Block(shard)
	return shard, first + j/uint64(s.Count)
}

// Ranks say which batches of the global order a RankScanner returns. World ranks take turns, from the batch on at which
// they started the epoch. A rank may divide its batches among Workers, which take turns in the same way:
//
//	started at 4, World 2     rank 0: 4 6 8 10    rank 1: 5 7 9 11
//	Workers 2                 of rank 0, worker 0: 4 8    worker 1: 6 10
type Ranks struct {
	Rank, World     int
	Worker, Workers int // Workers 0: 1
	Shards          int // Shards.Count
	// DropLast leaves out the last batch if it is not full, and the last round if it has no batch for each rank, so
	// that all ranks return equally many batches. Without it each row is returned once, and ranks differ by at most one
	// batch.
	DropLast bool
}

// firstTurn returns the RankScanner's first batch of the global order in an epoch that was started at begin, and the
// step from each of its batches to the next.
func (r Ranks) firstTurn(begin uint64) (first, step uint64) {
	return begin + uint64(r.Rank+r.World*r.Worker), uint64(r.World * max(r.Workers, 1))
}

// end returns the batch of the global order before which an epoch of so many batches, started at begin, ends for all
// ranks.
func (r Ranks) end(begin, batches uint64) uint64 {
	if !r.DropLast {
		return batches
	}
	return batches - (batches-begin)%uint64(r.World)
}

// Validate returns an error naming the first field that cannot be used.
func (r Ranks) Validate() error {
	switch {
	case r.World < 1:
		return fmt.Errorf("world size %d: want 1 or more", r.World)
	case r.Rank < 0 || r.Rank >= r.World:
		return fmt.Errorf("rank %d of world size %d: want 0 to %d", r.Rank, r.World, r.World-1)
	case r.World > MaxTurns || r.Workers > MaxTurns:
		return fmt.Errorf("world size %d, %d workers: want at most %d", r.World, r.Workers, MaxTurns)
	case r.Workers < 0 || r.Worker < 0 || r.Worker >= max(r.Workers, 1):
		return fmt.Errorf("worker %d of %d workers: want 0 to one less than workers", r.Worker, r.Workers)
	case r.Shards < 1 || r.Shards > MaxShards:
		return fmt.Errorf("%d shards: want 1 to %d", r.Shards, MaxShards)
	}
	return nil
}

// MaxShards is the largest Ranks.Shards, MaxTurns the largest World and Workers.
const (
	MaxShards = 1 << 16
	MaxTurns  = 1 << 20
)

// A RankScanner returns the batches of one rank in the global order. It has a Scanner for each shard that it reads; the
// Scanners share pools. Batches are assembled in the global order, some ahead of Next, so that the batch that is needed
// next is ready first. A shard's Scanner starts when its first batch is within that distance:
//
//	shard 0   [0]   .    .   [3]   .    .          returned up to turn 1, MaxBatches 3:
//	shard 1    .   [1]   .    .   (4)   .          (turn) is assembled or being assembled; the other scanners
//	shard 2    .    .   (2)   .    .    5          hold their stripes and wait for their turn
//
// Like a Scanner it is used from one goroutine at a time.
type RankScanner struct {
	layout   *Layout
	pools    *execution.Pools
	opts     Options // of each scanner
	ranks    Ranks
	shards   Shards
	scanners map[int]*Scanner
	epoch    uint64
	next     uint64 // batch of the global order
	step     uint64 // from one batch of this rank to the next
	granted  uint64 // batch of the global order before which this rank's batches may be assembled
	end      uint64 // batch of the global order before which the epoch ends
	closed   bool
	hold     *lease.Hold
	stats    *metering.Counters // of all scanners
	session  *usage.Session
}

// OpenRank returns a RankScanner at the start of epoch 0. The caller closes it. The limits of opts are for all its
// Scanners together, but each has the minimum that it needs. KeepBatches is always set; Split and EndBatch must be
// empty.
func (l *Layout) OpenRank(opts Options, ranks Ranks) (*RankScanner, error) {
	if err := ranks.Validate(); err != nil {
		return nil, err
	}
	if opts.Split != nil || opts.EndBatch != 0 {
		return nil, errors.New("ranks: they read whole epochs: leave Split and EndBatch empty")
	}
	opts, err := opts.withDefaults(l.blobs)
	if err != nil {
		return nil, err
	}
	opts.KeepBatches = true
	s := &RankScanner{layout: l, pools: l.newPools(&opts), opts: opts, ranks: ranks, scanners: map[int]*Scanner{},
		stats: new(metering.Counters)}
	s.shards = Shards{Batches: l.Batches(), Count: ranks.Shards}
	if ranks.DropLast {
		s.shards.Batches = l.Rows() / uint64(l.plan.BatchSize)
	}
	if err := s.Seek(plan.Position{}, 0); err != nil {
		return nil, err
	}
	own := ranks.Shards / gcd(ranks.Shards, int(s.step)) // shards that this rank reads
	s.opts.MemoryBudget = max(s.opts.MemoryBudget/int64(own), 1)
	s.opts.Requests = (s.opts.Requests + own - 1) / own
	s.hold = l.keep(&opts)
	s.session = l.record(&opts.Usage, s.stats)
	return s, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Batches returns how many batches the global order has.
func (s *RankScanner) Batches() uint64 { return s.shards.Batches }

// End returns the batch of the global order before which the epoch ends for all ranks: Batches, or with DropLast the
// end of the last full round.
func (s *RankScanner) End() uint64 { return s.end }

// Position returns the epoch, and the batch of the global order that Next returns next.
func (s *RankScanner) Position() plan.Position { return plan.Position{Epoch: s.epoch, Batch: s.next} }

// Seek makes Next return this rank's first batch from p.Batch on, in an epoch that the ranks started at begin. begin is
// at most p.Batch.
func (s *RankScanner) Seek(p plan.Position, begin uint64) error {
	switch {
	case s.closed:
		return errClosed
	case p.Batch > s.shards.Batches:
		return fmt.Errorf("position: batch %d of %d", p.Batch, s.shards.Batches)
	case begin > p.Batch:
		return fmt.Errorf("position: batch %d is before the batch at which the epoch was started, %d", p.Batch, begin)
	}
	for _, x := range s.scanners { // grant starts them again
		if err := x.Seek(plan.Position{}); err != nil {
			return err
		}
		x.batches.Gate()
	}
	s.epoch, s.end = p.Epoch, s.ranks.end(begin, s.shards.Batches)
	s.next, s.step = s.ranks.firstTurn(begin)
	if p.Batch > s.next {
		s.next += (p.Batch - s.next + s.step - 1) / s.step * s.step
	}
	s.granted = s.next
	return nil
}

// Start starts assembling the first batch, so that Next need not start it.
func (s *RankScanner) Start() error {
	if s.closed || s.granted != s.next {
		return nil
	}
	return s.grant(s.next + s.step) // only one, so that other shards do not delay it
}

// Next returns the rank's next batch and its position in the global order, or io.EOF after the epoch's last. The
// batch's Index is its position in the plan's order. Ownership, errors and ctx are as in Scanner.Next.
func (s *RankScanner) Next(ctx context.Context) (*Batch, uint64, error) {
	if s.closed {
		return nil, 0, errClosed
	}
	if s.next >= s.end {
		return nil, 0, io.EOF
	}
	if err := s.Start(); err != nil {
		return nil, 0, err
	}
	shard, batch := s.shards.At(s.next)
	b, err := s.scanners[shard].Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	if b.Index != batch {
		panic(fmt.Sprintf("reader: batch %d of shard %d in place of %d", b.Index, shard, batch))
	}
	at := s.next
	s.next += s.step
	return b, at, s.grant(s.next + s.ahead()*s.step)
}

// ahead returns how many batches may be assembled ahead of Next. Their size is known after the first one.
func (s *RankScanner) ahead() uint64 {
	n := int64(s.opts.MaxBatches)
	if size := int64(s.pools.Batches.BlockBytes()); size > 0 && s.opts.AheadBytes > 0 {
		n = min(n, max(s.opts.AheadBytes/size, 2))
	}
	return uint64(n)
}

// grant allows assembling the rank's batches before a batch of the global order, and starts their scanners.
func (s *RankScanner) grant(before uint64) error {
	for ; s.granted < min(before, s.end); s.granted += s.step {
		shard, batch := s.shards.At(s.granted)
		x := s.scanners[shard]
		if x == nil {
			x = s.open(shard)
			s.scanners[shard] = x
		}
		if x.run == nil && x.err == nil {
			if err := x.Seek(plan.Position{Epoch: s.epoch, Batch: batch}); err != nil {
				return err
			}
			x.begin()
		}
		x.batches.Grant()
	}
	return nil
}

// open returns a scanner of this rank's batches of a shard.
func (s *RankScanner) open(shard int) *Scanner {
	_, end := s.shards.Block(shard)
	rows := min(end*uint64(s.layout.plan.BatchSize), s.layout.Rows())
	x := s.layout.newScanner(&s.opts, s.pools, s.stats, 0, rows)
	x.shared = true
	x.stride = s.step / uint64(gcd(s.ranks.Shards, int(s.step)))
	x.batches.Gate()
	return x
}

// Stats returns the counters of all scanners together. It may be called at any time, also after Close.
func (s *RankScanner) Stats() Stats { return s.stats.Stats() }

// Close stops all work and waits for it. Batches given stay valid until their Release.
func (s *RankScanner) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, x := range s.scanners {
		errs = append(errs, x.Close())
	}
	s.pools.Close()
	s.session.End()
	s.hold.End()
	return errors.Join(errs...)
}
