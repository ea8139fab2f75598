package reader

import (
	"slices"

	"github.com/dsistore/dsistore/reader/plan"
)

// A cutter takes the stripes in order, a window of them at a time, and cuts what they make into batches. Without a shuffle
// every stripe is a window, of one run.
//
//	window    stripe 4   stripe 7   stripe 9
//	runs      [4: 0-3] [4: 3-9] ... [9: 96-100]         its sessions or rows, or all of a stripe
//	permuted  [7: 12-40] [4: 3-9] [9: 0-17] | [4: ...]  cut where a batch is full
//	pieces    [4: 3-9] [7: 12-40] [9: 0-17]             in the order of stripes and rows, neighbours joined; rows that are not
//	                                                    selected cut them
//
// Within a batch the order of rows does not matter to training; ascending pieces are cheaper to assemble, and rows that share
// a slot stay together. A batch that takes from two windows has the pieces of the first one first. No stripe is in two
// windows: all pieces of a stripe are next to each other.
type cutter struct {
	r      *run
	b      *draft // being cut, or nil
	left   uint64 // rows that the batch being cut lacks, also of one that is not made
	index  uint64 // of the next batch
	row    uint64 // of the epoch's order: the next
	window []*stripe
	runs   []stripeRun // of the window
	part   []stripeRun // what b takes of the window
}

// cutBatches takes the stripes in order and cuts them into batches.
func (r *run) cutBatches() {
	c := cutter{r: r, index: r.batch, row: r.first}
	defer func() {
		if c.b != nil {
			r.s.batches.drop(c.b)
		}
	}()
	for s := range r.stripes {
		select {
		case <-s.ready:
		case <-r.done:
			return
		}
		if s.err != nil {
			r.out <- result{err: s.err}
			return
		}
		c.window = append(c.window, s)
		if s.window != nil && !s.endsWindow {
			continue
		}
		if !c.cutWindow() {
			return
		}
	}
	select {
	case <-r.done:
	default:
		close(r.out)
	}
}

// cutWindow cuts the window and lets its stripes go. It returns false when the run is stopped.
func (c *cutter) cutWindow() bool {
	r := c.r
	first := c.window[0].firstRow
	if w := c.window[0].window; w != nil {
		first = w.firstRow
	}
	c.findRuns()
	skip := int(c.row - first)
	for _, run := range c.runs {
		if n := int(run.hi - run.lo); skip >= n {
			skip -= n
			continue
		}
		run.lo += int32(skip)
		skip = 0
		for run.lo < run.hi && c.row < r.end {
			if c.left == 0 && !c.next() {
				return false
			}
			n := int32(min(uint64(run.hi-run.lo), c.left))
			if c.b != nil {
				c.part = append(c.part, stripeRun{run.stripe, run.lo, run.lo + n})
				c.b.rows += int(n)
			}
			c.row += uint64(n)
			c.left -= uint64(n)
			run.lo += n
			if c.b != nil && c.left == 0 {
				c.takePart()
				if !c.handOn() {
					return false
				}
			}
		}
	}
	c.takePart()
	r.cut.Add(int64(len(c.window)))
	for i, s := range c.window {
		r.s.releaseStripe(s)
		c.window[i] = nil
	}
	c.window = c.window[:0]
	r.s.budget.poke()
	return true
}

// next begins the batch at c.row, which is made if it is one that the scanner gives. It returns false when the run is stopped.
func (c *cutter) next() bool {
	r := c.r
	if (c.index-r.batch)%r.s.stride == 0 {
		if c.b = r.s.batches.draft(r.done); c.b == nil {
			return false
		}
		c.b.index, c.b.firstRow, c.b.rows = c.index, c.row, 0
	}
	c.left = min(uint64(r.s.layout.plan.BatchSize), r.end-c.row)
	c.index++
	return true
}

// findRuns makes the runs of the window, in the order of the epoch.
func (c *cutter) findRuns() {
	c.runs = c.runs[:0]
	shuffle := &c.r.s.layout.plan.Shuffle
	for i, s := range c.window {
		switch shuffle.Unit {
		case plan.UnitNone:
			c.runs = append(c.runs, stripeRun{int32(i), 0, int32(s.rows)})
		case plan.UnitSession:
			for k, lo := range s.sessions[:len(s.sessions)-1] {
				c.runs = append(c.runs, stripeRun{int32(i), lo, s.sessions[k+1]})
			}
		case plan.UnitRow:
			for row := range int32(s.rows) {
				c.runs = append(c.runs, stripeRun{int32(i), row, row + 1})
			}
		}
	}
	if w := c.window[0].window; w != nil {
		shuffleRuns(shuffle, c.r.epoch, w.group, w.number, c.runs)
	}
}

// takePart makes pieces of what the batch takes of the window.
func (c *cutter) takePart() {
	if len(c.part) == 0 {
		return
	}
	slices.SortFunc(c.part, func(a, b stripeRun) int {
		if a.stripe != b.stripe {
			return int(a.stripe - b.stripe)
		}
		return int(a.lo - b.lo)
	})
	b := c.b
	at := b.rows
	for _, p := range c.part {
		at -= int(p.hi - p.lo)
	}
	last := int32(-1)
	for _, p := range c.part {
		s := c.window[p.stripe]
		for place := int(p.lo); place < int(p.hi); {
			lo, hi := s.runAt(place, int(p.hi))
			switch k := len(b.pieces) - 1; {
			case p.stripe != last:
				s.users.Add(1)
				last = p.stripe
				fallthrough
			case b.pieces[k].hi != lo:
				b.pieces = append(b.pieces, piece{stripe: s, lo: lo, hi: hi, at: at})
			default:
				b.pieces[k].hi = hi
			}
			at += hi - lo
			place += hi - lo
		}
	}
	c.part = c.part[:0]
}

// handOn gives the batch to be made. It returns false when the run is stopped.
func (c *cutter) handOn() bool {
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
