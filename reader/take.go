package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/usage"
)

// A Taker returns rows at positions of a plan's own order, which is the order of the table without the rows that are
// not selected. It reads the stripes of these rows, only of the plan's features, and decodes only what the rows need
// (format.StripeDecoder.DecodeRows):
//
//	rows     7 120034 7 16501 ...
//	sorted   7 16501 120034 ...              each once, so that each stripe is read once
//	stripes  [7] [16501] ... | [120034]      of several segments at a time; their ranges are joined and read together
//	batch    7 120034 7 16501 ...            in the order of rows
//
// Stripes that are used often are decoded whole and kept: see takeCache. They take up to half of Options.MemoryBudget.
// Loaded segments with their dictionaries take up to a quarter. Bytes that are read and not yet decoded take up to a
// quarter, or one I/O task. A Taker is safe for concurrent use; only one take runs at a time.
type Taker struct {
	layout *Layout
	opts   Options
	x      *execution.Executor

	// lock holds a token during Take and Close, and guards the fields below. Unlike with a mutex, waiting for it can
	// end with a ctx.
	lock    chan struct{}
	batches *batch.Quota
	cache   *takeCache
	gather  execution.PieceGatherer
	closed  bool

	hold    *lease.Hold // leases on the snapshots
	session *usage.Session
}

// A takenStripe is a stripe with the rows of it that a take needs.
type takenStripe struct {
	stripe *ioplan.Stripe
	rows   []int32 // of the stripe, ascending
	// whole: stripe has all rows of the stored stripe, and is kept; else it has only rows.
	whole bool
}

// Taker returns a Taker of the layout's rows. The caller closes it. Options.Split, EndBatch and Info must be empty.
// KeepBatches is always set. MaxBatches is how many released batches' memory is kept for reuse, default 1. The plan's
// Dedup must be DedupKJT; its Shuffle and BatchSize are ignored.
func (l *Layout) Taker(opts Options) (*Taker, error) {
	switch {
	case opts.Split != nil || opts.EndBatch != 0 || opts.Info:
		return nil, errors.New("take: leave Split, EndBatch and Info empty")
	case l.plan.Dedup != plan.DedupKJT:
		return nil, fmt.Errorf("take: the plan's dedup is %v: want %v", l.plan.Dedup, plan.DedupKJT)
	}
	opts.KeepBatches = true
	if opts.MaxBatches == 0 {
		opts.MaxBatches = 1
	}
	opts, err := opts.withDefaults(l.blobs)
	if err != nil {
		return nil, err
	}
	p := l.newPools(&opts)
	t := &Taker{
		layout: l, opts: opts, x: execution.New(l.source(), opts.execution(l), p, new(metering.Counters)),
		batches: batch.NewQuota(p.Batches, opts.MaxBatches), lock: make(chan struct{}, 1), hold: l.keep(&opts),
	}
	t.session = l.record(&opts.Usage, t.x.Stats)
	t.cache = newTakeCache(opts.MemoryBudget/4, opts.MemoryBudget/2, t.x.ReleaseStripe)
	return t, nil
}

// Take returns a Batch with the rows at the given positions, in the given order. Positions may repeat. The caller owns
// the Batch until its Release; its Index and FirstRow are 0. It returns an error that names the position if one is out
// of range, and ctx.Err() if ctx ends first, also while it waits for another take.
func (t *Taker) Take(ctx context.Context, rows []uint64) (*Batch, error) {
	if len(rows) > plan.MaxBatchSize {
		return nil, fmt.Errorf("take: %d rows: want at most %d at a time", len(rows), plan.MaxBatchSize)
	}
	n := t.layout.Rows()
	for _, r := range rows {
		if r >= n {
			return nil, fmt.Errorf("take: row %d: there are %d, counted from 0", r, n)
		}
	}
	select {
	case t.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.lock }()
	if t.closed {
		return nil, errClosed
	}
	ctx = object.CountTraffic(ctx, &t.x.Stats.Traffic)
	sorted := rows
	if !ascends(rows) {
		sorted = slices.Clone(rows)
		slices.Sort(sorted)
		sorted = slices.Compact(sorted)
	}
	stripes, err := t.read(ctx, sorted)
	defer func() {
		for i := range stripes {
			t.x.ReleaseStripe(stripes[i].stripe)
		}
	}()
	if err != nil {
		return nil, expiredOr(ctx, err, t.layout.snapshots...)
	}
	d := t.batches.Draft(ctx.Done())
	if d == nil {
		return nil, ctx.Err()
	}
	d.Index, d.FirstRow, d.Rows = 0, 0, len(rows)
	d.Pieces = t.gather.Gather(appendPieces(d.Pieces[:0], stripes, rows, sorted), len(stripes))
	t.batches.Make(d)
	t.gather.Release()
	if err := d.Err; err != nil {
		t.batches.Drop(d)
		return nil, err
	}
	t.x.Stats.CountBatch(d.Batch)
	return t.batches.Give(d), nil
}

