package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/processors"
	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// Options say how to read. They do not change which rows are read, except Split and EndBatch. The zero value works.
type Options struct {
	// MemoryBudget limits the bytes of fetched and decoded stripes. The stripes of one batch, or of one shuffle buffer,
	// are always admitted. The next shuffle buffer is read ahead if two fit. From an object store, fetched bytes may
	// take all of it beside the part of decoded stripes, where less would cost many more requests, and dictionaries
	// may exceed it. Default 256 MiB, or 512 MiB from an object store.
	MemoryBudget int64
	// MaxBatches limits the batches that are assembled and not yet released. When it is reached, Next waits for a
	// Release. At most 65536; default Workers + 4.
	MaxBatches int
	// AheadBytes limits the bytes of batches that are assembled ahead of Next; two always are. Below 0: only MaxBatches
	// limits them. Default: a quarter of MemoryBudget if MaxBatches is the default, else below 0.
	AheadBytes int64
	// KeepBatches: batches that Next returned do not count towards MaxBatches, so that a caller who holds many of them,
	// for instance until garbage collection, never blocks itself. Default: they count.
	KeepBatches bool
	// Workers is the number of goroutines that decode and assemble. At most 4096; default: one for each processor.
	Workers int
	// Requests limits the concurrent reads; MemoryBudget limits their bytes. There are as many as the store's latency
	// needs: another one starts when a read is waiting and none is idle. At most 65536; default 128.
	Requests int
	// GapBytes: ranges of an object with at most so many bytes between them are read as one. Below 0: only adjacent
	// ranges. Default: object.Gap of the store, 64 KiB on a disk and 256 KiB in an object store.
	GapBytes int64
	// RequestBytes: a longer range is read as several requests. Default 8 MiB.
	RequestBytes int64
	// Presence adds the presence bitmaps of tensors to batches.
	Presence bool
	// KeepSlots makes batches of a plan with DedupKJT as with DedupIKJT, for a caller that expands lists later, for
	// instance on a device.
	KeepSlots bool
	// RoundIntegers: an integer of a matrix that float32 cannot represent is rounded. Default: Next returns an
	// InexactError.
	RoundIntegers bool
	// Info adds Info to batches.
	Info bool
	// Split reads only that part of the plan; batches are counted from its first row. Default: the whole plan.
	Split *plan.Split
	// EndBatch, if not 0, is the batch before which the scanner ends. Stripes of later batches are not read.
	EndBatch uint64
	// Reuse keeps memory of a closed scanner, less than MemoryBudget, for a minute. The next scanner with the same
	// features and options uses it. This suits a job that opens a table for every epoch. Allocators are compared by ==.
	Reuse bool
	// Allocator provides the memory of batches. Default: Go's heap.
	Allocator memory.Allocator
	// Limits are the largest counts that stored metadata may have. Default: those of package format.
	Limits format.Limits
	// Lease says how the snapshots are protected from gc while the reader is open.
	Lease LeaseOptions
	// Usage says how the reading is recorded.
	Usage UsageOptions
}

// maxAhead is the largest Options.MaxBatches and Requests, maxWorkers the largest Workers. A reader allocates channels
// of these sizes and starts a goroutine for each worker; larger numbers could exhaust the memory.
const (
	maxAhead   = 1 << 16
	maxWorkers = 1 << 12
)

// Validate returns an error naming the first field that cannot be used.
func (o *Options) Validate() error {
	switch {
	case o.MemoryBudget < 0:
		return fmt.Errorf("memory budget %d: want 0 (default) or more", o.MemoryBudget)
	case o.MaxBatches < 0 || o.MaxBatches > maxAhead:
		return fmt.Errorf("max batches %d: want 0 (default) to %d", o.MaxBatches, maxAhead)
	case o.Workers < 0 || o.Workers > maxWorkers:
		return fmt.Errorf("workers %d: want 0 (default) to %d", o.Workers, maxWorkers)
	case o.Requests < 0 || o.Requests > maxAhead:
		return fmt.Errorf("requests %d: want 0 (default) to %d", o.Requests, maxAhead)
	case o.RequestBytes < 0:
		return fmt.Errorf("request bytes %d: want 0 (default) or more", o.RequestBytes)
	}
	return o.Lease.Validate()
}

