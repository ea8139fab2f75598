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

// Rows are consecutive rows of one partition from one source, as plain columns. A feature without a column is null in
// every row.
type Rows struct {
	Partition uint32 // its number, from 0 without gaps
	// Source is the number of the source, below MaxSources; First is the first row's position in it, below
	// MaxSourceRows. Rows with equal partition, session and time are sorted by Source, then by position.
	Source int
	First  int64
	Count  int
	// Session and Time are the columns of the keys; nil: null in every row.
	Session, Time *vector.Column
	Numbers       []int            // Feature.Number of each column; borrowed for the call
	Columns       []*vector.Column // of Count rows each
	Lent          int64            // bytes of Columns that are not counted against Options.Memory
	Release       func()           // releases what Columns borrow; called once, by Sorter.Close at the latest
}

// A Sorter sorts rows in bounded memory. When its buffer is full, it sorts the rows and spills them to a file; spilled
// rows are merged. Call Add from any number of goroutines, then Write once, then Close.
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

// Spills counts what was written to spill files.
type Spills struct {
	Count   int     // how often the buffer was full
	Bytes   int64   // written, merges included
	Seconds float64 // wall-clock time, merges included
}

type partTotals struct{ rows, bytes int64 }

// NewSorter returns an empty Sorter. dir returns the directory of spill files. types returns the types of all features
// so far, by number; the columns added so far are convertible to them.
func NewSorter(opts Options, dir func() (string, error), types func() []vector.Type) *Sorter {
	opts = opts.WithDefaults()
	return &Sorter{
		opts: opts, dir: dir, types: types, buf: &buffer{},
		records: sync.Pool{New: func() any { return new([]record) }},
	}
}

// Add adds rows and owns them, unless it returns an error. It spills the buffer first if the rows do not fit. It
// returns the decoded bytes of the rows.
func (s *Sorter) Add(ctx context.Context, rows *Rows) (decoded int64, err error) {
	size := -rows.Lent
	for _, c := range rows.Columns {
		size += columnOverhead + c.HeldBytes()
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
	largest, all := rowSizes(recs)
	if len(s.buf.records) > 0 && (s.buf.bytes+size > bufferShare(s.opts.Memory) || s.buf.fillsBlock(largest, all)) {
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
	s.buf.largest, s.buf.sizes = max(s.buf.largest, largest), s.buf.sizes+all
	return decoded, nil
}

// rowSizes returns the largest size of a row in its largest feature, and the sum of these sizes.
func rowSizes(recs []record) (largest, all int64) {
	for i := range recs {
		largest = max(largest, int64(recs[i].most))
		all += int64(recs[i].most)
	}
	return largest, all
}

// Spills returns the counts so far.
func (s *Sorter) Spills() Spills {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spills
}

// Close frees the spill files and releases the buffered rows.
func (s *Sorter) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.free()
	s.spilled.Close()
}

// spill sorts the buffer, writes it as a sequence and empties it. It is called with mu held.
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
	// Each sequence needs an open file and a read buffer in the final merge. FanIn of them are replaced by one.
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

// maxFanIn limits the files that are open at once.
const maxFanIn = 128

// fanIn returns how many sequences are merged at once within writeShare. Each takes the read buffer of its records and,
// for each worker, an encoded and a decoded block.
func fanIn(o *Options) int {
	each := int64(recordReadBytes + o.Workers*2*blockBytes)
	return int(min(max(writeShare(o.Memory)/each, 8), maxFanIn))
}

func (s *Sorter) mergeLimits() mergeLimits {
	share := writeShare(s.opts.Memory)
	return mergeLimits{
		rows: int(min(max(share/1024, 64), 1<<20)), // a record and a few pieces each: an eighth
		// A column of lists holds at most vector.MaxElements values.
		featureBytes: min(max(share/int64(4*s.opts.Workers), 64<<10), maxBlockBytes),
		workers:      s.opts.Workers,
	}
}

// A Job says where and how Sorter.Write writes the rows.
type Job struct {
	Target    Target
	Features  []*Feature // in the order of packs, see SortForPacks
	Partition func(number uint32) catalog.Partition
	// Dropped says for each source, by number, whether its rows are left out; nil: no rows are.
	Dropped []bool
	// Wrote, if set, is called from one goroutine at a time with the rows and decoded bytes that were written since the
	// last call. It must not block.
	Wrote func(rows, bytes int64)
}

// Write writes the rows in order as segments. It is called once, after the last Add. It commits nothing. The returned
// segments exist even if there is an error; the caller discards them.
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
	w.blocks = int64(len(s.spilled.All())) * blockBytes
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
		w.progress(int64(plan.rows), plan.bytes-share*int64(len(job.Features)))
		out.Segments = append(out.Segments, d)
		out.Stripes += len(plan.stripes)
		out.Duplicates = w.found
	}
}

// Written describes the segments that Sorter.Write wrote.
type Written struct {
	Segments   []catalog.SegmentDescriptor
	Stripes    int
	Duplicates Duplicates
}

// merge returns the planner of the segments, and the constructor of a worker's rowSource.
func (s *Sorter) merge(ctx context.Context, dropped []bool) (*planner, func() rowSource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &planner{stripeRows: s.opts.StripeRows, stripeBytes: s.opts.StripeBytes, segmentRows: s.segmentRows,
		dropped: dropped}
	if len(s.spilled.All()) == 0 {
		buf := s.buf
		buf.sort()
		p.in = &bufferStream{records: buf.records}
		return p, func() rowSource { return &bufferRows{buf: buf} }, nil
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
	return p, func() rowSource { return &runRows{runs: runs} }, nil
}

// segmentRows returns the rows of each segment of a partition. Segments of a partition have about equal sizes near
// SegmentRows and SegmentBytes, so that the last one is not much smaller.
func (s *Sorter) segmentRows(part uint32) int {
	t := &s.parts[part]
	n := max(math.Round(float64(t.rows)/float64(s.opts.SegmentRows)),
		math.Round(float64(t.bytes)/float64(s.opts.SegmentBytes)), 1)
	return int(math.Ceil(float64(t.rows) / n))
}
