package writer

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
	"github.com/dsistore/dsistore/storage/catalog"
)

// Rows are rows of one partition as a source gave them: plain columns, by the numbers of their features. A feature that
// has no column is null in each.
type Rows struct {
	Partition uint32
	// Source and First are the place of the first row: the number of its source, and the row in it. Rows that agree in
	// partition, session and time stay in this order. Below MaxSources and MaxSourceRows.
	Source int
	First  int64
	Count  int
	// Session and Time are the columns of the keys; nil: null in every row.
	Session, Time *vector.Column
	Numbers       []int // borrowed for the call
	Columns       []*vector.Column
	Lent          int64  // bytes of Columns that count elsewhere
	Release       func() // gives back what Columns borrow; called once, also by Sorter.Close
}

// A Sorter puts rows in order with bounded memory: what is full is sorted and spilled, what was spilled is merged. Add
// may be called by several goroutines at once.
type Sorter struct {
	opts  Options
	dir   func() (string, error) // for spill files
	types func() []vector.Type

	// mu guards what follows.
	mu      sync.Mutex
	buf     *buffer
	spilled spill.Runs[*sequence]
	parts   []partTotals // by number
	spills  Spills
	records sync.Pool // of *[]record
}

// Spills say what did not fit in memory.
type Spills struct {
	Count   int
	Bytes   int64
	Seconds float64 // by the clock
}

type partTotals struct{ rows, bytes int64 }

// NewSorter returns an empty Sorter. Spill files go to the directory that dir returns; types returns the types of all
// features so far, by number, each of which holds the values of all columns that were added.
func NewSorter(opts Options, dir func() (string, error), types func() []vector.Type) *Sorter {
	opts = opts.WithDefaults()
	return &Sorter{
		opts: opts, dir: dir, types: types, buf: &buffer{},
		records: sync.Pool{New: func() any { return new([]record) }},
	}
}

// Add takes rows over, spilling what is buffered if they would not fit, and returns what they decode to. After an error
// the rows are the caller's.
func (s *Sorter) Add(ctx context.Context, rows *Rows) (decoded int64, err error) {
	size := -rows.Lent
	for _, c := range rows.Columns {
		size += columnBytes(c)
	}
	scratch := s.records.Get().(*[]record)
	defer s.records.Put(scratch)
	*scratch = vector.Resize(*scratch, rows.Count)
	recs := *scratch
	clear(recs)
	setSizes(recs, rows.Columns)
	setKeys(recs, rows.Session, rows.Time)
	ord := uint64(rows.Source)<<ordSourceShift | uint64(rows.First)
	for i := range recs {
		recs[i].ord, recs[i].part = ord+uint64(i), rows.Partition
		decoded += int64(recs[i].bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf.records) > 0 && s.buf.bytes+size > bufferShare(s.opts.Memory) {
		if err := s.spill(ctx); err != nil {
			return 0, err
		}
	}
	for len(s.parts) <= int(rows.Partition) {
		s.parts = append(s.parts, partTotals{})
	}
	s.parts[rows.Partition].rows += int64(rows.Count)
	s.parts[rows.Partition].bytes += decoded
	s.buf.add(recs, rows, size)
	return decoded, nil
}

// Spills returns what was spilled so far.
func (s *Sorter) Spills() Spills {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spills
}

// Close frees the spill files, and what is buffered.
func (s *Sorter) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.free()
	s.spilled.Close()
}

// spill sorts what is buffered, writes it to a sequence and starts an empty buffer. It is called with mu held.
func (s *Sorter) spill(ctx context.Context) error {
	start := time.Now()
	dir, err := s.dir()
	if err != nil {
		return err
	}
	types := s.types()
	s.buf.sort()
	q, err := newSequence(dir)
	if err != nil {
		return err
	}
	if err := q.append(ctx, spillInput(s.buf, types), s.opts.Workers); err != nil {
		_ = q.Close()
		return err
	}
	s.buf.free()
	s.spills.Count++
	s.spills.Bytes += q.file.Size()
	// Many sequences would each want a file and memory while they are merged: one takes their place.
	err = s.spilled.Add(q, s.opts.FanIn, func(level []*sequence) (*sequence, error) {
		merged, err := mergeSequences(ctx, level, types, dir, s.mergeLimits())
		if err == nil {
			s.spills.Bytes += merged.file.Size()
		}
		return merged, err
	})
	s.spills.Seconds += time.Since(start).Seconds()
	return err
}

