package ingest

import "slices"

// A segmentPlan says which rows make a segment, stripe by stripe. It is made from records alone.
type segmentPlan struct {
	part    uint32
	rows    int
	bytes   int64 // decoded
	stripes []stripePlan
	pieces  []piece // of all stripes
	// ranges are, by run, the rows from the first to the last that the segment needs; hi 0: none. Over runs only.
	ranges []runRange
}

// A stripePlan is pieces [from, to) of its segment's. Over a buffer their sources are chunks. Over runs they are runs,
// and their rows count from the range of the run that the stripe needs.
type stripePlan struct {
	rows     int
	from, to int
	ranges   []runRange // over runs: those that the stripe needs, in run order
}

type runRange struct{ run, lo, hi uint32 }

// A planner cuts a stream of records into segments and stripes.
//
// A stripe ends at the first end of a session where it has stripeRows rows, or half of stripeBytes in its largest rows'
// features. One that finds no such place ends at twice either limit, in the middle of a session. Without sessions it has
// exactly stripeRows rows. Summing each row's largest feature overstates what any one feature of the stripe decodes to,
// so that stripeBytes holds for all of them, except that a stripe has at least one row.
type planner struct {
	in          recordStream
	stripeRows  int
	stripeBytes int64
	overRuns    bool
	dropped     []bool // by file: rows of these are left out
	// segmentRows returns the rows at which a segment of the partition ends, with the stripe that reaches them.
	segmentRows func(part uint32) int

	ranges []runRange // of the stripe being made, by run; hi 0: none
}

// next returns the next segment, nil after the last.
func (p *planner) next() (*segmentPlan, error) {
	if err := p.skipDropped(); err != nil {
		return nil, err
	}
	h := p.in.head()
	if h == nil {
		return nil, nil
	}
	s := &segmentPlan{part: h.part}
	rows := p.segmentRows(h.part)
	for h != nil && h.part == s.part && s.rows < rows {
		if err := p.stripe(s); err != nil {
			return nil, err
		}
		h = p.in.head()
	}
	if p.overRuns {
		s.ranges = wholeRanges(s.stripes, len(p.ranges))
	}
	return s, nil
}

func wholeRanges(stripes []stripePlan, runs int) []runRange {
	out := make([]runRange, runs)
	for _, st := range stripes {
		for _, g := range st.ranges {
			if o := &out[g.run]; o.hi == 0 {
				*o = g
			} else {
				o.hi = g.hi
			}
		}
	}
	return out
}

// stripe moves the records of the next stripe to s. There is at least one.
func (p *planner) stripe(s *segmentPlan) error {
	st := stripePlan{from: len(s.pieces)}
	most := int64(0)
	var last record
	for {
		h := p.in.head()
		if h == nil || h.part != s.part {
			break
		}
		if st.rows > 0 && p.endsBefore(st.rows, most, &last, h) {
			break
		}
		last = *h
		most += int64(h.most)
		st.rows++
		s.bytes += int64(h.bytes)
		p.addPiece(s, st.from, h)
		if err := p.in.advance(); err != nil {
			return err
		}
		if err := p.skipDropped(); err != nil {
			return err
		}
	}
	st.to = len(s.pieces)
	st.ranges = p.takeRanges(s.pieces[st.from:])
	s.rows += st.rows
	s.stripes = append(s.stripes, st)
	return nil
}

// endsBefore reports whether a stripe whose last record is last ends before next.
func (p *planner) endsBefore(rows int, most int64, last, next *record) bool {
	if rows >= 2*p.stripeRows || most+int64(next.most) > p.stripeBytes {
		return true
	}
	return (rows >= p.stripeRows || most >= p.stripeBytes/2) && !sameSession(last, next)
}

func (p *planner) addPiece(s *segmentPlan, from int, r *record) {
	if p.overRuns {
		for len(p.ranges) <= int(r.chunk) {
			p.ranges = append(p.ranges, runRange{run: uint32(len(p.ranges))})
		}
		g := &p.ranges[r.chunk]
		if g.hi == 0 {
			g.lo = r.row
		}
		g.hi = r.row + 1
	}
	if n := len(s.pieces); n > from {
		if q := &s.pieces[n-1]; q.src == r.chunk && q.row+q.n == r.row {
			q.n++
			return
		}
	}
	s.pieces = append(s.pieces, piece{src: r.chunk, row: r.row, n: 1})
}

// takeRanges returns the ranges of the stripe just made and makes its pieces' rows count from them.
func (p *planner) takeRanges(pieces []piece) []runRange {
	if !p.overRuns {
		return nil
	}
	for i := range pieces {
		pieces[i].row -= p.ranges[pieces[i].src].lo
	}
	out := make([]runRange, 0, len(p.ranges))
	for i := range p.ranges {
		if p.ranges[i].hi > 0 {
			out = append(out, p.ranges[i])
			p.ranges[i].hi = 0
		}
	}
	return slices.Clip(out)
}

func (p *planner) skipDropped() error {
	for {
		h := p.in.head()
		if h == nil || !p.dropped[h.file()] {
			return nil
		}
		if err := p.in.advance(); err != nil {
			return err
		}
	}
}
