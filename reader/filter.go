package reader

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/semaphore"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/cache"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/memory"
	"github.com/dsistore/dsistore/reader/metering"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// A Pruning counts what evaluating a filter could skip and what it read.
type Pruning struct {
	// Segments of the plan's partitions: all; those in which the filter selects no row, known without reading a stripe;
	// and those in which it selects every row, known in the same way.
	Segments, SegmentsNever, SegmentsAlways uint64
	// Stripes of the other segments: without a selected row by their statistics, selected whole by them, and evaluated.
	StripesNever, StripesAlways, StripesEvaluated uint64
	// SegmentsKept are segments whose selected rows were in Selections, from an earlier evaluation of the same filter.
	SegmentsKept uint64
	Rows         uint64 // of all segments
	RowsSelected uint64
	// Stored bytes of the filter's features that were read: needed, and read with them but not needed.
	BytesNeeded, BytesUnneeded, Requests uint64
	Seconds                              float64 // wall-clock time
}

// A filterExecutor finds the rows of segments for which a filter is true. Partition values and statistics decide what
// they can. Of the remaining stripes it reads and decodes the filter's features, and evaluates the filter on their
// slots.
type filterExecutor struct {
	filter *expr.Filter
	base   *Layout             // of every row, with the filter's features; nil: the filter has no features
	x      *execution.Executor // of base
	sizes  ioplan.FetchSizes   // of its I/O tasks
	room   *semaphore.Weighted // memory of the I/O tasks that are being read or evaluated
	memory int64               // of room
	least  int64               // of memory, that a task takes
	kept   *Selections
	key    string // identifies the filter in kept

	mu      sync.Mutex
	pruning Pruning // guarded by mu

	evaluators memory.FreeList[expr.Evaluator]
}

// filterTasks is the largest number of concurrent I/O tasks. All of them together take Options.MemoryBudget.
const filterTasks = 64

// newFilterExecutor returns a filter executor for segments of a layout. The caller closes it.
func (l *Layout) newFilterExecutor(filter *expr.Filter, features []catalog.Feature, opts Options,
	kept *Selections) (*filterExecutor, error) {
	opts, err := opts.withDefaults(l.blobs)
	if err != nil {
		return nil, err
	}
	atOnce := min(2*opts.Workers, filterTasks)
	if object.HighLatency(l.blobs) {
		atOnce = filterTasks
	}
	v := &filterExecutor{filter: filter, kept: kept, room: semaphore.NewWeighted(opts.MemoryBudget),
		memory: opts.MemoryBudget, least: max(opts.MemoryBudget/int64(atOnce), 1),
		key: l.blobs.URI() + "\n" + filter.String()}
	for _, f := range features {
		v.key += fmt.Sprintf("\n%016x %v %s", uint64(f.ID), f.Type, f.Logical)
	}
	if len(features) == 0 {
		return v, nil
	}
	plan := &plan.Plan{Table: l.plan.Table, Snapshot: l.plan.Snapshot, Features: features, BatchSize: 1,
		Output: plan.OutputColumns}
	if v.base, err = newLayout(plan, l.blobs, l.segments, l.open); err != nil {
		return nil, err
	}
	if l.overlays != nil {
		v.base.applyOverlays(l.overlays, l.layers, l.covered)
		v.key += v.base.chainKey()
	}
	tasks := Options{
		MemoryBudget: max(opts.MemoryBudget*8/filterTasks, 1), Workers: opts.Workers, Requests: opts.Requests,
		GapBytes: opts.GapBytes, RequestBytes: opts.RequestBytes,
		Limits: opts.Limits,
	}
	if tasks, err = tasks.withDefaults(l.blobs); err != nil {
		return nil, err
	}
	v.sizes = tasks.sizes()
	v.x = execution.New(v.base.source(), tasks.execution(v.base), v.base.newPools(&tasks), new(metering.Counters))
	v.x.Stats.Meter.Begin(len(v.base.features)) // in case usage of the layout is recorded later
	return v, nil
}

func (v *filterExecutor) close() {
	if v.x != nil {
		v.x.Pools.Close()
	}
}

