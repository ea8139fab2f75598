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

// Shards deals the batches of an epoch to Count shards, each a block of consecutive batches of the plan's order, whose
// lengths differ by one at the most. The batches of all shards in turns are the global order, in which ranks take them:
//
//	plan's order     0 1 2 | 3 4 5 | 6 7        Batches 8, Count 3
//	global order     0 3 6   1 4 7   2 5
//	rank 0 of 2      0   6     4     2          rank r of W takes each W-th
//
// The global order depends on the plan, the epoch and Count: not on the number of ranks. Where that divides Count, each
// rank reads shards of its own, and so no bytes twice but those of the stripes, or shuffle buffers, that a shard's end
// cuts.
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

// At returns the shard of a batch of the global order, and its position in the plan's order. j is less than Batches.
func (s Shards) At(j uint64) (shard int, batch uint64) {
	shard = int(j % uint64(s.Count))
	first, _ := s.Block(shard)
	return shard, first + j/uint64(s.Count)
}

// Ranks say which batches of the global order a RankScanner gives. World ranks take turns, from the batch on at which
// they took up the epoch; a rank may deal its batches to Workers of its own, which take turns in the same way:
//
//	taken up at 4, World 2    rank 0: 4 6 8 10    rank 1: 5 7 9 11
//	Workers 2                 of rank 0, worker 0: 4 8    worker 1: 6 10
type Ranks struct {
	Rank, World     int
	Worker, Workers int // Workers 0: 1
	Shards          int // Shards.Count
	// DropLast: an epoch has no batch that is short, and ends before a round that has no batch for each rank, so that
	// all ranks give as many. Without it each row is given once, and ranks differ by one batch at the most.
	DropLast bool
}

// firstTurn returns the batch of the global order that the RankScanner gives first in an epoch taken up at begin, and
// how many further each next one is.
func (r Ranks) firstTurn(begin uint64) (first, step uint64) {
	return begin + uint64(r.Rank+r.World*r.Worker), uint64(r.World * max(r.Workers, 1))
}

// end returns the batch of the global order before which an epoch of so many batches, taken up at begin, ends for all
// ranks.
func (r Ranks) end(begin, batches uint64) uint64 {
	if !r.DropLast {
		return batches
	}
	return batches - (batches-begin)%uint64(r.World)
}

// Validate names the first field that makes no sense.
func (r Ranks) Validate() error {
	switch {
	case r.World < 1:
		return fmt.Errorf("world size %d: want 1 or more", r.World)
	case r.Rank < 0 || r.Rank >= r.World:
		return fmt.Errorf("rank %d of world size %d", r.Rank, r.World)
	case r.World > MaxTurns || r.Workers > MaxTurns:
		return fmt.Errorf("world size %d, %d workers: want %d at the most", r.World, r.Workers, MaxTurns)
	case r.Workers < 0 || r.Worker < 0 || r.Worker >= max(r.Workers, 1):
		return fmt.Errorf("worker %d of %d", r.Worker, r.Workers)
	case r.Shards < 1 || r.Shards > MaxShards:
		return fmt.Errorf("%d shards: want 1 to %d", r.Shards, MaxShards)
	}
	return nil
}

// MaxShards bounds Ranks.Shards, and MaxTurns World and Workers.
const (
	MaxShards = 1 << 16
	MaxTurns  = 1 << 20
)

// A RankScanner gives the batches of one rank in the global order. It has a Scanner for each shard that it reads of,
// which share pools. Batches are made in turns of the global order, some ahead of Next, so that what is
// ready is what is asked for soonest, and a shard is begun when its first batch comes into that reach:
//
//	shard 0   [0]   .    .   [3]   .    .          given up to turn 1, MaxBatches 3:
//	shard 1    .   [1]   .    .   (4)   .          (turn) is made or being made, the others' scanners
//	shard 2    .    .   (2)   .    .    5          hold their stripes and wait for their turn
//
// It is used from one goroutine, as a Scanner is.
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
	granted  uint64 // batch of this rank before which all may be made
	end      uint64 // batch of the global order before which the epoch ends
	closed   bool
	hold     *lease.Hold
	stats    *metering.Counters // of all scanners
	session  *usage.Session
}

// OpenRank returns a RankScanner at the start of epoch 0. The options are what all its scanners have in sum, but that
// each has what it needs at least. KeepBatches is always set; Split and EndBatch are not used here.
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
	own := ranks.Shards / gcd(ranks.Shards, int(s.step)) // shards that this rank comes by
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

// End returns the batch of the global order before which the epoch ends for all ranks: that of Batches, or with
// DropLast that before which the last full round ends.
func (s *RankScanner) End() uint64 { return s.end }

// Position returns the epoch, and the batch of the global order that Next gives.
func (s *RankScanner) Position() plan.Position { return plan.Position{Epoch: s.epoch, Batch: s.next} }

// Seek makes the first batch that is this rank's from p.Batch on the next, in an epoch that the ranks took up at begin,
// which is p.Batch or before.
func (s *RankScanner) Seek(p plan.Position, begin uint64) error {
	switch {
	case s.closed:
		return errClosed
	case p.Batch > s.shards.Batches:
		return fmt.Errorf("position: batch %d of %d", p.Batch, s.shards.Batches)
	case begin > p.Batch:
		return fmt.Errorf("position: batch %d of an epoch taken up at %d", p.Batch, begin)
	}
	for _, x := range s.scanners { // they begin anew when their turn comes
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

// Start begins to make the first batch, which Next would do else.
func (s *RankScanner) Start() error {
	if s.closed || s.granted != s.next {
		return nil
	}
	return s.grant(s.next + s.step) // it is not to wait for what other shards read
}

// Next returns the rank's next batch and its position in the global order, or io.EOF after the epoch's last; its Index
// is its position in the plan's order. Errors and ctx are as in Scanner.Next.
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

// ahead returns how many batches may be made before they are asked for. Their size is known once the first is made.
func (s *RankScanner) ahead() uint64 {
	n := int64(s.opts.MaxBatches)
	if size := int64(s.pools.Batches.BlockBytes()); size > 0 && s.opts.AheadBytes > 0 {
		n = min(n, max(s.opts.AheadBytes/size, 2))
	}
	return uint64(n)
}

// grant lets the rank's batches before a batch of the global order be made, and begins the scanners that have them.
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

// open returns the scanner of a shard, which gives those of its batches that are this rank's.
func (s *RankScanner) open(shard int) *Scanner {
	_, end := s.shards.Block(shard)
	rows := min(end*uint64(s.layout.plan.BatchSize), s.layout.Rows())
	x := s.layout.newScanner(&s.opts, s.pools, s.stats, 0, rows)
	x.shared = true
	x.stride = s.step / uint64(gcd(s.ranks.Shards, int(s.step)))
	x.batches.Gate()
	return x
}

// Stats adds up what the scanners have done. It may be called at any time, also after Close.
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
