package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/object"
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
// not yet decoded, or one unit (unit.go). A Taker is safe for concurrent use; takes wait for each other.
type Taker struct {
	layout *Layout

	// lock holds a token while somebody takes or closes, and guards what follows: unlike a mutex, whoever waits for it can give up.
	lock   chan struct{}
	s      *Scanner // its pools and options: it never runs
	kept   keptSegments
	views  takeViews
	closed bool

	reading chan struct{} // holds a token for each request under way: a sieve fetches several units at once
}

// A takenStripe is rows of a stripe, on their way to a batch.
type takenStripe struct {
	unit   *unit // nil: the stripe is decoded
	stripe *stripe
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
	case l.plan.Dedup != DedupKJT:
		return nil, fmt.Errorf("take: the plan's dedup is %v: want %v", l.plan.Dedup, DedupKJT)
	}
	opts.KeepBatches = true
	if opts.MaxBatches == 0 {
		opts.MaxBatches = 1
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := l.newScanner(&opts, l.newPools(&opts), new(counters), 0, 0)
	s.budget = newBudget(opts.MemoryBudget)
	s.hold = l.keep(&opts)
	s.session = l.record(&opts.Access, s.stats)
	t := &Taker{layout: l, lock: make(chan struct{}, 1), s: s, reading: make(chan struct{}, opts.Requests)}
	t.kept = keptSegments{max: opts.MemoryBudget / 4, maxStripes: opts.MemoryBudget / 2, release: s.releaseStripe}
	return t, nil
}

// Take returns a Batch with the rows at the given places, in the order given; the same place may be given again. Its Index and
// FirstRow are 0. The error of a place that the plan does not have names it. It returns ctx.Err() when ctx ends first, also while
// it waits for another take.
func (t *Taker) Take(ctx context.Context, rows []uint64) (*Batch, error) {
	if len(rows) > MaxBatchSize {
		return nil, fmt.Errorf("take: %d rows: want at most %d at a time", len(rows), MaxBatchSize)
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
			t.s.releaseStripe(stripes[i].stripe)
		}
	}()
	if err != nil {
		return nil, err
	}
	d := t.s.batches.draft(ctx.Done())
	if d == nil {
		return nil, ctx.Err()
	}
	b := t.s.batches.take()
	b.Index, b.FirstRow, b.Rows = 0, 0, len(rows)
	b.pieces = t.views.condense(appendPieces(b.pieces[:0], stripes, rows, sorted), stripes)
	err = b.make(t.s.stock.layout)
	t.views.release()
	clear(b.pieces)
	b.pieces = b.pieces[:0]
	d.batch = b
	if err != nil {
		t.s.batches.drop(d)
		return nil, err
	}
	st := t.s.stats
	st.batches.Add(1)
	st.rows.Add(uint64(b.Rows))
	st.slotRows.Add(b.SlotRows)
	st.slots.Add(b.Slots)
	return t.s.batches.give(d), nil
}

