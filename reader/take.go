package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
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
// It keeps what it looked up of segments, and their dictionaries, within a quarter of Options.MemoryBudget; the bytes that it
// has read and not yet decoded take at most half of that, or one unit (unit.go). It is safe for concurrent use; takes wait for
// each other.
type Taker struct {
	layout *Layout

	mu       sync.Mutex
	s        *Scanner // its pools and options: it never runs; guarded by mu
	segments keptSegments
	closed   bool
}

// A takenStripe is rows of a stripe, on their way to a batch.
type takenStripe struct {
	unit   *unit
	stripe *stripe
	rows   []int32 // of the stripe, ascending
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
	s := l.newScanner(&opts, l.newPools(&opts), 0, 0)
	s.budget = newBudget(opts.MemoryBudget)
	return &Taker{layout: l, s: s, segments: keptSegments{max: opts.MemoryBudget / 4}}, nil
}

// Take returns a Batch with the rows at the given places, in the order given; the same place may be given again. Its Index and
// FirstRow are 0. The error of a place that the plan does not have names it.
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
	t.mu.Lock()
	defer t.mu.Unlock()
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
	b := t.s.batches.get(ctx.Done())
	if b == nil {
		return nil, ctx.Err()
	}
	b.Index, b.FirstRow, b.Rows = 0, 0, len(rows)
	b.pieces = appendPieces(b.pieces[:0], stripes, rows, sorted)
	err = b.make(t.s.stock.layout)
	clear(b.pieces)
	b.pieces = b.pieces[:0]
	if err != nil {
		t.s.batches.put(b)
		return nil, err
	}
	t.s.batches.give(b)
	return b, nil
}

// Close gives back what the Taker keeps. Batches given stay valid until their Release.
func (t *Taker) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.segments = true, keptSegments{}
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
	if len(rows) == len(sorted) && (len(rows) == 0 || &rows[0] == &sorted[0]) {
		at := 0
		for _, x := range stripes {
			pieces = append(pieces, piece{stripe: x.stripe, hi: len(x.rows), at: at})
			at += len(x.rows)
		}
		return pieces
	}
	first := make([]int, 0, len(stripes)+1) // of sorted, of each stripe
	end := 0
	for _, x := range stripes {
		first = append(first, end)
		end += len(x.rows)
	}
	for at, r := range rows {
		i, _ := slices.BinarySearch(sorted, r)
		k, ok := slices.BinarySearch(first, i)
		if !ok {
			k--
		}
		s, lo := stripes[k].stripe, i-first[k]
		if n := len(pieces) - 1; n >= 0 && pieces[n].stripe == s && pieces[n].hi == lo {
			pieces[n].hi++
			continue
		}
		pieces = append(pieces, piece{stripe: s, lo: lo, hi: lo + 1, at: at})
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
		for _, index := range wave.segments { // of units that were not read, as those that others' dictionaries came with
			t.segments.drop(index)
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
			rows := sorted[part.from:part.to]
			for len(rows) > 0 {
				// Stripes next to each other are a unit, as far as its memory goes.
				from, _ := g.stripesOf(rows[0], rows[0]+1)
				limit, n := from, 0
				for n < len(rows) && (limit == from || rows[n] < g.starts[limit+1]) {
					limit++
					for n < len(rows) && rows[n] < g.starts[limit] {
						n++
					}
					if limit == g.stripes() {
						break
					}
				}
				u := t.s.getUnit()
				u.plan(g, from, limit, &t.s.opts)
				g.dictionaries.enter()
				wave.units = append(wave.units, u)
				wave.segments = append(wave.segments, part.segment)
				wave.bytes += int64(u.stored)
				for k := u.from; k < u.to; k++ {
					end, _ := slices.BinarySearch(rows, g.starts[k+1])
					x := t.stripe(u, k, rows[:end])
					out = append(out, x)
					wave.stripes = append(wave.stripes, x)
					rows = rows[end:]
				}
				if 2*wave.bytes >= t.s.opts.MemoryBudget {
					if err := t.flush(ctx, &wave); err != nil {
						return out, err
					}
				}
			}
		}
	}
	return out, t.flush(ctx, &wave)
}

// stripe returns stripe k of a unit, with rows of the plan's order.
func (t *Taker) stripe(u *unit, k int, rows []uint64) takenStripe {
	s := t.s.getStripe()
	g := u.segment
	s.segment, s.index, s.firstRow, s.rows = g, k, g.starts[k], len(rows)
	s.users.Store(1)
	x := takenStripe{unit: u, stripe: s, rows: make([]int32, len(rows))}
	for j, r := range rows {
		x.rows[j] = int32(r - g.starts[k])
	}
	return x
}

