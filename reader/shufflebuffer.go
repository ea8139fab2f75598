package reader

import (
	"context"
	"slices"
	"sort"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/internal/lru"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/order"
	"github.com/dsistore/dsistore/storage/object"
)

// A chunk is consecutive stripes of a segment that are read one after the other.
type chunk struct {
	load   *segmentLoad
	weight int64 // bytes of run.indexes
	// buffer is the shuffle buffer of the stripes. nil: the plan does not shuffle, and the chunk is the whole segment.
	buffer *order.Buffer
	// With a buffer:
	from, to int      // stripes [from, to) of the segment
	rows     []uint32 // selected rows of each stripe of the segment
	left     int      // stripes of the segment from here to the end of its group
	last     bool     // it is the last chunk of the buffer
	// dropped are loads that no later chunk uses. (Later stripes of their segments have a load of their own.)
	dropped []*segmentLoad
}

// check returns ErrCorrupt if the segment does not have the stripes that the buffer was made of. Its index is read once
// for the buffer, and again for the features.
func (c *chunk) check(l *Layout) error {
	g := c.load.segment
	same := g.Stripes() == len(c.rows)
	for i := 0; same && i < len(c.rows); i++ {
		same = g.Starts[i+1]-g.Starts[i] == uint64(c.rows[i])
	}
	if same {
		return nil
	}
	return &format.CorruptError{
		Object: l.segments[c.load.index].Index, Stripe: -1, Offset: -1, Reason: "its stripes changed between two reads",
	}
}

// A segmentLoad is a segment that is being loaded.
type segmentLoad struct {
	index   int // in the layout
	segment *ioplan.Segment
	err     error
	done    chan struct{} // closed when segment or err is set
}

// indexReaders is how many indexes of segments are read concurrently.
const indexReaders = 64

// walkBuffers calls yield for the chunks of the buffers of an epoch, starting with the buffer of row first, until yield
// returns false. It does not set chunk.load. It reads the indexes of the segments of each group for their stripes.
func (l *Layout) walkBuffers(ctx context.Context, o *order.Epoch, first uint64,
	yield func(segment int, c chunk) bool) error {
	for group := o.GroupAt(first); group < o.Groups(); group++ {
		segments := o.Group(group)
		stripeRows, err := l.stripeRowsOf(ctx, segments)
		if err != nil {
			return err
		}
		buffers := o.Buffers(group, stripeRows)
		from := max(sort.Search(len(buffers), func(i int) bool { return buffers[i].FirstRow > first })-1, 0)
		left := make([]int, len(segments))
		for i := from; i < len(buffers); i++ {
			for _, ref := range buffers[i].Stripes {
				left[ref.Segment]++
			}
		}
		for i := from; i < len(buffers); i++ {
			w := &buffers[i]
			for at := 0; at < len(w.Stripes); {
				ref := w.Stripes[at]
				n := 1
				for at+n < len(w.Stripes) && w.Stripes[at+n] == (order.StripeRef{Segment: ref.Segment,
					Stripe: ref.Stripe + int32(n)}) {
					n++
				}
				at += n
				c := chunk{
					buffer: w, from: int(ref.Stripe), to: int(ref.Stripe) + n, rows: stripeRows[ref.Segment],
					left: left[ref.Segment], last: at == len(w.Stripes),
				}
				left[ref.Segment] -= n
				if !yield(int(segments[ref.Segment]), c) {
					return nil
				}
			}
		}
	}
	return nil
}

// stripeRowsOf returns stripeRows of segments, which it reads concurrently. Of several errors it returns the first in
// order.
func (l *Layout) stripeRowsOf(ctx context.Context, segments []int32) ([][]uint32, error) {
	out := make([][]uint32, len(segments))
	err := execution.Parallel(len(segments), indexReaders, func(i int) (err error) {
		out[i], err = l.stripeRows(ctx, int(segments[i]))
		return err
	})
	return out, err
}

// stripeRows returns the number of selected rows of each stripe of a segment.
func (l *Layout) stripeRows(ctx context.Context, seg int) ([]uint32, error) {
	index, err := l.open(ctx, l.segments[seg])
	if err != nil {
		return nil, err
	}
	rows := slices.Clone(index.StripeRows())
	if _, err := ioplan.Cumulate(l.segments[seg], rows); err != nil {
		return nil, err
	}
	return ioplan.SelectedRows(rows, l.selectionOf(seg)), nil
}

// bytesPerStripe is the approximate memory of a loaded segment for each stripe of a feature.
const bytesPerStripe = 256

// A segmentCache keeps the segments that were used last, because later buffers may use them again. It is used by one
// goroutine.
type segmentCache struct {
	load    func(index int) *segmentLoad
	width   int // features read
	kept    *lru.Cache[int, *segmentLoad]
	dropped []*segmentLoad
}

// newSegmentCache returns a segmentCache that holds about so many bytes. load starts loading a segment.
func (l *Layout) newSegmentCache(bytes int64, load func(index int) *segmentLoad) *segmentCache {
	c := &segmentCache{load: load, width: len(l.features)}
	c.kept = lru.New(bytes, func(_ int, x *segmentLoad) { c.dropped = append(c.dropped, x) })
	return c
}

// get returns a segment, which has so many stripes, and the segments that it removed from the cache.
func (c *segmentCache) get(index, stripes int) (load *segmentLoad, dropped []*segmentLoad) {
	load, ok := c.kept.Get(index)
	if !ok {
		c.dropped = nil
		load = c.load(index)
		c.kept.Put(index, load, int64(stripes)*int64(c.width)*bytesPerStripe)
		dropped = c.dropped
	}
	return load, dropped
}

// segmentLoads is how many segments are loaded concurrently for shuffle buffers, from a store of low latency.
const segmentLoads = 8

// openBuffers sends the chunks of the buffers, whose segments are being loaded.
func (r *run) openBuffers(ctx context.Context) {
	defer close(r.chunks)
	if r.first >= r.end {
		return
	}
	l := r.s.layout
	loads := segmentLoads
	if object.HighLatency(l.blobs) {
		loads = indexReaders
	}
	slots := make(chan struct{}, loads)
	cache := l.newSegmentCache(r.s.opts.MemoryBudget/4, func(index int) *segmentLoad {
		x := &segmentLoad{index: index, done: make(chan struct{})}
		slots <- struct{}{}
		r.wg.Go(func() {
			x.segment, x.err = l.loadSegment(ctx, x.index)
			close(x.done)
			<-slots
		})
		return x
	})
	err := l.walkBuffers(ctx, order.New(l.firstRow, l.plan.Shuffle, r.epoch), r.first, func(segment int, c chunk) bool {
		if c.buffer.FirstRow >= r.end {
			return false
		}
		c.load, c.dropped = cache.get(segment, len(c.rows))
		select {
		case r.chunks <- c:
			return true
		case <-r.done:
			return false
		}
	})
	if err != nil {
		failed := &segmentLoad{err: err, done: make(chan struct{})}
		close(failed.done)
		select {
		case r.chunks <- chunk{load: failed}:
		case <-r.done:
		}
	}
}
