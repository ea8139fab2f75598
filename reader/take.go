package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/lease"
	"github.com/dsistore/dsistore/reader/load"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/usage"
)

// A Taker gives rows at places of a plan's own order: those of the segments that it selects one after the other, which is the
// order of the table where it selects all. It reads the stripes that the rows are in, of the plan's features alone, and decodes
// of them what the rows need (format.StripeDecoder.DecodeRows):
//
//	rows     7 120034 7 16501 ...
//	sorted   7 16501 120034 ...              each once, so that each stripe is read once
//	stripes  [7] [16501] ... | [120034]      of some segments; their ranges joined and read together
//	batch    7 120034 7 16501 ...            as asked for
//
// Stripes that are asked for again and again are decoded whole and kept: takekeep.go says which. Of Options.MemoryBudget they
// have half; what was looked up of segments, with their dictionaries, has a quarter, and so have the bytes that are read and
// not yet decoded, or one I/O task (package load). A Taker is safe for concurrent use; takes wait for each other.
type Taker struct {
	executor

	// lock holds a token while somebody takes or closes, and guards what follows: unlike a mutex, whoever waits for it can give up.
	lock    chan struct{}
	batches *batch.Pool
	kept    *keptSegments
	views   takeViews
	closed  bool

	hold    *lease.Hold // of what it reads
	session *usage.Session
}

// A takenStripe is rows of a stripe, on their way to a batch.
type takenStripe struct {
	stripe *load.Stripe
	rows   []int32 // of the stripe, ascending
	// whole: stripe has all rows of the stripe that is stored, and is kept; else it has rows alone.
	whole bool
}

// Taker returns a Taker of the layout's rows. Options.Split, EndBatch and Info have no place here, and KeepBatches is always
// set; MaxBatches is how many batches' memory is kept, default 1. The plan's Dedup must be DedupKJT, its Shuffle and BatchSize
// do not matter.
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
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	p := l.newPools(&opts)
	t := &Taker{
		executor: l.newExecutor(&opts, p, new(counters)), batches: batch.NewPool(p.stock, opts.MaxBatches), lock: make(chan struct{}, 1), hold: l.keep(&opts),
	}
	t.session = l.record(&opts.Usage, t.stats)
	t.kept = newKeptSegments(opts.MemoryBudget/4, opts.MemoryBudget/2, t.releaseStripe)
	return t, nil
}

// Take returns a Batch with the rows at the given places, in the order given; the same place may be given again. Its Index and
// FirstRow are 0. The error of a place that the plan does not have names it. It returns ctx.Err() when ctx ends first, also while
// it waits for another take.
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
	sorted := rows
	if !ascends(rows) {
		sorted = slices.Clone(rows)
		slices.Sort(sorted)
		sorted = slices.Compact(sorted)
	}
	stripes, err := t.read(ctx, sorted)
	defer func() {
		for i := range stripes {
			t.releaseStripe(stripes[i].stripe)
		}
	}()
	if err != nil {
		return nil, err
	}
	d := t.batches.Draft(ctx.Done())
	if d == nil {
		return nil, ctx.Err()
	}
	d.Index, d.FirstRow, d.Rows = 0, 0, len(rows)
	d.Pieces = t.views.gather(appendPieces(d.Pieces[:0], stripes, rows, sorted), stripes)
	t.batches.Make(d)
	t.views.release()
	if err := d.Err; err != nil {
		t.batches.Drop(d)
		return nil, err
	}
	t.stats.countBatch(d.Batch)
	return t.batches.Give(d), nil
}

