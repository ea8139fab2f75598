package reader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/cache"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/expr"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/order"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/reader/transform"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// A Layout is where a plan's rows lie: the plan put against its snapshot. It is immutable and safe for concurrent use.
type Layout struct {
	plan     *plan.Plan
	blobs    object.Store
	segments []catalog.SegmentDescriptor
	firstRow []uint64 // of each segment in the plan's own order, and the total at the end
	// selected are the rows that are read of each segment, nil where it is every row; nil: that of all.
	selected       []*roaring.Bitmap
	rowSelectRatio int
	gatheredRun    int
	pruning        *Pruning // nil: no filter
	// weighted are the rows of each segment that have weight, where others have 1; nil: the plan has no weights.
	weighted []*roaring.Bitmap
	weight   float32
	// features are what is read, of the types that are stored: the plan's, and after them the session key where it is
	// not among those.
	features   []catalog.Feature
	sessionKey int32 // its position in features, or -1
	open       func(ctx context.Context, d catalog.SegmentDescriptor) (segmentIndex, error)
	snapshots  []*storage.Snapshot // that the plan is of, to be kept while it is read
	table      *storage.Table      // nil: nobody records what is read
	filters    filterReads         // what they took
	counted    countedFeatures     // in usage records
	// overlays have some of the features, or of those that the filter reads: overlays.go says how they lie, the lowest
	// first.
	overlays []catalog.Overlay
	layers   [][]*catalog.OverlaySegment // of each segment an entry per overlay, nil where it has none
	covered  coverage
	chains   [][]int32 // those that features have: overlays, the highest first. nil: no overlay has any of the features
	chainOf  []int32   // the chain of each of features, or -1
	read     []int32   // overlays that are in chains, ascending
	// transformers has an entry for each of features, nil where there are no transforms.
	transformers []*transform.Program
}

// segmentIndex is the part of a segment.Reader that reading needs.
type segmentIndex interface {
	StripeRows() []uint32
	Lookup(ctx context.Context, ids ...catalog.FeatureID) ([]*segment.Entry, error)
}

// LayoutOptions say how a layout finds the rows that its plan's filter selects. They do not change which they are. The
// zero value works.
type LayoutOptions struct {
	// Read are the memory, workers and requests to do it with, and of Matching what usage records say of it; its other
	// fields are not used here.
	Read Options
	// Selections keep what filters select for the layouts to come. Default: 64 MiB that all layouts of the process
	// share.
	Selections *Selections
	// View is what the plan was made of: snapshots that it has open are not opened again. Default: they are.
	View *storage.View
	// Within restricts what is read of segments, named by their ids, to these rows. Default: nil, and of segments that
	// are not in it, all that the plan selects. Borrowed.
	Within map[string]*roaring.Bitmap
}

// NewLayout lists the segments that the plan selects. Without a filter it opens none of them; with one it reads, of
// those that the filter may select something of, the features that the filter is about. The snapshot must be the
// plan's.
func NewLayout(ctx context.Context, snap *storage.Snapshot, p *plan.Plan) (*Layout, error) {
	return NewLayoutWith(ctx, snap, p, LayoutOptions{})
}

// NewLayoutWith is NewLayout with options.
func NewLayoutWith(ctx context.Context, snap *storage.Snapshot, p *plan.Plan, opts LayoutOptions) (*Layout, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if name, n := snap.Table().Name(), snap.Info().Number; name != p.Table || n != p.Snapshot {
		return nil, fmt.Errorf("plan: it is of table %s, snapshot %d, not of table %s, snapshot %d",
			p.Table, p.Snapshot, name, n)
	}
	return layoutOf(ctx, snap, p, opts)
}

// layoutOf is NewLayoutWith for a plan that need not have features.
func layoutOf(ctx context.Context, snap *storage.Snapshot, p *plan.Plan, opts LayoutOptions) (*Layout, error) {
	at := snapshotsOf(snap, opts.View)
	merged, named, err := overlaysOf(ctx, snap, p, at)
	if err != nil {
		return nil, err
	}
	var filter *expr.Filter
	var filtered []catalog.Feature // what it reads
	if p.Filter != "" {
		schema, err := plan.OverlaySchema(ctx, snap, named)
		if err != nil {
			return nil, err
		}
		if filter, filtered, err = plan.ParseFilter(ctx, schema, p.Filter); err != nil {
			return nil, err
		}
	}
	var sample *plan.Downsampling
	if p.Downsample != "" {
		schema, err := plan.OverlaySchema(ctx, snap, named)
		if err != nil {
			return nil, err
		}
		if sample, err = plan.BindDownsample(ctx, schema, p.Downsample); err != nil {
			return nil, err
		}
		filtered = append(slices.Clone(filtered), sample.Features...)
	}
	match, err := p.PartitionMatch(ctx, snap)
	if err != nil {
		return nil, err
	}
	segments, err := snap.Segments(ctx, match)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, d catalog.SegmentDescriptor) (segmentIndex, error) {
		return snap.OpenSegment(ctx, d)
	}
	l, err := newLayout(p, snap.Table().Store().Blobs(), segments, open)
	if err != nil {
		return nil, err
	}
	l.table = snap.Table()
	if l.snapshots, err = snapshotsIn(ctx, p, at); err != nil {
		return nil, err
	}
	sets, err := l.storedSets(ctx, snap, at)
	if err != nil {
		return nil, err
	}
	if len(opts.Within) > 0 {
		within := make([]*roaring.Bitmap, len(segments))
		for i, d := range segments {
			within[i] = opts.Within[d.ID]
		}
		if sets == nil {
			sets = within
		} else {
			sets = intersect(sets, within)
		}
	}
	if sets != nil { // a filter is not evaluated where no row is left
		if err := l.restrict(sets); err != nil {
			return nil, err
		}
	}
	if err := l.openOverlays(ctx, append(merged, named...), filtered); err != nil {
		return nil, err
	}
	if filter != nil {
		if err := l.filter(ctx, filter, filtered, opts); err != nil {
			return nil, err
		}
	}
	if sample != nil {
		if err := l.downsample(ctx, sample, opts); err != nil {
			return nil, err
		}
	}
	return l, l.refused()
}

