package reader

import (
	"slices"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/order"
	"github.com/dsistore/dsistore/reader/plan"
)

// A batcher receives the stripes in order, one shuffle buffer at a time, and cuts their rows into batches. Without a
// shuffle every stripe is a buffer of one run.
//
//	buffer    stripe 4   stripe 7   stripe 9
//	runs      [4: 0-3] [4: 3-9] ... [9: 96-100]         sessions or rows of the buffer, or whole stripes
//	permuted  [7: 12-40] [4: 3-9] [9: 0-17] | [4: ...]  cut where a batch is full
//	pieces    [4: 3-9] [7: 12-40] [9: 0-17]             sorted by stripe and row, neighbours joined;
//	                                                    rows that are not selected separate them
//
// The order of rows within a batch does not matter to training. Ascending pieces are cheaper to assemble, and rows that
// share a slot stay together. A batch with rows of two buffers has the pieces of the first one first. No stripe is in
// two buffers, so all pieces of a stripe in a batch are next to each other.
type batcher struct {
	r      *run
	b      *batch.Draft // being cut; nil: none, or the current batch is another rank's and not made
	left   uint64       // rows that the current batch still needs
	index  uint64       // of the next batch
	row    uint64       // the next row of the epoch's order
	buffer []*ioplan.Stripe
	runs   []order.Run // of the buffer
	part   []order.Run // rows of the buffer for b
}

// cutBatches takes the stripes in order and cuts them into batches.
func (r *run) cutBatches() {
	c := batcher{r: r, index: r.batch, row: r.first}
	defer func() {
		if c.b != nil {
			r.s.batches.Drop(c.b)
		}
	}()
	for s := range r.stripes {
		select {
		case <-s.Ready:
		case <-r.done:
			return
		}
		if s.Err != nil {
			r.out <- result{err: s.Err}
			return
		}
		c.buffer = append(c.buffer, s)
		if s.Buffer != nil && !s.EndsBuffer {
			continue
		}
		if !c.cutBuffer() {
			return
		}
	}
	select {
	case <-r.done:
	default:
		close(r.out)
	}
}

// cutBuffer cuts the buffer into batches and releases its stripes. It returns false if the run is stopped.
func (c *batcher) cutBuffer() bool {
	r := c.r
	first := c.buffer[0].FirstRow
	if w := c.buffer[0].Buffer; w != nil {
		first = w.FirstRow
	}
	c.findRuns()
	skip := int(c.row - first)
	for _, run := range c.runs {
		if n := int(run.Hi - run.Lo); skip >= n {
			skip -= n
			continue
		}
		run.Lo += int32(skip)
		skip = 0
		for run.Lo < run.Hi && c.row < r.end {
			if c.left == 0 && !c.next() {
				return false
			}
			n := int32(min(uint64(run.Hi-run.Lo), c.left))
			if c.b != nil {
				c.part = append(c.part, order.Run{Stripe: run.Stripe, Lo: run.Lo, Hi: run.Lo + n})
				c.b.Rows += int(n)
			}
			c.row += uint64(n)
			c.left -= uint64(n)
			run.Lo += n
			if c.b != nil && c.left == 0 {
				c.takePart()
				if !c.handOn() {
					return false
				}
			}
		}
	}
	c.takePart()
	r.cut.Add(int64(len(c.buffer)))
	for i, s := range c.buffer {
		r.s.x.ReleaseStripe(s)
		c.buffer[i] = nil
	}
	c.buffer = c.buffer[:0]
	r.poke()
	return true
}

// next starts the batch at c.row. The batch is made only if it is one of this scanner's (Scanner.stride). It returns
// false if the run is stopped.
func (c *batcher) next() bool {
	r := c.r
	if (c.index-r.batch)%r.s.stride == 0 {
		if c.b = r.s.batches.Draft(r.done); c.b == nil {
			return false
		}
		c.b.Index, c.b.FirstRow, c.b.Rows = c.index, c.row, 0
	}
	c.left = min(uint64(r.s.layout.plan.BatchSize), r.end-c.row)
	c.index++
	return true
}

// findRuns sets the runs of the buffer, in the order of the epoch.
func (c *batcher) findRuns() {
	c.runs = c.runs[:0]
	shuffle := &c.r.s.layout.plan.Shuffle
	for i, s := range c.buffer {
		switch shuffle.Unit {
		case plan.UnitNone:
			c.runs = append(c.runs, order.Run{Stripe: int32(i), Lo: 0, Hi: int32(s.Rows)})
		case plan.UnitSession:
			for k, lo := range s.Sessions[:len(s.Sessions)-1] {
				c.runs = append(c.runs, order.Run{Stripe: int32(i), Lo: lo, Hi: s.Sessions[k+1]})
			}
		case plan.UnitRow:
			for row := range int32(s.Rows) {
				c.runs = append(c.runs, order.Run{Stripe: int32(i), Lo: row, Hi: row + 1})
			}
		}
	}
	if w := c.buffer[0].Buffer; w != nil {
		order.ShuffleRuns(shuffle, c.r.epoch, w.Group, w.Number, c.runs)
	}
}

// takePart turns c.part into pieces of the batch.
func (c *batcher) takePart() {
	if len(c.part) == 0 {
		return
	}
	slices.SortFunc(c.part, func(a, b order.Run) int {
		if a.Stripe != b.Stripe {
			return int(a.Stripe - b.Stripe)
		}
		return int(a.Lo - b.Lo)
	})
	b := c.b
	at := b.Rows
	for _, p := range c.part {
		at -= int(p.Hi - p.Lo)
	}
	last := int32(-1)
	for _, p := range c.part {
		s := c.buffer[p.Stripe]
		for position := int(p.Lo); position < int(p.Hi); {
			lo, hi := s.RunAt(position, int(p.Hi))
			switch k := len(b.Pieces) - 1; {
			case p.Stripe != last:
				s.Users.Add(1)
				last = p.Stripe
				fallthrough
			case b.Pieces[k].Hi != lo:
				b.Pieces = append(b.Pieces, batch.Piece{Stripe: s, Lo: lo, Hi: hi, At: at})
			default:
				b.Pieces[k].Hi = hi
			}
			at += hi - lo
			position += hi - lo
		}
	}
	c.part = c.part[:0]
}

// handOn passes the batch on to be assembled. It returns false if the run is stopped.
func (c *batcher) handOn() bool {
	c.r.assembling.Add(1)
	select {
	case c.r.assemble <- c.b:
	case <-c.r.done:
		return false
	}
	c.r.out <- result{draft: c.b}
	c.b = nil
	return true
}