// withDefaults returns o with the values of what is 0, to read from blobs.
func (o Options) withDefaults(blobs object.Store) (Options, error) {
	if err := o.Validate(); err != nil {
		return o, err
	}
	if o.MemoryBudget == 0 {
		o.MemoryBudget = 256 << 20
		if object.HighLatency(blobs) {
			o.MemoryBudget = 512 << 20
		}
	}
	if o.Workers == 0 {
		o.Workers = processors.Workers()
	}
	if o.MaxBatches == 0 {
		o.MaxBatches = o.Workers + 4
		if o.AheadBytes == 0 {
			o.AheadBytes = o.MemoryBudget / 4
		}
	}
	if o.Requests == 0 {
		o.Requests = 128
	}
	if o.GapBytes == 0 {
		o.GapBytes = object.Gap(blobs)
	}
	if o.RequestBytes == 0 {
		o.RequestBytes = 8 << 20
	}
	if o.Allocator == nil {
		o.Allocator = memory.Heap{}
	}
	return o, nil
}

// execution returns the options of executors of l.
func (o *Options) execution(l *Layout) execution.Options {
	return execution.Options{
		MemoryBudget: o.MemoryBudget, Workers: o.Workers, Requests: o.Requests, Limits: o.Limits,
		Reuse: o.Reuse,
		Batches: batch.Options{
			Allocator: o.Allocator, Presence: o.Presence, Round: o.RoundIntegers, Info: o.Info,
			Sessions: o.Info && l.sessionKey >= 0, Batches: o.MaxBatches, Keep: o.KeepBatches,
			KeepSlots: o.KeepSlots,
		},
	}
}

// sizes returns the sizes of fetches. An I/O task is small enough that several fit MemoryBudget.
func (o *Options) sizes() ioplan.FetchSizes {
	return ioplan.FetchSizes{Gap: o.GapBytes, Request: o.RequestBytes, Task: min(o.MemoryBudget/8, 32<<20),
		Memory: o.MemoryBudget}
}

// source returns what executors of l read.
func (l *Layout) source() *execution.Source {
	return &execution.Source{
		Plan: l.plan, Blobs: l.blobs, Features: l.features, Transforms: l.transformers, SessionKey: l.sessionKey,
		Weight:         l.weight,
		RowSelectRatio: l.rowSelectRatio, GatheredRun: l.gatheredRun,
	}
}

// newPools returns pools for readers that together have the memory, batches and workers of opts.
func (l *Layout) newPools(opts *Options) *execution.Pools {
	o := opts.execution(l)
	return execution.NewPools(l.source(), &o)
}

// rowRange returns the range of rows of the epoch's order to read.
func (o *Options) rowRange(l *Layout) (first, end uint64, err error) {
	s := o.Split
	if s == nil {
		return 0, l.Rows(), nil
	}
	if l.plan.Shuffle.Unit != plan.UnitNone {
		return 0, 0, plan.ErrSplitShuffled
	}
	if h := l.plan.Hash(); s.Plan != h {
		return 0, 0, fmt.Errorf("split: it is of plan %016x, not of this plan, %016x", s.Plan, h)
	}
	if s.FirstRow > l.Rows() || s.Rows > l.Rows()-s.FirstRow {
		return 0, 0, fmt.Errorf("split: rows %d+%d of a plan of %d rows", s.FirstRow, s.Rows, l.Rows())
	}
	return s.FirstRow, s.FirstRow + s.Rows, nil
}