// filter leaves the rows for which a filter, which reads the features, is true.
func (l *Layout) filter(ctx context.Context, filter *expr.Filter, features []catalog.Feature,
	opts LayoutOptions) error {
	selected, pruning, err := l.evaluate(ctx, filter, features, opts)
	if err != nil {
		return err
	}
	l.pruning = &pruning
	if l.selected != nil {
		selected = intersect(selected, l.selected)
	}
	if err := l.restrict(selected); err != nil {
		return err
	}
	l.pruning.RowsSelected = l.Rows()
	return nil
}

// evaluate returns the rows of each segment for which a filter, which reads the features, is true; nil: every row.
func (l *Layout) evaluate(ctx context.Context, filter *expr.Filter, features []catalog.Feature,
	opts LayoutOptions) ([]*roaring.Bitmap, Pruning, error) {
	if opts.Selections == nil {
		opts.Selections = cache.Shared
	}
	v, err := l.newFilterExecutor(filter, features, opts.Read, opts.Selections)
	if err != nil {
		return nil, Pruning{}, err
	}
	defer v.close()
	rows, err := v.all(ctx, l.segments)
	if err != nil {
		return nil, Pruning{}, err
	}
	l.filters.add(v)
	return rows, v.pruning, nil // a copy: what points into the filter executor keeps its decoders and buffers
}

// Pruning returns what the plan's filter took; nil: it has none. Borrowed: do not write.
func (l *Layout) Pruning() *Pruning { return l.pruning }

func newLayout(p *plan.Plan, blobs object.Store, segments []catalog.SegmentDescriptor,
	open func(context.Context, catalog.SegmentDescriptor) (segmentIndex, error)) (*Layout, error) {
	l := &Layout{plan: p, blobs: blobs, segments: segments, open: open, rowSelectRatio: execution.DefaultRowSelectRatio,
		gatheredRun: execution.DefaultGatheredRun}
	var err error
	if l.transformers, err = p.Transformers(); err != nil {
		return nil, err
	}
	l.sessionKey = -1
	for i, f := range p.Features {
		f.Type = p.StoredType(i)
		l.features = append(l.features, f)
		if f.Role == catalog.RoleSessionKey && !plan.IsPartitionKey(f) &&
			(p.Shuffle.Key.ID == 0 || p.Shuffle.Key.ID == f.ID) {
			l.sessionKey = int32(i)
		}
	}
	if l.sessionKey < 0 && p.Shuffle.Key.ID != 0 {
		l.sessionKey = int32(len(l.features))
		l.features = append(l.features, p.Shuffle.Key)
		l.transformers = append(l.transformers, nil)
	}
	l.firstRow = make([]uint64, 1, len(segments)+1)
	var total uint64
	for _, d := range segments {
		if d.Rows > math.MaxInt64-total {
			return nil, fmt.Errorf("segment %s: %d rows on top of %d are too many", d.ID, d.Rows, total)
		}
		total += d.Rows
		l.firstRow = append(l.firstRow, total)
	}
	return l, nil
}

// Plan returns the plan. Borrowed: do not write.
func (l *Layout) Plan() *plan.Plan { return l.plan }

// Rows returns how many rows the plan selects.
func (l *Layout) Rows() uint64 { return l.firstRow[len(l.segments)] }

// Segments returns how many segments hold them.
func (l *Layout) Segments() int { return len(l.segments) }

// Batches returns how many batches they make.
func (l *Layout) Batches() uint64 { return batchCount(l.Rows(), l.plan.BatchSize) }

func batchCount(rows uint64, size int) uint64 {
	return rows/uint64(size) + uint64(min(1, rows%uint64(size)))
}

// segmentAt returns the segment that holds a row of the plan's order, which must be less than Rows.
func (l *Layout) segmentAt(row uint64) int {
	return sort.Search(len(l.segments), func(i int) bool { return l.firstRow[i+1] > row })
}

