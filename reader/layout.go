package reader

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
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

// A Layout is a plan resolved against its snapshot: it knows where the plan's rows are. It is immutable and safe for
// concurrent use.
type Layout struct {
	plan     *plan.Plan
	blobs    object.Store
	segments []catalog.SegmentDescriptor
	firstRow []uint64 // of each segment in the plan's own order, and the total at the end
	// selected are the rows to read, by segment; a nil element: every row; nil: every row of all segments.
	selected       []*roaring.Bitmap
	rowSelectRatio int
	gatheredRun    int
	pruning        *Pruning // nil: no filter
	// weighted are the rows that have weight, by segment; other rows have 1; nil: the plan has no weights.
	weighted []*roaring.Bitmap
	weight   float32
	// features are the features to read, with their stored types: the plan's, then the session key if it is needed and
	// not among them.
	features   []catalog.Feature
	sessionKey int32 // its position in features, or -1
	open       func(ctx context.Context, d catalog.SegmentDescriptor) (segmentIndex, error)
	snapshots  []*storage.Snapshot // of the plan; leases protect them while they are read
	table      *storage.Table      // nil: usage is not recorded
	filters    filterReads         // what filters read
	counted    countedFeatures     // for usage records
	// overlays are those that have some of the features or of the filter's features, the lowest first (overlays.go).
	overlays []catalog.Overlay
	layers   [][]*catalog.OverlaySegment // by segment and overlay; nil: the overlay has no layer over the segment
	covered  coverage
	chains   [][]int32 // distinct lists of overlays, the highest first, that features have; nil: no feature has any
	chainOf  []int32   // the chain of each of features, or -1
	read     []int32   // overlays that are in chains, ascending
	// transformers has an element for each of features, nil if it has no transforms.
	transformers []*transform.Program
}

// segmentIndex is the part of a segment.Reader that reading needs.
type segmentIndex interface {
	StripeRows() []uint32
	Lookup(ctx context.Context, ids ...catalog.FeatureID) ([]*segment.Entry, error)
}

// LayoutOptions say how a layout evaluates its plan's filter. Except for Within they do not change which rows are
// selected. The zero value works.
type LayoutOptions struct {
	// Read has the memory, workers and requests to use; for Matching also the usage options. Its other fields are
	// ignored.
	Read Options
	// Selections cache the rows that filters select, for later layouts. Default: 64 MiB that all layouts of the process
	// share.
	Selections *Selections
	// View is the view that the plan was made of. Its open snapshots are not opened again. Default: they are opened.
	View *storage.View
	// Within restricts the rows of segments, by segment id. Segments that are not in it are not restricted. Borrowed.
	Within map[string]*roaring.Bitmap
}

// NewLayout lists the segments that the plan selects. Without a filter it opens none of them. With a filter it reads
// the filter's features of segments in which partition values and statistics do not decide. snap must be the plan's
// snapshot.
func NewLayout(ctx context.Context, snap *storage.Snapshot, p *plan.Plan) (*Layout, error) {
	return NewLayoutWith(ctx, snap, p, LayoutOptions{})
}

// NewLayoutWith is NewLayout with options.
func NewLayoutWith(ctx context.Context, snap *storage.Snapshot, p *plan.Plan, opts LayoutOptions) (*Layout, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if name, n := snap.Table().Name(), snap.Info().Number; name != p.Table || n != p.Snapshot {
		return nil, fmt.Errorf("plan: it is for table %s, snapshot %d, not for table %s, snapshot %d",
			p.Table, p.Snapshot, name, n)
	}
	return layoutOf(ctx, snap, p, opts)
}

// layoutOf is NewLayoutWith for a plan that need not have features.
func layoutOf(ctx context.Context, snap *storage.Snapshot, p *plan.Plan, opts LayoutOptions) (*Layout, error) {
	l, err := newLayoutOf(ctx, snap, p, opts)
	return l, expiredOr(ctx, err, snap)
}

// expiredWithin is how long it may take to find out whether a snapshot has expired.
const expiredWithin = 10 * time.Second

// expiredOr returns err. But if it is about damage, and one of the snapshots has expired, it returns that as an error,
// which matches storage.ErrNotFound: an erasure, or gc, has removed their data, and there is nothing to repair.
func expiredOr(ctx context.Context, err error, snapshots ...*storage.Snapshot) error {
	if !errors.Is(err, format.ErrCorrupt) {
		return err
	}
	// The caller may wait in short steps, and has waited: what the error means is worth some requests.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), expiredWithin)
	defer cancel()
	for _, s := range snapshots {
		if gone := s.Unexpired(ctx); errors.Is(gone, storage.ErrNotFound) {
			return gone
		}
	}
	return err
}