// OpenPlan opens the plan's snapshot in the store and returns a Scanner of the plan's rows. The caller closes it.
func OpenPlan(ctx context.Context, store *storage.Store, plan *plan.Plan, opts Options) (*Scanner, error) {
	snap, err := store.At(ctx, plan.Table, plan.Snapshot)
	if err != nil {
		return nil, err
	}
	return Open(ctx, snap, plan, opts)
}

// Open returns a Scanner of the plan's rows. snap must be the plan's snapshot; it is used until Close. ctx is used only
// while opening. The caller closes the Scanner.
func Open(ctx context.Context, snap *storage.Snapshot, plan *plan.Plan, opts Options) (*Scanner, error) {
	return OpenView(ctx, &storage.View{Snapshot: snap}, plan, opts)
}

// OpenView is Open for a plan that was made of v. It does not open the snapshots of v again.
func OpenView(ctx context.Context, v *storage.View, plan *plan.Plan, opts Options) (*Scanner, error) {
	l, err := NewLayoutWith(ctx, v.Snapshot, plan, LayoutOptions{View: v})
	if err != nil {
		return nil, err
	}
	return l.Open(opts)
}

// Open returns a Scanner of the layout's rows.
func (l *Layout) Open(opts Options) (*Scanner, error) {
	opts, err := opts.withDefaults(l.blobs)
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
	s := l.newScanner(&opts, l.newPools(&opts), new(metering.Counters), first, end)
	s.hold = l.keep(&opts)
	s.session = l.record(&opts.Usage, s.x.Stats)
	return s, nil
}

// keep takes the leases of an open reader on the layout's snapshots.
func (l *Layout) keep(opts *Options) *lease.Hold {
	return lease.New(l.snapshots, &opts.Lease, l.plan.Branch != "", opts.Reuse)
}

// newScanner returns a Scanner of rows [first, end) of an epoch's order, with a stride of 1.
func (l *Layout) newScanner(opts *Options, p *execution.Pools, stats *metering.Counters, first, end uint64) *Scanner {
	s := &Scanner{
		layout: l, opts: *opts, x: execution.New(l.source(), opts.execution(l), p,
			stats), first: first, end: end, stride: 1,
		batches: batch.NewQuota(p.Batches, opts.MaxBatches),
	}
	s.batches.Limit(opts.AheadBytes)
	s.x.Sessions = l.plan.Shuffle.Unit == plan.UnitSession || p.Batches.HasSessions()
	return s
}

// A Scanner returns the batches of a plan, or of one split of it. Next, Seek, Position and Close are called from one
// goroutine at a time; Batch.Release and Stats from any.
type Scanner struct {
	layout     *Layout
	opts       Options
	x          *execution.Executor
	first, end uint64      // rows of an epoch's order
	stride     uint64      // from one batch to the next; those between are not assembled
	shared     bool        // its pools belong to a RankScanner
	hold       *lease.Hold // leases on the snapshots
	session    *usage.Session
	next       plan.Position
	run        *run         // nil until Next, and after an error, Seek and Close
	pending    *batch.Draft // received, but not yet assembled when a ctx ended
	tried      bool         // inline was called since the last Seek
	loaded     *segmentLoad // by inline, for the run; or nil
	err        error        // that every Next returns

	batches *batch.Quota
	emitted []*ioplan.Stripe // scratch of the run's emitStripes
	ready   atomic.Int64     // this scanner's part of Stats.Ready
}

// errClosed is returned by Next after Close.
var errClosed = errors.New("reader: the scanner is closed")

// Next returns the next Batch, or io.EOF after the last. The caller owns the Batch until its Release. Next waits while
// Options.MaxBatches are unreleased, and returns ctx.Err() if ctx ends first. After any other error every later call
// returns that error, until Seek.
func (s *Scanner) Next(ctx context.Context) (*Batch, error) {
	if s.err != nil {
		return nil, s.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var d *batch.Draft
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
		var own runError
		if errors.As(err, &own) {
			err = own.error
		}
		if own.error != nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			s.stop()
			err = expiredOr(ctx, err, s.layout.snapshots...)
			s.err = err
		}
		return nil, err
	}
	b := s.batches.Give(d)
	s.prefetched(-1)
	s.next.Batch += s.stride
	s.x.Stats.CountBatch(b)
	return b, nil
}