// Close gives back what the Taker keeps. Batches given stay valid until their Release.
func (t *Taker) Close() error {
	t.lock <- struct{}{}
	defer func() { <-t.lock }()
	t.closed = true
	t.kept.clear()
	return t.s.Close()
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
func appendPieces(pieces []piece, stripes []takenStripe, rows, sorted []uint64) []piece {
	add := func(x *takenStripe, i, at int) {
		lo := i
		if x.whole {
			lo = int(x.rows[i])
		}
		if k := len(pieces) - 1; k >= 0 && pieces[k].stripe == x.stripe && pieces[k].hi == lo {
			pieces[k].hi++
			return
		}
		pieces = append(pieces, piece{stripe: x.stripe, lo: lo, hi: lo + 1, at: at})
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
				from, _ := g.stripesOf(rows[0], rows[0]+1)
				if s := g.stripes[from]; s != nil {
					t.s.stats.keptHits.Add(1)
					g.touched[from]++
					s.users.Add(1)
					x := takenStripe{stripe: s, whole: true}
					x.rows, rows = rowsOf(rows, g.starts[from], g.starts[from+1])
					out = append(out, x)
					g.selectRows(from, x.rows)
					continue
				}
				limit, last := from+1, 0
				for last < len(rows) {
					if rows[last] >= g.starts[limit] {
						if limit == g.segment.stripes() || rows[last] >= g.starts[limit+1] || g.stripes[limit] != nil {
							break
						}
						limit++
					}
					last++
				}
				u := t.s.getUnit()
				u.plan(g.segment, from, limit, &t.s.opts)
				g.dictionaries.enter()
				wave.units = append(wave.units, u)
				wave.segments = append(wave.segments, g)
				wave.bytes += int64(u.stored)
				t.s.stats.keptMisses.Add(uint64(u.to - u.from))
				for k := u.from; k < u.to; k++ {
					x := takenStripe{unit: u, stripe: t.s.getStripe(), whole: t.kept.admit(g, k)}
					x.rows, rows = rowsOf(rows, g.starts[k], g.starts[k+1])
					u.asked[k-u.from] = uint64(len(x.rows))
					s := x.stripe
					s.segment, s.index, s.firstRow, s.rows = g.segment, k, g.starts[k], len(x.rows)
					s.picked, s.sparse, s.condensed = nil, false, false
					s.users.Store(1)
					if x.whole {
						s.rows = g.storedRows(k)
						wave.whole = append(wave.whole, wholeStripe{g, s})
					}
					out = append(out, x)
					wave.stripes = append(wave.stripes, x)
					g.selectRows(k, x.rows)
				}
				if 4*wave.bytes >= t.s.opts.MemoryBudget {
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
	units    []*unit
	segments []*keptSegment // of each unit
	stripes  []takenStripe
	whole    []wholeStripe // of stripes, to be kept
	bytes    int64         // of the units, as they are stored
}

type wholeStripe struct {
	segment *keptSegment
	stripe  *stripe
}

// flush reads and decodes the wave, and empties it.
func (t *Taker) flush(ctx context.Context, w *takeWave) error {
	err := t.fetch(ctx, w.units)
	for i, u := range w.units {
		if err == nil && u.leads {
			d := t.s.getDecoder()
			err = u.decodeDictionaries(d)
			t.s.putDecoder(d)
		}
		if err != nil {
			// Whose dictionaries are not there is looked up anew.
			t.kept.drop(w.segments[i])
		}
	}
	if err == nil {
		err = t.decode(ctx, w.stripes)
	}
	for _, x := range w.whole {
		if err != nil {
			t.kept.dropStripe(x.segment, x.stripe.index)
			continue
		}
		x.stripe.users.Add(1)
		t.kept.keep(x.segment, x.stripe)
	}
	t.drop(w)
	return err
}

// drop gives the units of the wave back.
func (t *Taker) drop(w *takeWave) {
	for _, u := range w.units {
		t.s.putUnit(u)
	}
	*w = takeWave{units: w.units[:0], segments: w.segments[:0], stripes: w.stripes[:0], whole: w.whole[:0]}
}

// fetch reads the ranges of units, those of an object together and several objects at a time.
func (t *Taker) fetch(ctx context.Context, units []*unit) error {
	st := t.s.stats
	var names []string
	ranges := map[string][]object.Range{}
	for _, u := range units {
		for i := range u.requests {
			q := &u.requests[i]
			if err := t.s.allocate(ctx, u, q.rng); err != nil {
				return err
			}
			r := &u.ranges[q.rng]
			if ranges[r.object] == nil {
				names = append(names, r.object)
			}
			ranges[r.object] = append(ranges[r.object], object.Range{P: r.buf[q.from-r.from : q.to-r.from], Off: int64(q.from)})
		}
		st.requests.Add(uint64(len(u.requests)))
		st.count(u)
	}
	read := func(name string) error {
		select {
		case t.reading <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-t.reading }()
		start := time.Now()
		defer func() { st.read.Add(int64(time.Since(start))) }()
		return readError(name, object.ReadRanges(ctx, t.s.layout.blobs, name, ranges[name]...))
	}
	if len(names) == 1 {
		return read(names[0])
	}
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(t.s.opts.Requests)
	for i, name := range names {
		g.Go(func() error {
			errs[i] = read(name)
			return nil
		})
	}
	_ = g.Wait()
	return firstError(errs)
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readError says what it means that an object could not be read.
func readError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w", &format.CorruptError{Object: name, Stripe: -1, Offset: -1, Reason: "the object ends early"}, err)
	case errors.Is(err, object.ErrNotFound):
		return fmt.Errorf("%w: %w", &format.CorruptError{Object: name, Stripe: -1, Offset: -1, Reason: "the object is missing"}, err)
	}
	return fmt.Errorf("read of %s: %w", name, err)
}

// decode decodes the rows of stripes, whose bytes are there, item by item, on as many goroutines as the options say.
func (t *Taker) decode(ctx context.Context, stripes []takenStripe) error {
	type task struct{ stripe, item int }
	var tasks []task
	for i := range stripes {
		for j := range stripes[i].stripe.segment.items {
			tasks = append(tasks, task{i, j})
		}
	}
	errs := make([]error, len(tasks))
	var next atomic.Int64
	work := func() {
		start := time.Now()
		d := t.s.getDecoder()
		defer func() {
			t.s.putDecoder(d)
			t.s.stats.decode.Add(int64(time.Since(start)))
		}()
		var group format.Selection
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(tasks) {
				return
			}
			x := &stripes[tasks[i].stripe]
			if errs[i] = t.decodeItem(d, &group, x, &x.stripe.segment.items[tasks[i].item]); errs[i] != nil {
				return
			}
		}
	}
	var wg sync.WaitGroup
	for range min(t.s.opts.Workers, len(tasks)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if err := firstError(errs); err != nil {
		return err
	}
	return ctx.Err()
}

// decodeItem decodes the features of an item, of the rows or of the whole stripe, and transforms them.
func (t *Taker) decodeItem(d *format.StripeDecoder, group *format.Selection, x *takenStripe, it *item) error {
	g, s := x.stripe.segment, x.stripe
	if it.parts != nil {
		rows := x.rows
		if x.whole {
			rows = nil
		}
		_, err := t.s.decodeBlended(d, x.unit, s, it, rows)
		return err
	}
	var inverse *vector.Column // of a whole stripe
	if it.inverse >= 0 {
		f := &g.files[it.inverse]
		src, at := x.unit.bytes(it.inverse, s.index)
		if x.whole {
			c := t.s.inverses.get()
			s.keepInverse(c)
			c.stored.Type = f.entry.Meta.Type
			if err := d.DecodeStripe(&c.stored, f.entry.Meta, s.index, src, nil); err != nil {
				return f.locate(err, at)
			}
			c.column, inverse = &c.stored, &c.stored
		} else if err := d.SelectRows(group, f.entry.Meta, s.index, src, x.rows); err != nil {
			return f.locate(err, at)
		}
	}
	for _, place := range it.features {
		c := t.s.columns[place].get()
		s.columns[place] = c
		transform := t.layout.transformers[place]
		index := g.featureFile[place]
		var err error
		if isWeight(t.layout.features[place]) {
			rows := x.rows
			if x.whole {
				rows = nil
			}
			c.weigh(g.weighted, t.layout.weight, g.first[s.index], s.rows, rows)
			continue
		}
		if index < 0 {
			err = c.missing(transform, t.s.zeros.get(s.rows))
		} else {
			f := &g.files[index]
			src, at := x.unit.bytes(index, s.index)
			c.stored.Type = f.entry.Meta.Type
			d.Use(g.dictionaries.of(index))
			if x.whole {
				err = d.DecodeStripe(&c.stored, f.entry.Meta, s.index, src, inverse)
			} else {
				err = d.DecodeRows(&c.stored, f.entry.Meta, s.index, src, x.rows, group)
			}
			if err != nil {
				return f.locate(err, at)
			}
			c.widen(f.want)
			if transform != nil {
				err = c.transform(transform)
			}
		}
		if err != nil {
			return fmt.Errorf("feature %q: %w", t.layout.features[place].Name, err)
		}
	}
	return nil
}

// open returns the segments of parts, looking up those that are not kept side by side.
func (t *Taker) open(ctx context.Context, parts []segmentRows) ([]*keptSegment, error) {
	out := make([]*keptSegment, len(parts))
	found := make([]*segment, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		if out[i] = t.kept.get(part.segment); out[i] == nil {
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
		}
		t.kept.put(out[i])
	}
	return out, nil
}

// Stats says what the Taker has read so far. It may be called at any time, also after Close.
func (t *Taker) Stats() Stats { return t.s.Stats() }
