package writer

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/internal/spill"
)

// A recordStream returns records in order.
type recordStream = spill.Stream[record]

// A bufferStream is the records of a sorted buffer.
type bufferStream struct {
	records []record
	at      int
}

func (s *bufferStream) Head() *record {
	if s.at == len(s.records) {
		return nil
	}
	return &s.records[s.at]
}

func (s *bufferStream) Advance() error { s.at++; return nil }

// A sequenceStream is the records of a sequence. A record's chunk is the number of its run among the runs of all
// sequences; its row is the row in that run.
type sequenceStream struct {
	runs []*run // not yet started
	in   *bufio.Reader
	left int // records left in the run, including the head
	rec  record
	raw  [recordBytes]byte
	next uint32 // number of runs[0]
}

// recordReadBytes is the read buffer for the records of each sequence.
const recordReadBytes = 64 << 10

// newSequenceStream returns the records of a sequence whose first run has number first.
func newSequenceStream(q *sequence, first int) (*sequenceStream, error) {
	s := &sequenceStream{runs: q.runs, next: uint32(first), in: bufio.NewReaderSize(nil, recordReadBytes), left: 1}
	return s, s.Advance()
}

func (s *sequenceStream) Head() *record {
	if s.left == 0 {
		return nil
	}
	return &s.rec
}

func (s *sequenceStream) Advance() error {
	s.left--
	s.rec.row++
	if s.left == 0 {
		if len(s.runs) == 0 {
			return nil
		}
		r := s.runs[0]
		s.runs, s.left = s.runs[1:], r.rows
		s.in.Reset(io.NewSectionReader(r.file, r.records, int64(r.rows)*recordBytes))
		s.rec.chunk, s.rec.row = s.next, 0
		s.next++
	}
	if _, err := io.ReadFull(s.in, s.raw[:]); err != nil {
		return fmt.Errorf("reading a spill file: %w", err)
	}
	decodeRecord(&s.rec, s.raw[:])
	return nil
}

// mergeStreams returns the records of all sequences in order, and all their runs in the order of their numbers.
func mergeStreams(sequences []*sequence) (recordStream, []*run, error) {
	var runs []*run
	streams := make([]recordStream, 0, len(sequences))
	for _, q := range sequences {
		s, err := newSequenceStream(q, len(runs))
		if err != nil {
			return nil, nil, err
		}
		runs = append(runs, q.runs...)
		streams = append(streams, s)
	}
	return spill.NewMerge(compareRecords, streams), runs, nil
}

// mergeLimits bound the memory for merging sequences into one.
type mergeLimits struct {
	rows         int   // of a run
	featureBytes int64 // of one feature of a run
	workers      int
}

// mergeSequences merges sequences into a new one in dir. types are those of all features so far.
func mergeSequences(ctx context.Context, sequences []*sequence, types []vector.Type, dir string,
	limits mergeLimits) (_ *sequence, err error) {
	in, runs, err := mergeStreams(sequences)
	if err != nil {
		return nil, err
	}
	out, err := newSequence(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = out.Close()
		}
	}()
	var records []record
	p := &planner{
		in: in, overRuns: true, acrossPartitions: true, stripeRows: limits.rows, stripeBytes: limits.featureBytes,
		segmentRows: func(uint32) int { return 1 }, // one stripe
		keep:        func(r *record) { records = append(records, *r) },
	}
	for {
		records = records[:0]
		plan, err := p.next()
		if err != nil {
			return nil, err
		}
		if plan == nil {
			return out, nil
		}
		grain := grainOf(records)
		plan.cut(grain)
		err = out.append(ctx, runInput{
			records: records, grain: grain, plan: plan, types: types,
			newRows: func() rowSource { return &runRows{runs: runs} },
		}, limits.workers)
		if err != nil {
			return nil, err
		}
	}
}

// cut splits the pieces of a plan of one stripe at multiples of grain rows.
func (s *segmentPlan) cut(grain int) {
	out := make([]piece, 0, len(s.pieces)+s.rows/grain)
	at := 0
	for _, p := range s.pieces {
		for p.n > 0 {
			n := min(int(p.n), grain-at%grain)
			out = append(out, piece{src: p.src, row: p.row, n: uint32(n)})
			p.row, p.n, at = p.row+uint32(n), p.n-uint32(n), at+n
		}
	}
	s.pieces = out
	s.stripes[0].to = len(out)
}
