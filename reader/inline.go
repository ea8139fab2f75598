package reader

import (
	"context"
	"io"
	"time"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/object"
)

// inlineBytes is the largest number of bytes, stored and decoded, that are read inline. Passing so few to other
// goroutines would take longer.
const inlineBytes = 1 << 20

// inline makes the last batch without a run, if little has to be read for it, from one segment. The batch is the same
// as a run's. It returns io.EOF if no batch is left, and nil if a run is needed.
func (s *Scanner) inline(ctx context.Context) (*batch.Draft, error) {
	l := s.layout
	first := min(s.first+s.next.Batch*uint64(l.plan.BatchSize), s.end)
	if s.tried || s.shared || s.x.Sessions || l.plan.Shuffle.Unit != plan.UnitNone ||
		s.end-first > uint64(l.plan.BatchSize) {
		return nil, nil
	}
	if first == s.end {
		return nil, io.EOF
	}
	index := l.segmentAt(first)
	if s.end > l.firstRow[index+1] || l.selectionOf(index) != nil {
		return nil, nil
	}
	// Only once: if the caller's ctx ends before a slow store answers, and it calls Next again, a run is needed, which
	// continues between the calls.
	s.tried = true
	defer metering.Since(time.Now(), &s.x.Stats.Stall)
	ctx = object.CountTraffic(ctx, &s.x.Stats.Traffic)
	g, err := l.loadSegment(ctx, index)
	if err != nil {
		return nil, err
	}
	from, to := g.StripesOf(first, s.end)
	var d *batch.Draft
	if g.ReadBytes(from, to) <= min(inlineBytes, uint64(s.opts.sizes().Task)) {
		d = s.batches.TryDraft()
	}
	if d == nil {
		done := make(chan struct{})
		close(done)
		s.loaded = &segmentLoad{index: index, segment: g, done: done}
		return nil, nil
	}
	d.Index, d.FirstRow, d.Rows = s.next.Batch, first, int(s.end-first)
	if err := s.readInline(ctx, d, g, from, to); err != nil {
		s.batches.Drop(d)
		return nil, err
	}
	return d, nil
}

// readInline makes the batch of d out of stripes [from, to) of a segment, which fit one I/O task.
func (s *Scanner) readInline(ctx context.Context, d *batch.Draft, g *ioplan.Segment, from, to int) error {
	g.Dictionaries.Expect(to - from)
	u := s.x.PlanTask(g, from, to, s.opts.sizes())
	g.Dictionaries.Emitted(to-from, s.x.Fetched)
	defer s.x.PutTask(u)
	if err := s.x.Load(ctx, u); err != nil {
		return err
	}
	stripes := make([]*ioplan.Stripe, 0, to-from)
	end := d.FirstRow + uint64(d.Rows)
	for i := from; i < to; i++ {
		stripes = append(stripes, s.x.Stripe(u, i)) // owned by the batch
		lo, hi := max(d.FirstRow, g.Starts[i]), min(end, g.Starts[i+1])
		d.Pieces = append(d.Pieces, batch.Piece{
			Stripe: stripes[i-from], Lo: int(lo - g.Starts[i]), Hi: int(hi - g.Starts[i]), At: int(lo - d.FirstRow),
		})
	}
	if err := s.x.DecodeStripes(ctx, stripes, 1); err != nil {
		for _, x := range stripes {
			s.x.ReleaseStripe(x)
		}
		return err
	}
	s.makeBatch(d)
	return d.Err
}
