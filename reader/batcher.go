package reader

import (
	"slices"

	"github.com/dsistore/dsistore/reader/batch"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/order"
	"github.com/dsistore/dsistore/reader/plan"
)

// A batcher takes the stripes in order, a buffer of them at a time, and cuts what they make into batches. Without a
// shuffle every stripe is a buffer, of one run.
//
//	buffer    stripe 4   stripe 7   stripe 9
//	runs      [4: 0-3] [4: 3-9] ... [9: 96-100]         its sessions or rows, or all of a stripe
//	permuted  [7: 12-40] [4: 3-9] [9: 0-17] | [4: ...]  cut where a batch is full
//	pieces    [4: 3-9] [7: 12-40] [9: 0-17]             in the order of stripes and rows, neighbours joined;
//	                                                    rows that are not selected cut them
//
// Within a batch the order of rows does not matter to training; ascending pieces are cheaper to assemble, and rows that
// share a slot stay together. A batch that takes from two buffers has the pieces of the first one first. No stripe is
// in two buffers: all pieces of a stripe are next to each other.
type batcher struct {
	r      *run
	b      *batch.Draft // being cut, or nil
	left   uint64       // rows that the batch being cut lacks, also of one that is not made
	index  uint64       // of the next batch
	row    uint64       // of the epoch's order: the next
	buffer []*ioplan.Stripe
	runs   []order.Run // of the buffer
	part   []order.Run // what b takes of the buffer
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

// cutBuffer cuts the buffer and lets its stripes go. It returns false when the run is stopped.
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
	r.s.x.Budget.Poke()
	return true
}

// next begins the batch at c.row, which is made if it is one that the scanner gives. It returns false when the run is
// stopped.
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

// findRuns makes the runs of the buffer, in the order of the epoch.
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

// takePart makes pieces of what the batch takes of the buffer.
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

// handOn gives the batch to be made. It returns false when the run is stopped.
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
