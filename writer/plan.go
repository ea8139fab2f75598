package writer

// A segmentPlan lists the rows of a segment, stripe by stripe. It is made from records alone.
type segmentPlan struct {
	part    uint32
	rows    int
	bytes   int64 // decoded
	stripes []stripePlan
	pieces  []piece // of all stripes
	// ranges are the runs that the segment needs, each from its first to its last needed row. nil for a buffer's rows.
	ranges []runRange
}

// A stripePlan is pieces [from, to) of its segment. The sources of a buffer's pieces are chunks. The sources of pieces
// of runs are positions in the segment's ranges, and piece.row counts from lo of the stripe's range of that position.
type stripePlan struct {
	rows     int
	from, to int
	ranges   []runRange // of runs that the stripe needs; their run is a position in the segment's ranges
}

// A runRange is rows [lo, hi) of a run.
type runRange struct{ run, lo, hi uint32 }

// A planner cuts a stream of records into segments and stripes.
//
// A stripe's size is its rows, and the sum over its rows of the largest feature's bytes (record.most). A stripe ends at
// the first end of a session at which it has stripeRows rows or stripeBytes/2 bytes. If it reaches 2*stripeRows rows or
// stripeBytes bytes before, it ends there, in the middle of a session. Without sessions it has exactly stripeRows rows.
// The sum of the largest features is at least the size of each feature, so no feature exceeds stripeBytes, unless a
// single row does.
type planner struct {
	in          recordStream
	stripeRows  int
	stripeBytes int64
	overRuns    bool
	dropped     []bool // by source: whether its rows are left out; nil: no rows are
	// segmentRows returns after how many rows a segment of the partition ends. Its last stripe is completed.
	segmentRows func(part uint32) int

	acrossPartitions bool          // a segment may hold rows of several partitions
	keep             func(*record) // if not nil, called with each planned record

	positions []uint32   // by run: its position in the segment's ranges plus 1, or 0
	ranges    []runRange // of the stripe being made, by position; hi 0: none
	touched   []uint32   // positions that the stripe being made uses
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

// together reports whether r may be in segment s.
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

// endsBefore reports whether a stripe of so many rows and bytes, whose last record is last, ends before next.
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

// position returns a run's position in the segment's ranges, after adding it if it is new.
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

// takeRanges returns the ranges of the finished stripe, adds them to the segment's ranges, and makes the rows of pieces
// relative to them.
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

// skipDropped advances the stream to the next record that is not left out.
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