// Splits cuts the plan into at most n parts of about equal rows, at stripe boundaries, so that no two parts read one
// stripe. Together they cover each row once, in order. A plan that shuffles has none: what a split gives does not
// depend on an epoch. It opens the segments that a cut falls into, at most n-1.
func (l *Layout) Splits(ctx context.Context, n int) ([]plan.Split, error) {
	if n < 1 {
		return nil, fmt.Errorf("splits: %d: want at least 1", n)
	}
	if l.plan.Shuffle.Unit != plan.UnitNone {
		return nil, plan.ErrSplitShuffled
	}
	rows := l.Rows()
	cuts := []uint64{0}
	opened, stripes := -1, []uint64(nil)
	for i := 1; i < n; i++ {
		want := mulDiv(rows, uint64(i), uint64(n))
		if want <= cuts[len(cuts)-1] || want >= rows {
			continue
		}
		seg := l.segmentAt(want)
		if seg != opened {
			var err error
			if stripes, err = l.stripeStarts(ctx, seg); err != nil {
				return nil, err
			}
			opened = seg
		}
		cut := nearest(stripes, want)
		if cut > cuts[len(cuts)-1] && cut < rows {
			cuts = append(cuts, cut)
		}
	}
	hash := l.plan.Hash()
	var out []plan.Split
	for i, first := range cuts {
		end := rows
		if i+1 < len(cuts) {
			end = cuts[i+1]
		}
		if end > first {
			out = append(out, plan.Split{Plan: hash, FirstRow: first, Rows: end - first})
		}
	}
	return out, nil
}

// stripeStarts returns the rows of the plan's order at which the stripes of a segment start, and its end.
func (l *Layout) stripeStarts(ctx context.Context, seg int) ([]uint64, error) {
	rows, err := l.stripeRows(ctx, seg)
	if err != nil {
		return nil, err
	}
	return ioplan.StartsOf(l.firstRow[seg], rows), nil
}

// nearest returns the entry of the ascending, non-empty list that is closest to v.
func nearest(list []uint64, v uint64) uint64 {
	i := sort.Search(len(list), func(i int) bool { return list[i] >= v })
	switch {
	case i == len(list):
		return list[i-1]
	case i > 0 && v-list[i-1] < list[i]-v:
		return list[i-1]
	}
	return list[i]
}

// mulDiv returns rows*i/n without overflow, for i <= n.
func mulDiv(rows, i, n uint64) uint64 { return rows/n*i + rows%n*i/n }

// A Cost is what reading takes.
type Cost struct {
	Rows, Segments, Stripes    uint64
	Requests                   uint64
	BytesNeeded, BytesUnneeded uint64
}

// Cost opens every segment and adds up what a Scanner with the same options would read; of a plan that shuffles, in
// epoch 0, which reads the same stripes as every other.
func (l *Layout) Cost(ctx context.Context, opts Options) (Cost, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return Cost{}, err
	}
	first, end, err := opts.rowRange(l)
	if err != nil {
		return Cost{}, err
	}
	c := Cost{Rows: end - first}
	if l.plan.Shuffle.Unit != plan.UnitNone {
		return c, l.costShuffled(ctx, &c, &opts)
	}
	u := new(ioplan.IOTask)
	for row := first; row < end; {
		i := l.segmentAt(row)
		g, err := l.loadSegment(ctx, i)
		if err != nil {
			return Cost{}, err
		}
		c.Segments++
		from, to := g.StripesOf(row, end)
		c.add(u, g, from, to, &opts)
		row = l.firstRow[i+1]
	}
	return c, nil
}

// costShuffled adds up the chunks of the buffers of epoch 0.
func (l *Layout) costShuffled(ctx context.Context, c *Cost, opts *Options) error {
	u := new(ioplan.IOTask)
	loaded := map[int]bool{}
	cache := l.newSegmentCache(opts.MemoryBudget/4, func(index int) *segmentLoad {
		x := &segmentLoad{index: index}
		x.segment, x.err = l.loadSegment(ctx, index)
		if !loaded[index] {
			loaded[index] = true
			c.Segments++
		}
		return x
	})
	var failed error
	err := l.walkBuffers(ctx, order.New(l.firstRow, l.plan.Shuffle, 0), 0, func(segment int, x chunk) bool {
		x.load, _ = cache.get(segment, len(x.rows))
		if failed = x.load.err; failed == nil {
			failed = x.check(l)
		}
		if failed == nil {
			c.add(u, x.load.segment, x.from, x.to, opts)
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// add counts what reading stripes [from, to) of a segment takes.
func (c *Cost) add(u *ioplan.IOTask, g *ioplan.Segment, from, to int, opts *Options) {
	for {
		lo, hi := g.NextRun(from, to)
		if lo == to {
			return
		}
		u.Plan(g, lo, hi, opts.sizes())
		from = u.To
		c.Stripes += uint64(u.To - u.From)
		c.Requests += uint64(len(u.Requests))
		c.BytesNeeded += u.Needed
		c.BytesUnneeded += u.Unneeded
	}
}