// Close gives back what the Taker keeps. Batches given stay valid until their Release.
func (t *Taker) Close() error {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	if t.closed {
		return nil
	}
	t.closed = true
	t.kept.segments.Clear()
	t.pools.close()
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

// appendPieces appends the pieces that make rows, out of the stripes that hold sorted.
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
	first := make([]int, 0, len(stripes)) // of sorted, of each stripe
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

// read returns the stripes that hold the rows, decoded, in order; after an error too, for the caller to release.
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
		for _, g := range wave.segments { // of units that were not read, as those that others' dictionaries come with
			t.kept.drop(g)
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
				// Stripes next to each other are a unit, as far as its memory goes.
				from, _ := g.StripesOf(rows[0], rows[0]+1)
				if s := g.stripes[from]; s != nil {
					t.stats.keptHits.Add(1)
					g.touched[from]++
					s.Users.Add(1)
					x := takenStripe{stripe: s, whole: true}
					x.rows, rows = rowsOf(rows, g.Starts[from], g.Starts[from+1])
					out = append(out, x)
					g.SelectRows(from, x.rows)
					continue
				}
				limit, last := from+1, 0
				for last < len(rows) {
					if rows[last] >= g.Starts[limit] {
						if limit == g.Segment.Stripes() || rows[last] >= g.Starts[limit+1] || g.stripes[limit] != nil {
							break
						}
						limit++
					}
					last++
				}
				u := t.planUnit(g.Segment, from, limit)
				wave.units = append(wave.units, u)
				wave.segments = append(wave.segments, g)
				wave.bytes += int64(u.Stored)
				t.stats.keptMisses.Add(uint64(u.To - u.From))
				for k := u.From; k < u.To; k++ {
					x := takenStripe{stripe: t.stripe(u, k), whole: t.kept.admit(g, k)}
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

// rowsOf returns those of ascending rows that lie in a stripe, [start, end) of the plan's order, as rows of the stripe, and
// the rest.
func rowsOf(rows []uint64, start, end uint64) (of []int32, rest []uint64) {
	n, _ := slices.BinarySearch(rows, end)
	of = make([]int32, n)
	for i, r := range rows[:n] {
		of[i] = int32(r - start)
	}
	return of, rows[n:]
}

// A takeWave is what is read together.
type takeWave struct {
	units    []*load.IOTask
	segments []*keptSegment // of each unit
	stripes  []*load.Stripe
	whole    []wholeStripe // of stripes, to be kept
	bytes    int64         // of the units, as they are stored
}

type wholeStripe struct {
	segment *keptSegment
	stripe  *load.Stripe
}

// flush reads and decodes the wave, and empties it.
func (t *Taker) flush(ctx context.Context, w *takeWave) error {
	err := t.load(ctx, w.units...)
	if err == nil {
		err = t.decodeStripes(ctx, w.stripes, t.opts.Workers)
	} else { // dictionaries may be missing: they are looked up anew
		for _, g := range w.segments {
			t.kept.drop(g)
		}
	}
	for _, x := range w.whole {
		if err != nil {
			t.kept.dropStripe(x.segment, x.stripe.Index)
			continue
		}
		x.stripe.Users.Add(1)
		t.kept.keep(x.segment, x.stripe)
	}
	t.drop(w)
	return err
}

// drop gives the units of the wave back.
func (t *Taker) drop(w *takeWave) {
	for _, u := range w.units {
		t.putUnit(u)
	}
	*w = takeWave{units: w.units[:0], segments: w.segments[:0], stripes: w.stripes[:0], whole: w.whole[:0]}
}

// open returns the segments of parts, looking up those that are not kept side by side.
func (t *Taker) open(ctx context.Context, parts []segmentRows) ([]*keptSegment, error) {
	out := make([]*keptSegment, len(parts))
	found := make([]*load.Segment, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		if out[i], _ = t.kept.segments.Get(part.segment); out[i] == nil {
			load := func() { found[i], errs[i] = t.layout.loadSegment(ctx, part.segment) }
			if len(parts) == 1 {
				load()
				continue
			}
			wg.Go(load)
		}
	}
	wg.Wait()
	if err := firstError(errs); err != nil {
		return nil, err
	}
	for i, part := range parts {
		if out[i] == nil {
			out[i] = newKeptSegment(part.segment, found[i])
			t.kept.segments.Put(part.segment, out[i], out[i].bytes())
		}
	}
	return out, nil
}

// Stats says what the Taker has read so far. It may be called at any time, also after Close.
func (t *Taker) Stats() Stats { return t.stats.stats() }