// A takeWave is what is read together.
type takeWave struct {
	units    []*unit
	segments []int // of each unit, in the layout
	stripes  []takenStripe
	bytes    int64 // of the units, as they are stored
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
			t.segments.drop(w.segments[i])
		}
	}
	if err == nil {
		err = t.decode(ctx, w.stripes)
	}
	t.drop(w)
	return err
}

// drop gives the units of the wave back.
func (t *Taker) drop(w *takeWave) {
	for _, u := range w.units {
		t.s.putUnit(u)
	}
	*w = takeWave{units: w.units[:0], segments: w.segments[:0], stripes: w.stripes[:0]}
}

// fetch reads the ranges of units, those of an object together and several objects at a time.
func (t *Taker) fetch(ctx context.Context, units []*unit) error {
	st := &t.s.stats
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
		st.needed.Add(u.needed)
		st.overRead.Add(u.stored - min(u.stored, u.needed))
	}
	if len(names) == 1 {
		return readError(names[0], object.ReadRanges(ctx, t.s.layout.blobs, names[0], ranges[names[0]]...))
	}
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(t.s.opts.Requests)
	for i, name := range names {
		g.Go(func() error {
			errs[i] = readError(name, object.ReadRanges(ctx, t.s.layout.blobs, name, ranges[name]...))
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
		d := t.s.getDecoder()
		defer t.s.putDecoder(d)
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

// decodeItem decodes the rows of the features of an item and transforms them.
func (t *Taker) decodeItem(d *format.StripeDecoder, group *format.Selection, x *takenStripe, it *item) error {
	g, s := x.stripe.segment, x.stripe
	if it.inverse >= 0 {
		f := &g.files[it.inverse]
		src, at := x.unit.bytes(it.inverse, s.index)
		if err := d.SelectRows(group, f.entry.Meta, s.index, src, x.rows); err != nil {
			return f.locate(err, at)
		}
	}
	for _, place := range it.features {
		c := t.s.columns[place].get()
		s.columns[place] = c
		transform := t.layout.transformers[place]
		index := g.featureFile[place]
		var err error
		if index < 0 {
			err = c.missing(transform, t.s.zeros.get(s.rows))
		} else {
			f := &g.files[index]
			src, at := x.unit.bytes(index, s.index)
			c.stored.Type = f.entry.Meta.Type
			d.Use(g.dictionaries.of(index))
			if err := d.DecodeRows(&c.stored, f.entry.Meta, s.index, src, x.rows, group); err != nil {
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
func (t *Taker) open(ctx context.Context, parts []segmentRows) ([]*segment, error) {
	out := make([]*segment, len(parts))
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for i, part := range parts {
		if out[i] = t.segments.get(part.segment); out[i] == nil {
			load := func() { out[i], errs[i] = t.layout.loadSegment(ctx, part.segment) }
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
		t.segments.put(part.segment, out[i])
	}
	return out, nil
}

// keptSegments are the segments that were used last.
type keptSegments struct {
	max  int64         // bytes, about; one is kept in any case
	size int64         // of used
	used []keptSegment // the last one used at the end
}

type keptSegment struct {
	index   int // in the layout
	segment *segment
	size    int64
}

func (k *keptSegments) find(index int) int {
	return slices.IndexFunc(k.used, func(x keptSegment) bool { return x.index == index })
}

// get returns a segment, nil when it is not kept.
func (k *keptSegments) get(index int) *segment {
	if at := k.find(index); at >= 0 {
		return k.used[at].segment
	}
	return nil
}

// put makes a segment the last one used, and forgets others where they are too many.
func (k *keptSegments) put(index int, g *segment) {
	k.drop(index)
	x := keptSegment{index, g, int64(g.stripes()) * int64(len(g.files)) * bytesPerStripe}
	if g.dictionaries != nil {
		x.size += g.dictionaries.bytes
	}
	k.size += x.size
	k.used = append(k.used, x)
	for len(k.used) > 1 && k.size > k.max {
		k.drop(k.used[0].index)
	}
}

// drop forgets a segment.
func (k *keptSegments) drop(index int) {
	if at := k.find(index); at >= 0 {
		k.size -= k.used[at].size
		k.used = slices.Delete(k.used, at, at+1)
	}
}
