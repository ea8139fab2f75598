package writer

// A segmentPlan says which rows make a segment, stripe by stripe. It is made from records alone.
type segmentPlan struct {
	part    uint32
	rows    int
	bytes   int64 // decoded
	stripes []stripePlan
	pieces  []piece // of all stripes
	// ranges are the runs that the segment needs, each with its rows from the first needed to the last. Over runs only.
	ranges []runRange
}

// A stripePlan is pieces [from, to) of its segment's. Over a buffer their sources are chunks. Over runs they are
// positions in the segment's ranges, and their rows count from the stripe's own range there.
type stripePlan struct {
	rows     int
	from, to int
	ranges   []runRange // over runs: those that the stripe needs; run is the position in the segment's ranges
}

type runRange struct{ run, lo, hi uint32 }

// A planner cuts a stream of records into segments and stripes.
//
// A stripe ends at the first end of a session where it has stripeRows rows, or half of stripeBytes in its largest rows'
// features. One that finds no such position ends at twice either limit, in the middle of a session. Without sessions it
// has exactly stripeRows rows. Summing each row's largest feature overstates what any one feature of the stripe decodes
// to, so that stripeBytes holds for all of them, except that a stripe has at least one row.
type planner struct {
	in          recordStream
	stripeRows  int
	stripeBytes int64
	overRuns    bool
	dropped     []bool // by source: rows of these are left out; nil: none is
	// segmentRows returns the rows at which a segment of the partition ends, with the stripe that reaches them.
	segmentRows func(part uint32) int

	// acrossPartitions: segments take no notice of partitions. keep, when set, is called with each record taken.
	acrossPartitions bool
	keep             func(*record)

	positions []uint32   // by run: its position in the segment's ranges and 1, or 0
	ranges    []runRange // of the stripe being made, by position; hi 0: none
	touched   []uint32   // positions of the stripe being made
}

// next returns the next segment, nil after the last.
func (p *planner) next() (*segmentPlan, error) {
	if err := p.skipDropped(); err != nil {
		return nil, err
	}
	h := p.in.Head()
	if h == nil {
		return nil, nil
	}
	s := &segmentPlan{part: h.part}
	rows := p.segmentRows(h.part)
	for h != nil && p.together(s, h) && s.rows < rows {
		if err := p.stripe(s); err != nil {
			return nil, err
		}
		h = p.in.Head()
	}
	for _, g := range s.ranges {
		p.positions[g.run] = 0
	}
	return s, nil
}

func (p *planner) together(s *segmentPlan, r *record) bool {
	return p.acrossPartitions || r.part == s.part
}

// stripe moves the records of the next stripe to s. There is at least one.
func (p *planner) stripe(s *segmentPlan) error {
	st := stripePlan{from: len(s.pieces)}
	most := int64(0)
	var last record
	for {
		h := p.in.Head()
		if h == nil || !p.together(s, h) {
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
		if p.keep != nil {
			p.keep(h)
		}
		if err := p.in.Advance(); err != nil {
			return err
		}
		if err := p.skipDropped(); err != nil {
			return err
		}
	}
	st.to = len(s.pieces)
	st.ranges = p.takeRanges(s, s.pieces[st.from:])
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
	src := r.chunk
	if p.overRuns {
		src = p.position(s, r.chunk)
		g := &p.ranges[src]
		if g.hi == 0 {
			g.run, g.lo = src, r.row
			p.touched = append(p.touched, src)
		}
		g.hi = r.row + 1
	}
	if n := len(s.pieces); n > from {
		if q := &s.pieces[n-1]; q.src == src && q.row+q.n == r.row {
			q.n++
			return
		}
	}
	s.pieces = append(s.pieces, piece{src: src, row: r.row, n: 1})
}

// position returns a run's position in the segment's ranges.
func (p *planner) position(s *segmentPlan, run uint32) uint32 {
	for len(p.positions) <= int(run) {
		p.positions = append(p.positions, 0)
	}
	if p.positions[run] == 0 {
		s.ranges = append(s.ranges, runRange{run: run})
		p.positions[run] = uint32(len(s.ranges))
		if len(p.ranges) < len(s.ranges) {
			p.ranges = append(p.ranges, runRange{})
		}
	}
	return p.positions[run] - 1
}

// takeRanges returns the ranges of the stripe just made, adds them to the segment's, and makes its pieces' rows count
// from them.
func (p *planner) takeRanges(s *segmentPlan, pieces []piece) []runRange {
	if !p.overRuns {
		return nil
	}
	for i := range pieces {
		pieces[i].row -= p.ranges[pieces[i].src].lo
	}
	out := make([]runRange, 0, len(p.touched))
	for _, position := range p.touched {
		g := &p.ranges[position]
		out = append(out, *g)
		if whole := &s.ranges[position]; whole.hi == 0 {
			whole.lo = g.lo
		}
		s.ranges[position].hi = g.hi
		g.hi = 0
	}
	p.touched = p.touched[:0]
	return out
}

func (p *planner) skipDropped() error {
	for {
		h := p.in.Head()
		if h == nil || p.dropped == nil || !p.dropped[h.source()] {
			return nil
		}
		if err := p.in.Advance(); err != nil {
			return err
		}
	}
}