// maxFanIn bounds the files that are open at once.
const maxFanIn = 128

// fanIn returns how many sequences are merged at once: each takes what its records are read ahead by, and for each
// worker a block as it is read and as it is decoded.
func fanIn(o *Options) int {
	each := int64(recordReadBytes + o.Workers*2*blockBytes)
	return int(min(max(writeShare(o.Memory)/each, 8), maxFanIn))
}

func (s *Sorter) mergeLimits() mergeLimits {
	share := writeShare(s.opts.Memory)
	return mergeLimits{
		rows:         int(min(max(share/1024, 64), 1<<20)), // a record and a few pieces each: an eighth
		featureBytes: max(share/int64(4*s.opts.Workers), 64<<10),
		workers:      s.opts.Workers,
	}
}

// A Job says what a Sorter's rows are written to.
type Job struct {
	Target    Target
	Features  []*Feature // in the order in which packs hold them
	Partition func(number uint32) catalog.Partition
	// Dropped are sources, by number, whose rows are left out; nil: none is.
	Dropped []bool
	// Wrote, when set, is called with the rows and the decoded bytes that were written since the last call, by one
	// goroutine at a time. It must not block.
	Wrote func(rows, bytes int64)
}

// Write writes the rows in order as segments. Nothing is added afterwards. The segments that it returns exist even when
// there is an error; nothing is committed.
func (s *Sorter) Write(ctx context.Context, job Job) (out Written, err error) {
	p, newRows, err := s.merge(ctx, job.Dropped)
	if err != nil {
		return out, err
	}
	rows := int64(0)
	for _, part := range s.parts {
		rows += part.rows
	}
	w, err := newOutput(&s.opts, job.Target, newRows, rows)
	if err != nil {
		return out, err
	}
	w.wrote = job.Wrote
	for {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		plan, err := p.next()
		if err != nil || plan == nil {
			return out, err
		}
		share := plan.bytes / int64(max(len(job.Features), 1))
		d, err := w.write(ctx, plan, job.Partition(plan.part), job.Features, share)
		if err != nil {
			return out, err
		}
		w.tell(int64(plan.rows), plan.bytes-share*int64(len(job.Features)))
		out.Segments = append(out.Segments, d)
		out.Stripes += len(plan.stripes)
		out.Duplicates = w.found
	}
}

// Written is what was made of a Sorter's rows.
type Written struct {
	Segments   []catalog.SegmentDescriptor
	Stripes    int
	Duplicates Duplicates
}

// merge returns what plans the segments, and what makes readers of their rows.
func (s *Sorter) merge(ctx context.Context, dropped []bool) (*planner, func() rowsOf, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &planner{stripeRows: s.opts.StripeRows, stripeBytes: s.opts.StripeBytes, segmentRows: s.segmentRows,
		dropped: dropped}
	if len(s.spilled.All()) == 0 {
		buf := s.buf
		buf.sort()
		p.in = &bufferStream{records: buf.records}
		return p, func() rowsOf { return &bufferRows{buf: buf} }, nil
	}
	if len(s.buf.records) > 0 {
		if err := s.spill(ctx); err != nil {
			return nil, nil, err
		}
	}
	in, runs, err := mergeStreams(s.spilled.All())
	if err != nil {
		return nil, nil, err
	}
	p.in, p.overRuns = in, true
	return p, func() rowsOf { return &runRows{runs: runs} }, nil
}

// segmentRows cuts a partition into segments of one size, near what was asked, rather than leave a small last one.
func (s *Sorter) segmentRows(part uint32) int {
	t := &s.parts[part]
	n := max(math.Round(float64(t.rows)/float64(s.opts.SegmentRows)),
		math.Round(float64(t.bytes)/float64(s.opts.SegmentBytes)), 1)
	return int(math.Ceil(float64(t.rows) / n))
}