// all returns the rows of each segment for which the filter is true; nil: every row.
func (v *filterExecutor) all(ctx context.Context, segments []catalog.SegmentDescriptor) ([]*roaring.Bitmap, error) {
	start := time.Now()
	if v.x != nil {
		ctx = object.CountTraffic(ctx, &v.x.Stats.Traffic)
	}
	out := make([]*roaring.Bitmap, len(segments))
	err := execution.Parallel(len(segments), segmentsAtOnce, func(i int) (err error) {
		out[i], err = v.segment(ctx, i, segments[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	p := &v.pruning
	p.Segments = uint64(len(segments))
	for i, b := range out {
		p.Rows += segments[i].Rows
		if b == nil {
			p.RowsSelected += segments[i].Rows
		} else {
			p.RowsSelected += b.GetCardinality()
		}
	}
	if v.x != nil {
		s := v.x.Stats.Stats()
		p.BytesNeeded, p.BytesUnneeded, p.Requests = s.BytesNeeded, s.BytesUnneeded, s.Requests
	}
	p.Seconds = time.Since(start).Seconds()
	return out, nil
}

// count changes v.pruning.
func (v *filterExecutor) count(change func(p *Pruning)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.pruning)
}

// segment returns the rows of segment i for which the filter is true; nil: every row.
func (v *filterExecutor) segment(ctx context.Context, i int, d catalog.SegmentDescriptor) (*roaring.Bitmap, error) {
	unknown := func(int) expr.FieldStats { return expr.FieldStats{Unknown: true} }
	switch v.filter.Prune(d.Partition, unknown) {
	case expr.Never:
		v.count(func(p *Pruning) { p.SegmentsNever++ })
		return roaring.New(), nil
	case expr.Always:
		v.count(func(p *Pruning) { p.SegmentsAlways++ })
		return nil, nil
	}
	key := cache.Key{Segment: d.ID, Index: d.Index, Filter: v.key}
	if v.base != nil {
		key.Layers = v.base.layersKey(i)
	}
	if b, ok := v.kept.Get(key); ok {
		v.count(func(p *Pruning) { p.SegmentsKept++ })
		return b, nil
	}
	b, err := v.evaluate(ctx, i, d)
	if err != nil {
		return nil, err
	}
	v.kept.Put(key, b)
	return b, nil
}

// evaluate is segment for a segment that partition values do not decide.
func (v *filterExecutor) evaluate(ctx context.Context, i int, d catalog.SegmentDescriptor) (*roaring.Bitmap, error) {
	g, err := v.base.loadSegment(ctx, i)
	if err != nil {
		return nil, err
	}
	verdict := v.filter.Prune(d.Partition, func(feature int) expr.FieldStats { return g.StatsOf(feature, d.Rows) })
	switch verdict {
	case expr.Never:
		v.count(func(p *Pruning) { p.SegmentsNever++ })
		return roaring.New(), nil
	case expr.Always:
		v.count(func(p *Pruning) { p.SegmentsAlways++ })
		return nil, nil
	}
	if err := selectable(d); err != nil {
		return nil, err
	}
	x := &foundRows{selected: roaring.New()}
	verdicts := make([]expr.Verdict, g.Stripes())
	for k := range verdicts {
		verdicts[k] = v.filter.Prune(d.Partition, func(feature int) expr.FieldStats {
			return g.StripeStatsOf(feature, k)
		})
		if verdicts[k] == expr.Always {
			x.selected.AddRange(g.First[k], g.First[k+1])
		}
	}
	v.count(func(p *Pruning) {
		for _, o := range verdicts {
			switch o {
			case expr.Never:
				p.StripesNever++
			case expr.Always:
				p.StripesAlways++
			default:
				p.StripesEvaluated++
			}
		}
	})
	if err := v.evaluateStripes(ctx, g, verdicts, x); err != nil {
		return nil, err
	}
	if x.selected.GetCardinality() == d.Rows {
		return nil, nil
	}
	x.selected.RunOptimize()
	return x.selected, nil
}

// foundRows are the rows of a segment that were found so far.
type foundRows struct {
	mu       sync.Mutex
	selected *roaring.Bitmap // guarded by mu
	err      error           // of the first stripe in order that has an error; guarded by mu
	errAt    int             // that stripe; guarded by mu
}

// evaluateStripes adds the selected rows of the stripes that the verdicts do not decide.
func (v *filterExecutor) evaluateStripes(ctx context.Context, g *ioplan.Segment, verdicts []expr.Verdict,
	x *foundRows) error {
	var wg sync.WaitGroup
	for from := 0; from < len(verdicts); {
		if verdicts[from] != expr.Some {
			from++
			continue
		}
		to := from
		for to < len(verdicts) && verdicts[to] == expr.Some {
			to++
		}
		u := v.x.PlanTask(g, from, to, v.sizes)
		from = u.To
		size := int64(u.Stored)
		for _, n := range u.Decoded {
			size += n
		}
		size = min(max(size, v.least), v.memory) // one stripe may be larger than the memory: then it is read alone
		if err := v.room.Acquire(ctx, size); err != nil {
			v.x.PutTask(u)
			wg.Wait()
			return err
		}
		work := func() {
			defer func() { v.x.PutTask(u); v.room.Release(size) }()
			at := u.From
			if err := v.evaluateTask(ctx, u, x); err != nil {
				x.mu.Lock()
				defer x.mu.Unlock()
				if x.err == nil || at < x.errAt {
					x.err, x.errAt = err, at
				}
			}
		}
		if u.Leads { // the others need its dictionaries
			work()
			if x.failed() != nil {
				break
			}
			continue
		}
		wg.Go(work)
	}
	wg.Wait()
	return x.failed()
}

func (x *foundRows) failed() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

// evaluateTask reads the stripes of an I/O task and adds their selected rows.
func (v *filterExecutor) evaluateTask(ctx context.Context, u *ioplan.IOTask, x *foundRows) error {
	if err := v.x.Load(ctx, u); err != nil {
		return err
	}
	e := v.evaluators.Get()
	defer v.evaluators.Put(e)
	columns := make([]*vector.Column, len(v.base.features))
	var rows []uint32
	var mask vector.Bitmap
	for k := u.From; k < u.To; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := v.x.Stripe(u, k)
		_, err := v.x.Decode(execution.DecodeTask{Stripe: s, Hi: len(u.Segment.Items)})
		if err == nil {
			for i, c := range s.Columns {
				columns[i] = nil
				if c != nil {
					columns[i] = c.Column
				}
			}
			mask = append(mask[:0], make(vector.Bitmap, vector.BitmapWords(s.Stored))...)
			e.Select(mask, v.filter, s.Stored, u.Segment.Partition, columns)
			rows = appendRows(rows, mask, uint32(u.Segment.First[k]))
		}
		v.x.ReleaseStripe(s)
		if err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.selected.AddMany(rows)
	return nil
}

// appendRows appends first+i for each set bit i of mask.
func appendRows(rows []uint32, mask vector.Bitmap, first uint32) []uint32 {
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			rows = append(rows, first+uint32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return rows
}