// Close waits for a running take and frees the Taker's memory. Batches that Take returned stay valid until their
// Release.
func (t *Taker) Close() error {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	if t.closed {
		return nil
	}
	t.closed = true
	t.cache.segments.Clear()
	t.x.Pools.Close()
	t.session.End()
	t.hold.End()
	return nil
}

func ascends(rows []uint64) bool {
	for i := 1; i < len(rows); i++ {
		if rows[i] <= rows[i-1] {
			return false
		}
	}
	return true
}

// appendPieces appends the pieces of a batch with rows. stripes have the rows of sorted, which are rows without
// repeats.
func appendPieces(pieces []batch.Piece, stripes []takenStripe, rows, sorted []uint64) []batch.Piece {
	add := func(x *takenStripe, i, at int) {
		lo := i
		if x.whole {
			lo = int(x.rows[i])
		}
		if k := len(pieces) - 1; k >= 0 && pieces[k].Stripe == x.stripe && pieces[k].Hi == lo {
			pieces[k].Hi++
			return
		}
		pieces = append(pieces, batch.Piece{Stripe: x.stripe, Lo: lo, Hi: lo + 1, At: at})
	}
	if len(rows) == len(sorted) && (len(rows) == 0 || &rows[0] == &sorted[0]) {
		at := 0
		for k := range stripes {
			for i := range stripes[k].rows {
				add(&stripes[k], i, at)
				at++
			}
		}
		return pieces
	}
	first := make([]int, 0, len(stripes)) // by stripe: its first row's index in sorted
	end := 0
	for k := range stripes {
		first = append(first, end)
		end += len(stripes[k].rows)
	}
	for at, r := range rows {
		i, _ := slices.BinarySearch(sorted, r)
		k, ok := slices.BinarySearch(first, i)
		if !ok {
			k--
		}
		add(&stripes[k], i-first[k], at)
	}
	return pieces
}

// segmentRows are rows of a segment: sorted[from:to] of a take.
type segmentRows struct{ segment, from, to int }