func newLayoutOf(ctx context.Context, snap *storage.Snapshot, p *plan.Plan, opts LayoutOptions) (*Layout, error) {
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

// filter restricts the layout to rows for which a filter is true. features are those that the filter reads.
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

// evaluate returns the rows of each segment for which a filter is true; nil: every row. features are those that the
// filter reads.
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
	return rows, v.pruning, nil // a copy: a pointer into v would keep its decoders and buffers alive
}

// Pruning returns the counts of evaluating the plan's filter; nil: it has none. Borrowed: do not write.
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
		isKey := f.Role == catalog.RoleSessionKey
		if p.Shuffle.Key.ID != 0 {
			isKey = f.ID == p.Shuffle.Key.ID
		}
		if isKey && !plan.IsPartitionKey(f) {
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
			return nil, fmt.Errorf("segment %s: its %d rows and %d before them are more than a plan may have, %d", d.ID,
				d.Rows, total, int64(math.MaxInt64))
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

// Segments returns how many segments have such rows.
func (l *Layout) Segments() int { return len(l.segments) }

// Batches returns how many batches an epoch has.
func (l *Layout) Batches() uint64 { return batchCount(l.Rows(), l.plan.BatchSize) }

func batchCount(rows uint64, size int) uint64 {
	return rows/uint64(size) + uint64(min(1, rows%uint64(size)))
}

// segmentAt returns the segment of a row of the plan's order, which must be less than Rows.
func (l *Layout) segmentAt(row uint64) int {
	return sort.Search(len(l.segments), func(i int) bool { return l.firstRow[i+1] > row })
}

// Splits divides the plan into at most n parts of about equal rows, at stripe boundaries, so that no two parts read the
// same stripe. Together they have each row once, in order. It returns plan.ErrSplitShuffled for a plan that shuffles,
// because the rows of a split must not depend on the epoch. It opens the segments at the boundaries, at most n-1.
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

// nearest returns the element of the ascending, non-empty list that is closest to v.
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

// mulDiv returns rows*i/n without overflow, for i <= n < 1<<32.
func mulDiv(rows, i, n uint64) uint64 { return rows/n*i + rows%n*i/n }

// A Cost counts what reading takes.
type Cost struct {
	Rows, Segments, Stripes    uint64
	Requests                   uint64
	BytesNeeded, BytesUnneeded uint64
}

// Cost opens every segment and returns what a Scanner with the same options would read in an epoch. All epochs of a
// plan that shuffles read the same stripes; requests are those of epoch 0.
func (l *Layout) Cost(ctx context.Context, opts Options) (Cost, error) {
	opts, err := opts.withDefaults(l.blobs)
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
	x := coster{cost: &c, fetches: l.newFetchPlan(&opts)}
	for row := first; row < end; {
		from := l.segmentAt(row)
		some := make([]*ioplan.Segment, 0, indexReaders)
		for i := from; len(some) < cap(some) && i < len(l.segments) && l.firstRow[i] < end; i++ {
			some = append(some, nil)
		}
		err := execution.Parallel(len(some), indexReaders, func(i int) (err error) {
			if l.segments[from+i].Rows > 0 {
				some[i], err = l.loadSegment(ctx, from+i)
			}
			return err
		})
		if err != nil {
			return Cost{}, err
		}
		for i, g := range some {
			if g == nil {
				continue
			}
			c.Segments++
			lo, hi := g.StripesOf(max(row, l.firstRow[from+i]), end)
			x.add(g, lo, hi)
		}
		row = l.firstRow[from+len(some)]
	}
	return c, nil
}

// costShuffled adds up the chunks of the buffers of epoch 0.
func (l *Layout) costShuffled(ctx context.Context, c *Cost, opts *Options) error {
	sum := coster{cost: c, fetches: l.newFetchPlan(opts)}
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
			sum.add(x.load.segment, x.from, x.to)
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

// A coster adds up the cost of an epoch's I/O tasks.
type coster struct {
	cost    *Cost
	fetches fetchPlan
	task    ioplan.IOTask // the memory of each
}

// add counts what reading stripes [from, to) of a segment takes.
func (x *coster) add(g *ioplan.Segment, from, to int) {
	c, u := x.cost, &x.task
	for {
		lo, hi := g.NextRun(from, to)
		if lo == to {
			return
		}
		u.Plan(g, lo, hi, x.fetches.next())
		x.fetches.planned(u)
		from = u.To
		c.Stripes += uint64(u.To - u.From)
		c.Requests += uint64(len(u.Requests))
		c.BytesNeeded += u.Needed
		c.BytesUnneeded += u.Unneeded
	}
}
