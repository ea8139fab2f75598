package commit

import (
	"context"
	"fmt"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

// A DeletionVector has rows of a segment that a commit deletes. Readers of its snapshot, and of later ones, do not see
// them.
type DeletionVector struct {
	Segment string     // id
	Rows    bitmap.Ref // of bitmap.Store.Put
}

// DeleteRows adds rows to the deletion vectors of segments.
type DeleteRows []DeletionVector

func (DeleteRows) phase() phase { return phaseRows }

func (v DeleteRows) validate(*Change) error {
	var once checkOnce
	for _, d := range v {
		_, err := names.ParseID(d.Segment)
		once.check(err, "deletes of segment", d.Segment)
	}
	return once.err
}

func (v DeleteRows) adds() (_ []catalog.SegmentDescriptor, rows []bitmap.Ref) {
	for _, d := range v {
		rows = append(rows, d.Rows)
	}
	return nil, rows
}

func (v DeleteRows) apply(ctx context.Context, e *edit) error {
	var ids []string
	for _, d := range v {
		ids = append(ids, d.Segment)
	}
	segments, err := e.under(ctx, ids)
	if err != nil {
		return fmt.Errorf("deletes: %w", err)
	}
	before, err := e.base.DeletionVectors(ctx, segments...)
	if err != nil {
		return err
	}
	for i, d := range v {
		if err := d.Rows.Fits(d.Segment, segments[i].Rows); err != nil {
			return fmt.Errorf("deletes: %w", err)
		}
		set := d.Rows
		if !before[i].IsEmpty() {
			if set, err = e.unite(ctx, before[i], set, segments[i]); err != nil {
				return err
			}
		}
		if set.Count == before[i].Count {
			continue
		}
		set.Since = e.info.Number
		e.info.DeletedRows += set.Count - before[i].Count
		if err := e.setOf(d.Segment, []byte{catalog.DeletesSpace}, bitmap.AppendEntry(nil, set)); err != nil {
			return err
		}
	}
	return nil
}

// unite returns the union of two row bitmaps of a segment.
func (e *edit) unite(ctx context.Context, a, b bitmap.Ref, d catalog.SegmentDescriptor) (bitmap.Ref, error) {
	rows, err := e.store().Bitmaps.Read(ctx, a)
	if err != nil {
		return bitmap.Ref{}, err
	}
	more, err := e.store().Bitmaps.Read(ctx, b)
	if err != nil {
		return bitmap.Ref{}, err
	}
	rows.Or(more)
	if rows.GetCardinality() == a.Count {
		return a, nil
	}
	set, err := e.store().Bitmaps.Put(ctx, d.ID, d.Rows, rows)
	if id, _, ok := set.Object(); ok { // also after an error: the object may have been made
		e.made = append(e.made, id.RowsName())
	}
	return set, err
}
