package ingest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/storage"
)

// write puts the rows in order and writes them as segments. The segments that it returns exist even when there is an error.
func (e *engine) write(ctx context.Context) (segments []storage.SegmentDescriptor, err error) {
	e.progress.start(PhaseWrite, e.report.BytesRaw)
	p, newRows, err := e.merge(ctx)
	if err != nil {
		return nil, err
	}
	order := e.schema.packOrder(e.opts.Popularity)
	makers := &sync.Pool{New: func() any { return &stripeMaker{rows: newRows()} }}
	seekers := &sync.Pool{New: func() any { return new(seeker) }}
	most := writeShare(e.opts.Memory)
	memory := newMemoryBudget(most)
	for {
		if err := ctx.Err(); err != nil {
			return segments, err
		}
		plan, err := p.next()
		if err != nil || plan == nil {
			return segments, err
		}
		d, err := e.writeSegment(ctx, &segmentJob{
			plan: plan, order: order, workers: e.opts.Workers, memory: memory, most: most, makers: makers, seekers: seekers,
			estimate: e.stripeMemory, stripeBytes: e.stripeBytes, dedup: e.opts.Dedup, profile: e.profile, share: most / 2,
		})
		if err != nil {
			return segments, err
		}
		segments = append(segments, d)
		e.report.Stripes += len(plan.stripes)
	}
}

// merge returns what plans the segments, and what makes readers of their rows.
func (e *engine) merge(ctx context.Context) (*planner, func() rowsOf, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &planner{stripeRows: e.opts.StripeRows, stripeBytes: e.opts.StripeBytes, segmentRows: e.segmentRows}
	p.dropped = make([]bool, len(e.files))
	for i, f := range e.fileOf {
		p.dropped[i] = f.dropped
	}
	if len(e.spilled) == 0 {
		buf := e.buf
		buf.sort()
		p.in = &bufferStream{records: buf.records}
		return p, func() rowsOf { return &bufferRows{buf: buf} }, nil
	}
	if len(e.buf.records) > 0 {
		if err := e.spill(ctx); err != nil {
			return nil, nil, err
		}
	}
	in, runs, err := mergeStreams(slices.Concat(e.spilled...))
	if err != nil {
		return nil, nil, err
	}
	p.in, p.overRuns = in, true
	return p, func() rowsOf { return &runRows{runs: runs} }, nil
}

// segmentRows cuts a partition into segments of one size, near what was asked, rather than leave a small last one.
func (e *engine) segmentRows(part uint32) int {
	s := &e.parts[part]
	n := max(math.Round(float64(s.rows)/float64(e.opts.SegmentRows)),
		math.Round(float64(s.bytes)/float64(e.opts.SegmentBytes)), 1)
	return int(math.Ceil(float64(s.rows) / n))
}

// stripeMemory estimates what is held while a stripe of f is written: the stripe, the columns that it is gathered from,
// and its encoded form.
func (e *engine) stripeMemory(f *feature) int64 {
	return min(3*e.stripeBytes(f), writeShare(e.opts.Memory))
}

// stripeBytes estimates what a stripe of f decodes to.
func (e *engine) stripeBytes(f *feature) int64 {
	rows := max(e.report.Rows, 1)
	return min(int64(float64(f.rawBytes)/float64(rows)*float64(e.opts.StripeRows)), e.opts.StripeBytes)
}

func (e *engine) writeSegment(ctx context.Context, j *segmentJob) (storage.SegmentDescriptor, error) {
	stripeRows := make([]uint32, len(j.plan.stripes))
	for i, s := range j.plan.stripes {
		stripeRows[i] = uint32(s.rows)
	}
	out, err := e.target.newSegment(ctx, e.parts[j.plan.part].partition, stripeRows, e.profile)
	if err != nil {
		return storage.SegmentDescriptor{}, err
	}
	j.out = out
	share := j.plan.bytes / int64(max(len(j.order), 1))
	var found Duplicates
	j.done = func(s dedup.Stats) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.progress.add(0, share)
		found.add(s)
	}
	j.grouped = func(features int, inverseBytes int64) {
		e.mu.Lock()
		defer e.mu.Unlock()
		found.Groups++
		found.GroupFeatures += features
		found.saved -= inverseBytes
	}
	if err := j.write(ctx); err != nil {
		out.Abort()
		return storage.SegmentDescriptor{}, err
	}
	d, err := out.Finish(ctx)
	if err != nil {
		out.Abort()
		return storage.SegmentDescriptor{}, err
	}
	if d.Rows != uint64(j.plan.rows) {
		return d, errors.New("segment " + d.ID + " does not hold the rows that were planned")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.progress.add(int64(j.plan.rows), j.plan.bytes-share*int64(len(j.order)))
	e.report.Duplicates.addAll(found)
	return d, nil
}