// begin starts a run at s.next.
func (s *Scanner) begin() {
	first := min(s.first+s.next.Batch*uint64(s.layout.plan.BatchSize), s.end)
	s.x.Fetched, s.x.Budget = s.layout.newBudgets(&s.opts)
	s.run = s.start(s.next.Epoch, first, s.end, s.next.Batch)
}

// receive waits until the next batch of the run is assembled.
func (s *Scanner) receive(ctx context.Context) (*batch.Draft, error) {
	defer metering.Since(time.Now(), &s.x.Stats.Stall)
	if s.pending == nil {
		select {
		case x, ok := <-s.run.out:
			if !ok {
				return nil, io.EOF
			}
			if x.err != nil {
				return nil, runError{x.err}
			}
			s.pending = x.draft
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case <-s.pending.Done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d := s.pending
	if d.Err != nil {
		return nil, runError{d.Err}
	}
	s.pending = nil
	return d, nil
}

// A runError is what ended a run. It may match the error of the context of Next, as a request that timed out does, and
// is not that: no batch comes after it.
type runError struct{ error }

// stop ends the run and drops the batches that it assembled.
func (s *Scanner) stop() {
	if s.run == nil {
		return
	}
	s.run.stop()
	s.run = nil
	if s.pending != nil {
		s.batches.Drop(s.pending)
		s.pending = nil
	}
	s.prefetched(-s.ready.Load())
}

// prefetched adds n to the count of batches that are assembled and not yet returned by Next.
func (s *Scanner) prefetched(n int64) {
	s.ready.Add(n)
	s.x.Stats.Ready.Add(n)
}

// Rows returns how many rows the scanner returns in an epoch.
func (s *Scanner) Rows() uint64 { return s.end - s.first }

// Batches returns how many batches the scanner returns in an epoch.
func (s *Scanner) Batches() uint64 { return batchCount(s.Rows(), s.layout.plan.BatchSize) }

// Plan returns the plan. Borrowed: do not write.
func (s *Scanner) Plan() *plan.Plan { return s.layout.plan }

// Position returns the position of the batch that Next returns next.
func (s *Scanner) Position() plan.Position { return s.next }

// Seek sets the position to p, without reading what comes before it. Without a shuffle all epochs have the same order.
// With one, the whole shuffle buffer of p is read, and before it the indexes of its group of segments: see package
// order. Batches that Next returned stay valid. Seek clears an error that Next returned.
func (s *Scanner) Seek(p plan.Position) error {
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

// Close stops all goroutines and waits for them. Batches that Next returned stay valid until their Release.
func (s *Scanner) Close() error {
	s.stop()
	if !s.shared && !errors.Is(s.err, errClosed) {
		s.x.Pools.Close()
	}
	s.err = errClosed
	s.session.End()
	s.hold.End()
	return nil
}

// Stats returns the counters. It may be called at any time, also after Close.
func (s *Scanner) Stats() Stats { return s.x.Stats.Stats() }

// makeBatch assembles the batch of a draft and releases its stripes.
func (s *Scanner) makeBatch(d *batch.Draft) {
	defer metering.Since(time.Now(), &s.x.Stats.Assemble)
	s.batches.Make(d)
	for i := range d.Pieces {
		// The pieces of a stripe are next to each other.
		if x := d.Pieces[i].Stripe; i == len(d.Pieces)-1 || d.Pieces[i+1].Stripe != x {
			s.x.ReleaseStripe(x)
		}
	}
	clear(d.Pieces)
	d.Pieces = d.Pieces[:0]
	if d.Err == nil {
		s.prefetched(1)
	}
}
