package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/access"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
)

// Options say how to read. They do not change what is read. The zero value works.
type Options struct {
	// MemoryBudget bounds the bytes of stripes fetched and decoded. The stripes that one batch needs, or one window of a
	// shuffle, are always let through; a window is read ahead where two fit. Default 256 MiB.
	MemoryBudget int64
	// MaxBatches bounds the batches that are made and not yet released; Next waits for a Release beyond it. Default 4
	// more than Workers.
	MaxBatches int
	// KeepBatches: the batches that Next gave do not count among MaxBatches, so that a caller who holds many, as one whose
	// garbage collector releases them does, never waits for itself. Default: they count.
	KeepBatches bool
	// Workers decode and assemble. Default GOMAXPROCS.
	Workers int
	// Requests bounds the reads in flight, beside MemoryBudget, which bounds their bytes. There are as many as the store's latency
	// asks for: one more begins when a read waits and none is done. Default 64.
	Requests int
	// GapBytes: ranges of an object that lie no further apart are read as one. Below 0: only those that touch. Default
	// 64 KiB.
	GapBytes int64
	// RequestBytes: a longer range is read as several requests. Default 8 MiB.
	RequestBytes int64
	// Presence asks for the presence bitmaps of tensors.
	Presence bool
	// RoundIntegers: an integer of a matrix that float32 does not hold becomes the nearest number, as where nobody looks at the values.
	// Default: the batch is an InexactError.
	RoundIntegers bool
	// Info asks for the Info of batches.
	Info bool
	// Split reads only that part of the plan; batches are counted from its first row. Default: the whole plan.
	Split *Split
	// EndBatch, when it is not 0, is the batch before which the scanner ends: what only later ones need is not read.
	EndBatch uint64
	// Reuse keeps memory of a closed scanner for a minute, less than MemoryBudget: the next one with the same features and
	// options goes on with it, as a job does that opens a table for every epoch. Allocators are told apart by ==.
	Reuse bool
	// Allocator provides the memory of batches. Default: Go's heap.
	Allocator Allocator
	// Limits bound what stored metadata may claim. Default: format's.
	Limits format.Limits
	// Lease says how what is read is kept from gc while the reader is open.
	Lease LeaseOptions
	// Access says how it is recorded who reads what.
	Access AccessOptions
}

// Validate names the first field that no reader can have.
func (o *Options) Validate() error {
	switch {
	case o.MemoryBudget < 0:
		return fmt.Errorf("memory budget %d: want 0 (default) or more", o.MemoryBudget)
	case o.MaxBatches < 0:
		return fmt.Errorf("max batches %d: want 0 (default) or more", o.MaxBatches)
	case o.Workers < 0:
		return fmt.Errorf("workers %d: want 0 (default) or more", o.Workers)
	case o.Requests < 0:
		return fmt.Errorf("requests %d: want 0 (default) or more", o.Requests)
	case o.RequestBytes < 0:
		return fmt.Errorf("request bytes %d: want 0 (default) or more", o.RequestBytes)
	}
	return o.Lease.Validate()
}

