package reader

import (
	"context"
	"io"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// inlineBytes bounds what is read inline, stored and decoded: so little that to hand it to other goroutines takes longer.
const inlineBytes = 1 << 20

// inline gives the only batch that is left where little is to be read for it, from one segment, without a run, and io.EOF
// where none is left. The batch is the one that a run would make. It returns nil where a run is needed.
func (s *Scanner) inline(ctx context.Context) (*draft, error) {
	l := s.layout
	first := min(s.first+s.next.Batch*uint64(l.plan.BatchSize), s.end)
	if s.tried || s.shared || s.sessions || l.plan.Shuffle.Unit != UnitNone || s.end-first > uint64(l.plan.BatchSize) {
		return nil, nil
	}
	if first == s.end {
		return nil, io.EOF
	}
	index := l.segmentAt(first)
	if s.end > l.firstRow[index+1] || l.selectionOf(index) != nil {
		return nil, nil
	}
	// Once only: a caller who waits for a slow store in many short steps needs a run, which goes on between them.
	s.tried = true
	start := time.Now()
	defer func() { s.stats.stall.Add(int64(time.Since(start))) }()
	g, err := l.loadSegment(ctx, index)
	if err != nil {
		return nil, err
	}
	from, to := g.stripesOf(first, s.end)
	var d *draft
	if g.readBytes(from, to) <= min(inlineBytes, uint64(s.opts.unitBytes())) {
		d = s.batches.tryDraft()
	}
	if d == nil {
		done := make(chan struct{})
		close(done)
		s.loaded = &segmentLoad{index: index, segment: g, done: done}
		return nil, nil
	}
	d.index, d.firstRow, d.rows = s.next.Batch, first, int(s.end-first)
	s.budget = newBudget(s.opts.MemoryBudget)
	r := &run{s: s, first: first, end: s.end}
	if err := r.readInline(ctx, d, g, from, to); err != nil {
		s.batches.drop(d)
		return nil, err
	}
	return d, nil
}

// readBytes estimates what stripes [from, to) take, stored and decoded, with the segment's dictionaries.
func (g *segment) readBytes(from, to int) uint64 {
	var n uint64
	for j := range g.files {
		for i := from; i < to; i++ {
			if g.files[j].neededIn(i) {
				n += g.files[j].entry.Meta.Stripes[i].Length
			}
		}
		_, length := g.files[j].entry.Meta.Dictionary.Range()
		n += length
	}
	for i := from; i < to; i++ {
		n += g.decodedBytes(i) + g.gatheredBytes(i)
	}
	if g.dictionaries != nil {
		n += uint64(g.dictionaries.bytes)
	}
	return n
}

// readInline makes the batch of d out of stripes [from, to) of a segment, which fit one unit.
func (r *run) readInline(ctx context.Context, d *draft, g *segment, from, to int) error {
	s := r.s
	u := s.getUnit()
	u.plan(g, from, to, &s.opts)
	g.dictionaries.enter()
	g.dictionaries.expect(to - from)
	g.dictionaries.emitted(to-from, s.budget)
	defer s.putUnit(u)
	if err := r.readUnit(ctx, u); err != nil {
		return err
	}
	if u.leads {
		decoder := s.getDecoder()
		defer s.putDecoder(decoder)
		if err := u.decodeDictionaries(decoder); err != nil {
			return err
		}
	}
	for i := from; i < to; i++ {
		x := s.getStripe()
		x.segment, x.index, x.firstRow, x.rows, x.stored = g, i, g.starts[i], g.storedRows(i), g.storedRows(i)
		x.picked, x.sparse, x.condensed = nil, false, false
		x.users.Store(1) // the batch
		lo, hi := max(r.first, g.starts[i]), min(r.end, g.starts[i+1])
		d.pieces = append(d.pieces, piece{
			stripe: x, lo: int(lo - g.starts[i]), hi: int(hi - g.starts[i]), at: int(lo - r.first),
		})
		if _, err := r.decodeTask(decodeTask{unit: u, stripe: x, hi: len(g.items)}); err != nil {
			for _, p := range d.pieces {
				s.releaseStripe(p.stripe)
			}
			return err
		}
	}
	r.assembling.Add(1)
	r.makeBatch(d)
	<-d.done
	return d.err
}

// readUnit does the requests of a unit, those of one object together.
func (r *run) readUnit(ctx context.Context, u *unit) error {
	st := r.s.stats
	st.count(u)
	st.requests.Add(uint64(len(u.requests)))
	start := time.Now()
	defer func() { st.read.Add(int64(time.Since(start))) }()
	var ranges []object.Range
	for i := 0; i < len(u.requests); {
		name, first := u.ranges[u.requests[i].rng].object, i
		ranges = ranges[:0]
		for ; i < len(u.requests) && u.ranges[u.requests[i].rng].object == name; i++ {
			q := &u.requests[i]
			if err := r.s.allocate(ctx, u, q.rng); err != nil {
				return err
			}
			f := &u.ranges[q.rng]
			ranges = append(ranges, object.Range{P: f.buf[q.from-f.from : q.to-f.from], Off: int64(q.from)})
		}
		if object.ReadRanges(ctx, r.s.layout.blobs, name, ranges...) == nil {
			continue
		}
		for k := first; k < i; k++ { // one by one, to say which it was
			if err := r.read(ctx, u, k); err != nil {
				return err
			}
		}
	}
	return nil
}
