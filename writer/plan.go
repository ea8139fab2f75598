package writer

import (
	"cmp"
	"slices"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
)

// A segmentPlan lists the rows of a segment, stripe by stripe. It is made from records alone.
type segmentPlan struct {
	part    uint32
	rows    int
	bytes   int64 // decoded
	stripes []stripePlan
	pieces  []piece // of all stripes
	// ranges are the runs that the segment needs, each from its first to its last needed row. Of a buffer's rows they
	// are its chunks, without rows.
	ranges []runRange
}

// A stripePlan is pieces [from, to) of its segment. The sources of a buffer's pieces are positions in the segment's
// ranges. The sources of pieces of runs are numbers of the stripe's runs, and piece.row counts the stripe's rows of
// that run.
type stripePlan struct {
	rows     int
	from, to int
	// ranges are the rows of runs that the stripe needs, and no others: those of the first run, then those of the next,
	// and so on. Their run is a position in the segment's ranges. nil for a buffer's rows.
	ranges []runRange
	runs   int // of ranges
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

	positions []uint32   // by run or chunk: its position in the segment's ranges plus 1, or 0
	ranges    []runRange // of the stripe being made, in the order of their first rows
	runs      uint32     // of ranges
	last      []uint32   // by position: its last one of ranges plus 1, or 0
	numbers   []uint32   // by position: its number among the runs of ranges
	starts    []uint32   // memory of takeRanges
	held      []uint32   // memory of takeRanges
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
	for h != nil && p.together(s, h) && s.rows < rows && len(s.stripes) < format.MaxFileStripes {
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
	p.takeRanges(s, &st)
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
	src := p.position(s, r.chunk)
	if p.overRuns {
		src = p.extend(src, r.row)
	}
	if n := len(s.pieces); n > from {
		if q := &s.pieces[n-1]; q.src == src && q.row+q.n == r.row {
			q.n++
			return
		}
	}
	s.pieces = append(s.pieces, piece{src: src, row: r.row, n: 1})
}

// extend adds a row of a run, by its position, to the ranges of the stripe being made, and returns its range. A row
// that does not follow the one before begins a range: those between them are left out.
func (p *planner) extend(position, row uint32) uint32 {
	at := p.last[position]
	if at == 0 {
		p.numbers[position] = p.runs
		p.runs++
	}
	if at == 0 || p.ranges[at-1].hi != row {
		p.ranges = append(p.ranges, runRange{run: position, lo: row})
		at = uint32(len(p.ranges))
		p.last[position] = at
	}
	p.ranges[at-1].hi = row + 1
	return at - 1
}

// position returns the position of a run or chunk in the segment's ranges, after adding it if it is new.
func (p *planner) position(s *segmentPlan, run uint32) uint32 {
	for len(p.positions) <= int(run) {
		p.positions = append(p.positions, 0)
	}
	if p.positions[run] == 0 {
		s.ranges = append(s.ranges, runRange{run: run})
		p.positions[run] = uint32(len(s.ranges))
		if len(p.last) < len(s.ranges) {
			p.last, p.numbers = append(p.last, 0), append(p.numbers, 0)
		}
	}
	return p.positions[run] - 1
}

// takeRanges gives the finished stripe its ranges, adds them to the segment's ranges, and makes the sources and rows of
// its pieces what stripePlan says.
func (p *planner) takeRanges(s *segmentPlan, st *stripePlan) {
	if !p.overRuns {
		return
	}
	p.starts = vector.Resize(p.starts, len(p.ranges))
	p.held = vector.Resize(p.held, int(p.runs))
	clear(p.held)
	for i, g := range p.ranges {
		n := p.numbers[g.run]
		p.starts[i] = p.held[n]
		p.held[n] += g.hi - g.lo
		whole := &s.ranges[g.run]
		if whole.hi == 0 {
			whole.lo = g.lo
		}
		whole.hi = g.hi
		p.last[g.run] = 0
	}
	pieces := s.pieces[st.from:]
	for i := range pieces {
		q := &pieces[i]
		g := p.ranges[q.src]
		q.src, q.row = p.numbers[g.run], p.starts[q.src]+q.row-g.lo
	}
	st.ranges, st.runs = slices.Clone(p.ranges), int(p.runs)
	if len(st.ranges) > st.runs {
		slices.SortStableFunc(st.ranges, func(a, b runRange) int {
			return cmp.Compare(p.numbers[a.run], p.numbers[b.run])
		})
	}
	p.ranges, p.runs = p.ranges[:0], 0
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