func (o Options) withDefaults() (Options, error) {
	if err := o.Validate(); err != nil {
		return o, err
	}
	if o.MemoryBudget == 0 {
		o.MemoryBudget = 256 << 20
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.MaxBatches == 0 {
		o.MaxBatches = o.Workers + 4
	}
	if o.Requests == 0 {
		o.Requests = 64
	}
	if o.GapBytes == 0 {
		o.GapBytes = 64 << 10
	}
	if o.RequestBytes == 0 {
		o.RequestBytes = 8 << 20
	}
	if o.Allocator == nil {
		o.Allocator = heapAllocator{}
	}
	return o, nil
}

// unitBytes is the memory that a unit may take, stored and decoded: small enough that several are under way.
func (o *Options) unitBytes() int64 { return min(o.MemoryBudget/8, 32<<20) }

// rowRange returns the rows of an epoch's order to read.
func (o *Options) rowRange(l *Layout) (first, end uint64, err error) {
	s := o.Split
	if s == nil {
		return 0, l.Rows(), nil
	}
	if l.plan.Shuffle.Unit != UnitNone {
		return 0, 0, errSplitShuffled
	}
	if h := l.plan.Hash(); s.Plan != h {
		return 0, 0, fmt.Errorf("split: it is of plan %016x, not of %016x", s.Plan, h)
	}
	if s.FirstRow > l.Rows() || s.Rows > l.Rows()-s.FirstRow {
		return 0, 0, fmt.Errorf("split: rows %d+%d of a plan of %d rows", s.FirstRow, s.Rows, l.Rows())
	}
	return s.FirstRow, s.FirstRow + s.Rows, nil
}

// OpenPlan finds the plan's snapshot in the store and returns a Scanner of its rows.
func OpenPlan(ctx context.Context, store *storage.Store, plan *Plan, opts Options) (*Scanner, error) {
	snap, err := store.At(ctx, plan.Table, plan.Snapshot)
	if err != nil {
		return nil, err
	}
	return Open(ctx, snap, plan, opts)
}

// Open returns a Scanner of the plan's rows. The snapshot must be the plan's; it stays in use until Close. ctx is for
// opening only.
func Open(ctx context.Context, snap *storage.Snapshot, plan *Plan, opts Options) (*Scanner, error) {
	return OpenView(ctx, &storage.View{Snapshot: snap}, plan, opts)
}

// OpenView is Open for a plan that was made of v, whose snapshots need not be opened again.
func OpenView(ctx context.Context, v *storage.View, plan *Plan, opts Options) (*Scanner, error) {
	l, err := NewLayoutWith(ctx, v.Snapshot, plan, LayoutOptions{View: v})
	if err != nil {
		return nil, err
	}
	return l.Open(opts)
}

// Open returns a Scanner of the layout's rows.
func (l *Layout) Open(opts Options) (*Scanner, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	first, end, err := opts.rowRange(l)
	if err != nil {
		return nil, err
	}
	if size := uint64(l.plan.BatchSize); opts.EndBatch != 0 && opts.EndBatch < batchCount(end-first, l.plan.BatchSize) {
		end = first + opts.EndBatch*size
	}
	s := l.newScanner(&opts, l.newPools(&opts), new(counters), first, end)
	s.hold = l.keep(&opts)
	s.session = l.record(&opts.Access, s.stats)
	return s, nil
}

// newScanner returns a Scanner of rows [first, end) of an epoch's order, with all their batches.
func (l *Layout) newScanner(opts *Options, p *pools, stats *counters, first, end uint64) *Scanner {
	return &Scanner{
		pools: p, layout: l, opts: *opts, first: first, end: end, stride: 1, stats: stats,
		batches:  newBatchPool(p.stock, opts.MaxBatches),
		sessions: l.plan.Shuffle.Unit == UnitSession || p.stock.layout.sessions,
	}
}

// A Scanner gives the batches of a plan, or of one split of it. Next, Seek, Position and Close are called from one
// goroutine; Batch.Release and Stats from any.
type Scanner struct {
	*pools
	layout     *Layout
	opts       Options
	first, end uint64 // rows of an epoch's order
	sessions   bool   // stripes are asked for their sessions
	stride     uint64 // from one batch to the next: those between are not made
	shared     bool   // its pools are a RankScanner's
	hold       *hold  // of what it reads
	session    *access.Session
	next       Position
	run        *run         // nil until Next, and after an error, Seek and Close
	pending    *draft       // received, but not yet made when a ctx ended
	tried      bool         // inline was, since the last Seek
	loaded     *segmentLoad // by inline, for the run; or nil
	err        error        // what every Next returns

	batches *batchPool
	budget  *budget   // of the run
	emitted []*stripe // scratch of the run's emitStripes
	stats   *counters
	ready   atomic.Int64 // of the stats' those that are of this scanner
}

// errClosed is what Next returns after Close.
var errClosed = errors.New("reader: the scanner is closed")

// Next returns the next Batch, or io.EOF after the last. It waits while Options.MaxBatches are unreleased, and returns
// ctx.Err() when ctx ends first. After any other error every later call returns that error, until Seek.
func (s *Scanner) Next(ctx context.Context) (*Batch, error) {
	if s.err != nil {
		return nil, s.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var d *draft
	var err error
	if s.run == nil {
		d, err = s.inline(ctx)
	}
	if d == nil && err == nil {
		if s.run == nil {
			s.begin()
		}
		d, err = s.receive(ctx)
	}
	if err != nil {
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			s.stop()
			s.err = err
		}
		return nil, err
	}
	b := s.batches.give(d)
	s.prefetched(-1)
	s.next.Batch += s.stride
	s.stats.batches.Add(1)
	s.stats.rows.Add(uint64(b.Rows))
	s.stats.slotRows.Add(b.SlotRows)
	s.stats.slots.Add(b.Slots)
	return b, nil
}

// begin starts a run at the position.
func (s *Scanner) begin() {
	first := min(s.first+s.next.Batch*uint64(s.layout.plan.BatchSize), s.end)
	s.budget = newBudget(s.opts.MemoryBudget)
	s.run = s.start(s.next.Epoch, first, s.end, s.next.Batch)
}

// receive waits for the next batch of the run, which is made.
func (s *Scanner) receive(ctx context.Context) (*draft, error) {
	start := time.Now()
	defer func() { s.stats.stall.Add(int64(time.Since(start))) }()
	if s.pending == nil {
		select {
		case x, ok := <-s.run.out:
			if !ok {
				return nil, io.EOF
			}
			if x.err != nil {
				return nil, x.err
			}
			s.pending = x.draft
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-s.pending.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d := s.pending
	if d.err != nil {
		return nil, d.err
	}
	s.pending = nil
	return d, nil
}

// stop ends the run and takes back what it made.
func (s *Scanner) stop() {
	if s.run == nil {
		return
	}
	s.run.stop()
	s.run = nil
	if s.pending != nil {
		s.batches.drop(s.pending)
		s.pending = nil
	}
	s.prefetched(-s.ready.Load())
}

// prefetched counts n batches more that are made and not yet given.
func (s *Scanner) prefetched(n int64) {
	s.ready.Add(n)
	s.stats.ready.Add(n)
}

// Rows returns how many rows the scanner gives in an epoch.
func (s *Scanner) Rows() uint64 { return s.end - s.first }

// Batches returns how many batches the scanner gives in an epoch.
func (s *Scanner) Batches() uint64 { return batchCount(s.Rows(), s.layout.plan.BatchSize) }

// Plan returns the plan. Borrowed: do not write.
func (s *Scanner) Plan() *Plan { return s.layout.plan }

// Position returns the position of the batch that Next gives.
func (s *Scanner) Position() Position { return s.next }

// Seek makes p the position, without reading what comes before it. Without a shuffle an epoch has the order of every other;
// with one, the window that p lies in is read whole, after the indexes of its group of segments: see order.go. Batches
// given stay valid; an error that Next returned is forgotten.
func (s *Scanner) Seek(p Position) error {
	if errors.Is(s.err, errClosed) {
		return s.err
	}
	if n := s.Batches(); p.Batch > n {
		return fmt.Errorf("position: batch %d of %d", p.Batch, n)
	}
	s.stop()
	s.next, s.err, s.tried = p, nil, false
	return nil
}

// Close stops all work and waits for it. Batches given stay valid until their Release.
func (s *Scanner) Close() error {
	s.stop()
	if !s.shared && !errors.Is(s.err, errClosed) {
		s.pools.close()
	}
	s.err = errClosed
	s.session.End()
	s.hold.end()
	return nil
}

func (s *Scanner) getUnit() *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := len(s.units) - 1; k >= 0 {
		u := s.units[k]
		s.units = s.units[:k]
		return u
	}
	return new(unit)
}

// putUnit takes back a unit whose bytes nobody needs any more.
func (s *Scanner) putUnit(u *unit) {
	for i := range u.ranges {
		if u.ranges[i].buf != nil {
			s.buffers.put(u.ranges[i].buf)
			u.ranges[i].buf = nil
		}
	}
	s.budget.give(u.taken)
	u.segment.dictionaries.leave(s.budget)
	u.segment, u.taken = nil, 0
	clear(u.stripes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.units = append(s.units, u)
}

func (s *Scanner) getDecoder() *format.StripeDecoder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := len(s.decoders) - 1; k >= 0 {
		d := s.decoders[k]
		s.decoders = s.decoders[:k]
		return d
	}
	return format.NewStripeDecoder(s.opts.Limits)
}

func (s *Scanner) putDecoder(d *format.StripeDecoder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decoders = append(s.decoders, d)
}

func (s *Scanner) getStripe() *stripe {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := len(s.stripes) - 1; k >= 0 {
		t := s.stripes[k]
		s.stripes = s.stripes[:k]
		return t
	}
	return &stripe{columns: make([]*decoded, len(s.columns)), ready: make(chan struct{}, 1)}
}

// releaseStripe is called by each user of a stripe when it is done with it; the last one takes the stripe back.
func (s *Scanner) releaseStripe(t *stripe) {
	if t.users.Add(-1) > 0 {
		return
	}
	for i, c := range t.columns {
		if c != nil {
			s.columns[i].put(c)
			t.columns[i] = nil
		}
	}
	for i, c := range t.inverses {
		s.inverses.put(c)
		t.inverses[i] = nil
	}
	t.inverses = t.inverses[:0]
	s.budget.give(t.taken)
	t.taken, t.segment, t.window, t.err = 0, nil, nil, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stripes = append(s.stripes, t)
}

// counters are what Stats reports, of one scanner or of several that are one reader. Times are in nanoseconds.
type counters struct {
	rows, batches                 atomic.Uint64
	slotRows, slots               atomic.Uint64
	needed, overRead              atomic.Uint64
	requests                      atomic.Uint64
	decodedRows, decodedSlots     atomic.Uint64
	decode, assemble, stall, read atomic.Int64
	ready                         atomic.Int64  // batches made and not yet given
	keptHits, keptMisses          atomic.Uint64 // of a Taker
	meter                         meter
}

// count counts a unit that is to be read.
func (c *counters) count(u *unit) {
	c.needed.Add(u.needed)
	c.overRead.Add(u.overRead)
	c.meter.count(u)
}

// Stats are what a Scanner has done so far.
type Stats struct {
	Rows, Batches   uint64
	BytesNeeded     uint64 // of the projected stripes
	BytesOverRead   uint64 // of the gaps between them that were read too
	Requests        uint64
	DecodeSeconds   float64 // over all workers: checksum, decode, widen
	AssembleSeconds float64 // over all workers: making batches of stripes
	ReadSeconds     float64 // over all requests: until the bytes were there
	StallSeconds    float64 // Next waited
	// DecodedRows and DecodedSlots are those of the feature stripes decoded, added up, and DedupeFactor is the one over the other; 1 without
	// duplicates.
	DecodedRows, DecodedSlots uint64
	DedupeFactor              float64
	// SlotRows and Slots are those of the batches, added up, and EmittedFactor is the one over the other: 1 where the plan's
	// Dedup is DedupKJT.
	SlotRows, Slots uint64
	EmittedFactor   float64
	// Prefetched is how many batches are made now and were not yet given.
	Prefetched int64
	// StripeHits and StripeMisses are stripes that a Taker found decoded, and that it had to read.
	StripeHits, StripeMisses uint64
}

// Stats may be called at any time, also after Close.
func (s *Scanner) Stats() Stats { return s.stats.stats() }

func (c *counters) stats() Stats {
	out := Stats{
		Rows: c.rows.Load(), Batches: c.batches.Load(), BytesNeeded: c.needed.Load(), BytesOverRead: c.overRead.Load(), Requests: c.requests.Load(),
		DecodeSeconds: time.Duration(c.decode.Load()).Seconds(), AssembleSeconds: time.Duration(c.assemble.Load()).Seconds(),
		ReadSeconds: time.Duration(c.read.Load()).Seconds(), StallSeconds: time.Duration(c.stall.Load()).Seconds(),
		SlotRows: c.slotRows.Load(), Slots: c.slots.Load(), DedupeFactor: 1, EmittedFactor: 1,
		DecodedRows: c.decodedRows.Load(), DecodedSlots: c.decodedSlots.Load(),
		Prefetched: c.ready.Load(), StripeHits: c.keptHits.Load(), StripeMisses: c.keptMisses.Load(),
	}
	if out.Slots > 0 {
		out.EmittedFactor = float64(out.SlotRows) / float64(out.Slots)
	}
	if out.DecodedSlots > 0 {
		out.DedupeFactor = float64(out.DecodedRows) / float64(out.DecodedSlots)
	}
	return out
}