// read returns the decoded stripes of the rows, in order. The caller releases them, after an error too.
func (t *Taker) read(ctx context.Context, sorted []uint64) (out []takenStripe, err error) {
	l := t.layout
	var parts []segmentRows
	for from := 0; from < len(sorted); {
		seg := l.segmentAt(sorted[from])
		to, _ := slices.BinarySearch(sorted, l.firstRow[seg+1])
		parts = append(parts, segmentRows{seg, from, to})
		from = to
	}
	var wave takeWave
	defer func() {
		// After an error, tasks of the wave were not read. Dictionaries of their segments may not be decoded.
		for _, g := range wave.segments {
			t.cache.drop(g)
		}
		for _, x := range wave.whole {
			t.cache.keep(x.segment, x.stripe, err)
		}
		t.drop(&wave)
	}()
	for some := range slices.Chunk(parts, indexReaders) {
		segments, err := t.open(ctx, some)
		if err != nil {
			return out, err
		}
		for i, part := range some {
			g := segments[i]
			for rows := sorted[part.from:part.to]; len(rows) > 0; {
				// Neighbouring stripes make one I/O task, within its memory limit.
				from, _ := g.StripesOf(rows[0], rows[0]+1)
				if s := t.cache.get(g, from); s != nil {
					t.x.Stats.StripeHits.Add(1)
					x := takenStripe{stripe: s, whole: true}
					x.rows, rows = rowsOf(rows, g.Starts[from], g.Starts[from+1])
					out = append(out, x)
					g.SelectRows(from, x.rows)
					continue
				}
				limit, last := from+1, 0
				for last < len(rows) {
					if rows[last] >= g.Starts[limit] {
						if limit == g.Stripes() || rows[last] >= g.Starts[limit+1] ||
							t.cache.stripes.Has(g.key(limit)) {
							break
						}
						limit++
					}
					last++
				}
				u := t.x.PlanTask(g.Segment, from, limit, t.opts.sizes())
				wave.tasks = append(wave.tasks, u)
				wave.segments = append(wave.segments, g)
				wave.bytes += int64(u.Stored)
				t.x.Stats.StripeMisses.Add(uint64(u.To - u.From))
				for k := u.From; k < u.To; k++ {
					x := takenStripe{stripe: t.x.Stripe(u, k), whole: t.cache.admit(g, k)}
					x.rows, rows = rowsOf(rows, g.Starts[k], g.Starts[k+1])
					u.Asked[k-u.From] = uint64(len(x.rows))
					if x.whole {
						wave.whole = append(wave.whole, wholeStripe{g, x.stripe})
					} else {
						x.stripe.DecodeAlone(x.rows)
					}
					out = append(out, x)
					wave.stripes = append(wave.stripes, x.stripe)
					g.SelectRows(k, x.rows)
				}
				if 4*wave.bytes >= t.opts.MemoryBudget {
					if err := t.flush(ctx, &wave); err != nil {
						return out, err
					}
				}
			}
		}
	}
	return out, t.flush(ctx, &wave)
}

// rowsOf splits ascending rows at end. It returns those before it as rows of the stripe [start, end), and the rest.
func rowsOf(rows []uint64, start, end uint64) (of []int32, rest []uint64) {
	n, _ := slices.BinarySearch(rows, end)
	of = make([]int32, n)
	for i, r := range rows[:n] {
		of[i] = int32(r - start)
	}
	return of, rows[n:]
}

// A takeWave is a set of I/O tasks that are read together.
type takeWave struct {
	tasks    []*ioplan.IOTask
	segments []*takeSegment // of each task
	stripes  []*ioplan.Stripe
	whole    []wholeStripe // of stripes, to be kept
	bytes    int64         // of the tasks, as they are stored
}

type wholeStripe struct {
	segment *takeSegment
	stripe  *ioplan.Stripe
}

// flush reads and decodes the wave, and empties it.
func (t *Taker) flush(ctx context.Context, w *takeWave) error {
	err := t.x.Load(ctx, w.tasks...)
	if err == nil {
		err = t.x.DecodeStripes(ctx, w.stripes, t.opts.Workers)
	} else { // dictionaries may be missing: load the segments again next time
		for _, g := range w.segments {
			t.cache.drop(g)
		}
	}
	for _, x := range w.whole {
		t.cache.keep(x.segment, x.stripe, err)
	}
	t.drop(w)
	return err
}

// drop returns the I/O tasks of the wave to their pool.
func (t *Taker) drop(w *takeWave) {
	for _, u := range w.tasks {
		t.x.PutTask(u)
	}
	*w = takeWave{tasks: w.tasks[:0], segments: w.segments[:0], stripes: w.stripes[:0], whole: w.whole[:0]}
}

// open returns the segments of parts. It loads those that are not cached concurrently.
func (t *Taker) open(ctx context.Context, parts []segmentRows) ([]*takeSegment, error) {
	out := make([]*takeSegment, len(parts))
	var missing []int
	for i, part := range parts {
		if out[i], _ = t.cache.segments.Get(part.segment); out[i] == nil {
			missing = append(missing, i)
		}
	}
	err := execution.Parallel(len(missing), indexReaders, func(k int) error {
		at := parts[missing[k]].segment
		g, err := t.layout.loadSegment(ctx, at)
		out[missing[k]] = &takeSegment{g, at}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, i := range missing {
		t.cache.put(out[i])
	}
	return out, nil
}

// Stats returns the counters. It may be called at any time, also after Close.
func (t *Taker) Stats() Stats { return t.x.Stats.Stats() }
