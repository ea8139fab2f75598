package overlay

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/dedup"
	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// The values of a segment's covered rows, for a layer.
type values struct {
	covered vector.Bitmap // rows of the segment; nil: every one that is not deleted
	count   uint64        // of them
	// open returns what appends the values of feature f, by place in the overlay's, for the covered rows in order. It
	// is called by several goroutines, for a feature each, and what it returns by one.
	open func(f int) (appender, error)
}

// An appender appends the values of the next n covered rows to a column of the feature's type.
type appender func(dst *vector.Column, n int) error

// A layerWriter writes layers of an overlay.
type layerWriter struct {
	table   *storage.Table
	overlay *catalog.Overlay
	profile format.Profile
	opts    *Options
	choices []dedup.Choice // by feature, from the segments before
	seekers sync.Pool      // of *seeker
}

// A seeker is the memory of one worker that makes stripes.
type seeker struct {
	column vector.Column
	finder dedup.Finder
	sizer  format.Sizer
}

func newLayerWriter(t *storage.Table, o *catalog.Overlay, profile format.Profile, opts *Options) *layerWriter {
	return &layerWriter{
		table: t, overlay: o, profile: profile, opts: opts, choices: make([]dedup.Choice, len(o.Features)),
		seekers: sync.Pool{New: func() any { return new(seeker) }},
	}
}

