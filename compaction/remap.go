package compaction

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/writer"
)

// A rewritten holds the inputs of a job and the segments that were made of them.
type rewritten struct {
	store  *storage.Store
	inputs []*input
	// overlays are those that have a layer over an input and stay overlays. layers[i][j] is the layer of overlays[j]
	// over inputs[i]; nil: there is none.
	overlays []catalog.Overlay
	layers   [][]*layer
	result   *writer.RewriteResult
}

// A rowRemap maps sets of row ids of the inputs to sets of row ids of the new segments. The sets are those of a
// deletion vector, a sample list or an overlay.
type rowRemap struct {
	sets []*roaring.Bitmap // by input; nil: every row
	// take is called with the set of each new segment, and owns it.
	take func(segment writer.Rewritten, rows *roaring.Bitmap) error

	moved     *roaring.Bitmap // the set of the current new segment, so far
	iterators []roaring.IntPeekable
	last      []uint32 // by input: the iterator is past the rows below
}

// remapsAtOnce is how many remaps are in memory and applied at once. Each time, the origins of the new rows are read.
const remapsAtOnce = 32

// apply applies remaps to all new segments.
func (w *rewritten) apply(ctx context.Context, all []*rowRemap) error {
	for _, segment := range w.result.Segments {
		for _, c := range all {
			c.begin()
		}
		err := w.result.Origins(segment.Rows, func(at uint32, o writer.Origin) error {
			if o.Row == 0 || at&0xffff == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			for _, c := range all {
				c.add(at, o)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, c := range all {
			if err := c.take(segment, c.moved); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin starts another new segment.
func (c *rowRemap) begin() {
	c.moved, c.last, c.iterators = roaring.New(), make([]uint32, len(c.sets)), make([]roaring.IntPeekable, len(c.sets))
	for i, s := range c.sets {
		if s != nil {
			c.iterators[i] = s.Iterator()
		}
	}
}

// add adds the rows of c.sets among rows o, which are rows [at, at+o.N) of the new segment.
func (c *rowRemap) add(at uint32, o writer.Origin) {
	if c.sets[o.Input] == nil {
		c.moved.AddRange(uint64(at), uint64(at)+uint64(o.N))
		return
	}
	it := c.iterators[o.Input]
	if o.Row < c.last[o.Input] {
		it = c.sets[o.Input].Iterator()
		c.iterators[o.Input] = it
	}
	c.last[o.Input] = o.Row + o.N
	it.AdvanceIfNeeded(o.Row)
	for it.HasNext() && uint64(it.PeekNext()) < uint64(o.Row)+uint64(o.N) {
		c.moved.Add(at + it.Next() - o.Row)
	}
}

// sets reads stored sets, one for each input. some is false if all are empty.
func (w *rewritten) sets(ctx context.Context, stored []bitmap.Ref) (out []*roaring.Bitmap, some bool, err error) {
	out = make([]*roaring.Bitmap, len(stored))
	for i, s := range stored {
		if out[i], err = w.store.Bitmaps().Read(ctx, s); err != nil {
			return nil, false, err
		}
		some = some || !out[i].IsEmpty()
	}
	return out, some, nil
}

// A remapped is the part of a commit that results from the remaps.
type remapped struct {
	store   *storage.Store
	deletes []commit.DeletionVector
	layers  []catalog.OverlaySegment
	lists   []commit.ListRows
	unused  []catalog.SegmentDescriptor // layers that cover no row
}

// discard deletes the objects of its sets, which no commit names. gc deletes those that discard could not delete.
func (c *remapped) discard(ctx context.Context) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	drop := func(r bitmap.Ref) { _ = c.store.Bitmaps().Discard(ctx, r) }
	for _, d := range c.deletes {
		drop(d.Rows)
	}
	for _, l := range c.layers {
		drop(l.Covered)
	}
	for _, l := range c.lists {
		drop(l.Rows)
	}
}

// remap makes the sets of the new segments from the sets of the inputs in a snapshot: sample lists, overlays, and the
// rows that were deleted since the inputs were read.
func (w *rewritten) remap(ctx context.Context, snap *storage.Snapshot) (_ *remapped, err error) {
	c := &remapped{store: w.store}
	defer func() {
		if err != nil {
			c.discard(ctx)
		}
	}()
	ds := make([]catalog.SegmentDescriptor, len(w.inputs))
	for i, in := range w.inputs {
		ds[i] = in.d
	}
	var waiting []*rowRemap
	flush := func() error {
		err := w.apply(ctx, waiting)
		waiting = nil
		return err
	}
	load := func(x *rowRemap) error {
		if waiting = append(waiting, x); len(waiting) == remapsAtOnce {
			return flush()
		}
		return nil
	}
	deleted, err := w.deletedSince(ctx, snap, ds, c)
	if err != nil {
		return nil, err
	}
	if deleted != nil {
		waiting = append(waiting, deleted)
	}
	lists, err := snap.SampleLists(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range lists {
		stored, err := snap.ListedRows(ctx, l.Name, ds...)
		if err != nil {
			return nil, err
		}
		sets, some, err := w.sets(ctx, stored)
		if err != nil {
			return nil, err
		}
		if !some {
			continue
		}
		if err := load(&rowRemap{sets: sets, take: w.storeRows(ctx, func(segment string, rows bitmap.Ref) {
			c.lists = append(c.lists, commit.ListRows{List: l.Name, Segment: segment, Rows: rows})
		})}); err != nil {
			return nil, err
		}
	}
	for j, o := range w.overlays {
		if err := load(w.layersOf(ctx, j, o, c)); err != nil {
			return nil, err
		}
	}
	if len(waiting) > 0 {
		err = flush()
	}
	return c, err
}

// storeRows returns a rowRemap.take that stores a set, unless it is empty, and calls add with it.
func (w *rewritten) storeRows(ctx context.Context,
	add func(segment string, rows bitmap.Ref)) func(writer.Rewritten, *roaring.Bitmap) error {
	return func(segment writer.Rewritten, rows *roaring.Bitmap) error {
		if rows.IsEmpty() {
			return nil
		}
		set, err := w.store.Bitmaps().Put(ctx, segment.Data.ID, segment.Data.Rows, rows)
		if err != nil {
			return err
		}
		add(segment.Data.ID, set)
		return nil
	}
}

// deletedSince returns the remap of the rows that were deleted since the inputs were read; nil: there are none.
func (w *rewritten) deletedSince(ctx context.Context, snap *storage.Snapshot, ds []catalog.SegmentDescriptor,
	c *remapped) (*rowRemap, error) {
	deleted, err := snap.DeletionVectors(ctx, ds...)
	if err != nil {
		return nil, err
	}
	sets, _, err := w.sets(ctx, deleted)
	if err != nil {
		return nil, err
	}
	some := false
	for i := range ds {
		if w.inputs[i].deleted != nil {
			sets[i].AndNot(w.inputs[i].deleted)
		}
		some = some || !sets[i].IsEmpty()
	}
	if !some {
		return nil, nil
	}
	return &rowRemap{sets: sets, take: w.storeRows(ctx, func(segment string, rows bitmap.Ref) {
		c.deletes = append(c.deletes, commit.DeletionVector{Segment: segment, Rows: rows})
	})}, nil
}

// layersOf returns the remap of the rows that w.overlays[j] covers.
func (w *rewritten) layersOf(ctx context.Context, j int, o catalog.Overlay, c *remapped) *rowRemap {
	sets := make([]*roaring.Bitmap, len(w.inputs))
	for i := range w.inputs {
		sets[i] = w.layers[i][j].covers()
	}
	return &rowRemap{sets: sets, take: func(segment writer.Rewritten, rows *roaring.Bitmap) (err error) {
		if rows.IsEmpty() && !splits(o) {
			c.unused = append(c.unused, segment.Layers[j])
			return nil
		}
		l := catalog.OverlaySegment{Overlay: o.Name, Segment: segment.Data.ID, Data: segment.Layers[j]}
		if l.All = rows.GetCardinality() == segment.Data.Rows; !l.All {
			if l.Covered, err = w.store.Bitmaps().Put(ctx, segment.Data.ID, segment.Data.Rows, rows); err != nil {
				return err
			}
		}
		c.layers = append(c.layers, l)
		return nil
	}}
}
