package compaction

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/tools/ingest"
)

// A rewritten is what became of the inputs of a job.
type rewritten struct {
	store  *storage.Store
	inputs []*input
	// overlays are those that have a layer over an input and are carried; layers[i][j] is the layer of overlays[j] over inputs[i].
	overlays []storage.Overlay
	layers   [][]*layer
	result   *ingest.RewriteResult
}

// move returns which rows of a new segment were in the given sets, one an input; nil: every row.
func (w *rewritten) move(ctx context.Context, segment ingest.Rewritten, sets []*roaring.Bitmap) (*roaring.Bitmap, error) {
	out := roaring.New()
	iterators := make([]roaring.IntPeekable, len(sets))
	for i, s := range sets {
		if s != nil {
			iterators[i] = s.Iterator()
		}
	}
	last := make([]uint32, len(sets)) // rows before it have passed the iterator
	err := w.result.Origins(segment.Rows, func(at uint32, o ingest.Origin) error {
		if o.Row == 0 || at&0xffff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if sets[o.Input] == nil {
			out.AddRange(uint64(at), uint64(at)+uint64(o.N))
			return nil
		}
		it := iterators[o.Input]
		if o.Row < last[o.Input] {
			it = sets[o.Input].Iterator()
			iterators[o.Input] = it
		}
		last[o.Input] = o.Row + o.N
		it.AdvanceIfNeeded(o.Row)
		for it.HasNext() && uint64(it.PeekNext()) < uint64(o.Row)+uint64(o.N) {
			out.Add(at + it.Next() - o.Row)
		}
		return nil
	})
	return out, err
}

// sets returns the rows of stored sets, one an input, and whether there are any.
func (w *rewritten) sets(ctx context.Context, stored []storage.RowSet) (out []*roaring.Bitmap, some bool, err error) {
	out = make([]*roaring.Bitmap, len(stored))
	for i, s := range stored {
		if out[i], err = w.store.ReadRows(ctx, s); err != nil {
			return nil, false, err
		}
		some = some || !out[i].IsEmpty()
	}
	return out, some, nil
}

// A carriage is what of a change follows the rows.
type carriage struct {
	store   *storage.Store
	deletes []storage.Deletes
	layers  []storage.Layer
	lists   []storage.ListRows
	unused  []storage.SegmentDescriptor // layers that cover no row
}

// discard deletes the objects of its sets: no commit names them.
func (c *carriage) discard(ctx context.Context) {
	drop := func(r storage.RowSet) { _ = c.store.DiscardRows(context.WithoutCancel(ctx), r) } // what stays, gc finds
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

// carry makes the sets of the new segments from those that a snapshot has of the inputs. Rows that were deleted since the inputs were read
// are deleted of the new segments.
func (w *rewritten) carry(ctx context.Context, snap *storage.Snapshot) (_ *carriage, err error) {
	c := &carriage{store: w.store}
	defer func() {
		if err != nil {
			c.discard(ctx)
		}
	}()
	ds := make([]storage.SegmentDescriptor, len(w.inputs))
	for i, in := range w.inputs {
		ds[i] = in.d
	}
	if err := w.carryDeletes(ctx, snap, ds, c); err != nil {
		return nil, err
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
		err = w.put(ctx, stored, func(segment string, rows storage.RowSet) {
			c.lists = append(c.lists, storage.ListRows{List: l.Name, Segment: segment, Rows: rows})
		})
		if err != nil {
			return nil, err
		}
	}
	return c, w.carryLayers(ctx, c)
}

// put moves sets to the new segments; add takes those that have rows.
func (w *rewritten) put(ctx context.Context, stored []storage.RowSet, add func(segment string, rows storage.RowSet)) error {
	sets, some, err := w.sets(ctx, stored)
	if err != nil || !some {
		return err
	}
	return w.putSets(ctx, sets, add)
}

func (w *rewritten) putSets(ctx context.Context, sets []*roaring.Bitmap, add func(segment string, rows storage.RowSet)) error {
	for _, segment := range w.result.Segments {
		rows, err := w.move(ctx, segment, sets)
		if err != nil {
			return err
		}
		if rows.IsEmpty() {
			continue
		}
		set, err := w.store.PutRows(ctx, segment.Data, rows)
		if err != nil {
			return err
		}
		add(segment.Data.ID, set)
	}
	return nil
}

func (w *rewritten) carryDeletes(ctx context.Context, snap *storage.Snapshot, ds []storage.SegmentDescriptor, c *carriage) error {
	deleted, err := snap.DeletedRows(ctx, ds...)
	if err != nil {
		return err
	}
	sets := make([]*roaring.Bitmap, len(ds))
	some := false
	for i := range ds {
		if sets[i], err = w.store.ReadRows(ctx, deleted[i]); err != nil {
			return err
		}
		if w.inputs[i].deleted != nil {
			sets[i].AndNot(w.inputs[i].deleted)
		}
		some = some || !sets[i].IsEmpty()
	}
	if !some {
		return nil
	}
	return w.putSets(ctx, sets, func(segment string, rows storage.RowSet) {
		c.deletes = append(c.deletes, storage.Deletes{Segment: segment, Rows: rows})
	})
}

func (w *rewritten) carryLayers(ctx context.Context, c *carriage) error {
	for j, o := range w.overlays {
		sets := make([]*roaring.Bitmap, len(w.inputs))
		for i := range w.inputs {
			sets[i] = w.layers[i][j].covers()
		}
		for _, segment := range w.result.Segments {
			rows, err := w.move(ctx, segment, sets)
			if err != nil {
				return err
			}
			if rows.IsEmpty() && !splits(o) {
				c.unused = append(c.unused, segment.Layers[j])
				continue
			}
			l := storage.Layer{Overlay: o.Name, Segment: segment.Data.ID, Data: segment.Layers[j]}
			if l.All = rows.GetCardinality() == segment.Data.Rows; !l.All {
				if l.Covered, err = w.store.PutRows(ctx, segment.Data, rows); err != nil {
					return err
				}
			}
			c.layers = append(c.layers, l)
		}
	}
	return nil
}