// write writes the layer over a segment. It is durable when write returns. The caller commits or discards it. nulls
// says, of each feature, how many of the covered rows are null.
func (w *layerWriter) write(ctx context.Context, s *baseSegment, vals values) (
	layer catalog.OverlaySegment, nulls []uint64, err error) {
	store := w.table.Store()
	base, err := store.Segments().Open(ctx, s.SegmentDescriptor)
	if err != nil {
		return layer, nil, fmt.Errorf("layer over segment %s: %w", s.ID, err)
	}
	stripes := base.StripeRows()
	share := w.opts.encodeShare()
	out, err := w.table.NewSegment(ctx, s.Partition, stripes, segment.Options{
		HoldBytes: min(max(share, 1<<20), 128<<20), StandAloneBytes: min(max(share/8, 1<<20), 16<<20),
		Profile: w.profile,
	})
	if err != nil {
		return layer, nil, err
	}
	defer out.Abort() // which does nothing once it is finished
	nulls = make([]uint64, len(w.overlay.Features))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(w.opts.Workers)
	for f := range w.overlay.Features {
		// Begun in order: one that waits for its predecessors finds them running.
		g.Go(func() (err error) {
			nulls[f], err = w.feature(gctx, out, f, s, stripes, vals)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return layer, nil, err
	}
	layer = catalog.OverlaySegment{Overlay: w.overlay.Name, Segment: s.ID, All: vals.count == s.rows}
	if layer.Data, err = out.Finish(ctx); err != nil {
		return layer, nil, err
	}
	if !layer.All {
		// A layer without any covered row says what the features are in all of them.
		rows := roaring.New()
		if vals.count > 0 {
			rows = roaring.FromDense(vals.covered, false)
			rows.RunOptimize()
		}
		if layer.Covered, err = store.Bitmaps().Put(ctx, s.ID, s.Rows, rows); err != nil {
			w.discard(ctx, layer)
			return layer, nil, err
		}
	}
	return layer, nulls, nil
}

// discard removes a layer that is not committed. gc removes what it cannot.
func (w *layerWriter) discard(ctx context.Context, l catalog.OverlaySegment) {
	_ = w.table.Store().Segments().Discard(ctx, l.Data)
	_ = w.table.Store().Bitmaps().Discard(ctx, l.Covered)
}

// feature writes feature f of a layer, and returns how many of the covered rows are null. One that is null everywhere
// is written, too: a layer has all features of its overlay.
func (w *layerWriter) feature(ctx context.Context, out *segment.Writer, f int, s *baseSegment, stripes []uint32,
	vals values) (nulls uint64, err error) {
	k := w.seekers.Get().(*seeker)
	defer w.seekers.Put(k)
	feature := w.overlay.Features[f]
	k.sizer.Profile = w.profile
	k.finder.Reset(feature.Type, dedup.Options{Sizer: &k.sizer, NsPerByte: w.profile.NsPerByte()}, w.choices[f])
	read, err := vals.open(f)
	if err != nil {
		return 0, fmt.Errorf("feature %s: %w", feature.Name, err)
	}
	err = out.AddFeature(ctx, f, feature, func(to *format.Writer) error {
		k.column.Type = feature.Type
		fill := filler{column: &k.column, read: read, dead: s.dead, covered: vals.covered}
		first := 0
		for _, n := range stripes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fill.stripe(first, first+int(n)); err != nil {
				return err
			}
			if err := to.WriteStripe(k.finder.Find(&k.column)); err != nil {
				return err
			}
			first += int(n)
		}
		nulls = fill.nulls
		w.choices[f] = k.finder.Choice()
		found := k.finder.Stats()
		to.Note(format.Found{Partial: uint64(found.Partial), SavedBytes: uint64(max(found.SavedBytes, 0))})
		return nil
	})
	return nulls, err
}

// A filler makes the stripes of a feature of a layer. Covered rows have their values, and deleted ones are null. The
// values of other rows are never read. In a dense feature they repeat the row before, so that neither a presence bitmap
// nor the range of the values grows with them; in others they are null.
type filler struct {
	column        *vector.Column
	read          appender
	dead, covered vector.Bitmap // as segment.dead and values.covered
	nulls         uint64        // of what was read
}

// fill reads the next n covered rows.
func (x *filler) fill(n int) error {
	c := x.column
	before := c.Rows
	if err := x.read(c, n); err != nil {
		return err
	}
	for row := before; c.Present != nil && row < c.Rows; row++ {
		if c.IsNull(row) {
			x.nulls++
		}
	}
	return nil
}

// stripe makes the column that of rows [from, to) of the segment.
func (x *filler) stripe(from, to int) error {
	c := x.column
	c.Reset()
	ahead := 0 // rows before the first with a value, which get that
	for row := from; row < to; {
		switch {
		case x.dead != nil && x.dead.Get(row):
			end := runEnd(x.dead, row, to, true)
			c.AppendNulls(ahead + end - row)
			row, ahead = end, 0
		case x.covered != nil && !x.covered.Get(row):
			end := runEnd(x.covered, row, to, false)
			if x.dead != nil {
				end = runEnd(x.dead, row, end, false)
			}
			switch n := end - row; {
			case c.Type.Kind != vector.Dense:
				c.AppendNulls(n)
			case c.Rows == 0:
				ahead += n
			default:
				repeat(c, n)
			}
			row = end
		default:
			end := to
			if x.covered != nil {
				end = runEnd(x.covered, row, end, true)
			}
			if x.dead != nil {
				end = runEnd(x.dead, row, end, false)
			}
			before, n := c.Rows, end-row
			if ahead > 0 {
				if err := x.fill(1); err != nil {
					return err
				}
				repeat(c, ahead)
				before, n, ahead = before+ahead, n-1, 0
			}
			if err := x.fill(n); err != nil {
				return err
			}
			if c.Rows != before+end-row {
				return fmt.Errorf("%d rows for %d that are covered", c.Rows-before, end-row)
			}
			row = end
		}
	}
	c.AppendNulls(ahead)
	return nil
}

// repeat appends the last row of a dense column n times.
func repeat(c *vector.Column, n int) {
	last := c.Rows - 1
	if c.IsNull(last) {
		c.AppendNulls(n)
		return
	}
	switch c.Type.Physical() {
	case vector.Int64Values:
		c.Ints = repeated(c.Ints, n)
	case vector.Float32Values:
		c.Floats = repeated(c.Floats, n)
	case vector.Float64Values:
		c.Doubles = repeated(c.Doubles, n)
	}
	c.AddPresent(n)
}

func repeated[T any](s []T, n int) []T {
	v := s[len(s)-1]
	for range n {
		s = append(s, v)
	}
	return s
}

// runEnd returns the first position after from, to at the most, whose bit is not the one given, which that of from is.
func runEnd(b vector.Bitmap, from, to int, bit bool) int {
	for i := from; i < to; {
		w := b[i>>6] >> (uint(i) & 63)
		if bit {
			w = ^w
		}
		if w != 0 {
			return min(i+bits.TrailingZeros64(w), to)
		}
		i = i&^63 + 64
	}
	return to
}
