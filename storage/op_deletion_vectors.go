package storage

import (
	"context"
	"fmt"
)

// Rows that are deleted.

var deleteRows = operation{
	asked: func(c *Change) bool { return len(c.Deletes) > 0 },
	validate: func(c *Change) error {
		var once checkOnce
		for _, d := range c.Deletes {
			_, err := parseID(d.Segment)
			once.check(err, "deletes of segment", d.Segment)
		}
		return once.err
	},
	adds: func(c *Change) (_ []SegmentDescriptor, rows []RowBitmap) {
		for _, d := range c.Deletes {
			rows = append(rows, d.Rows)
		}
		return nil, rows
	},
	apply: (*edit).deletes,
}

// deletes unites the change's deletes with those that there are.
func (e *edit) deletes(ctx context.Context, c *Change) error {
	var ids []string
	for _, d := range c.Deletes {
		ids = append(ids, d.Segment)
	}
	under, err := e.under(ctx, c, ids)
	if err != nil {
		return fmt.Errorf("deletes: %w", err)
	}
	var segments []SegmentDescriptor
	for _, i := range ids {
		segments = append(segments, under[i])
	}
	before, err := e.base.DeletionVectors(ctx, segments...)
	if err != nil {
		return err
	}
	for i, d := range c.Deletes {
		if err := d.Rows.fits(d.Segment, segments[i].Rows); err != nil {
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
		segment, err := parseID(d.Segment)
		if err != nil {
			return err
		}
		e.listing = append(e.listing, entry{deletesKey(segment), appendSet(nil, set)})
	}
	return nil
}

// unite returns the union of two sets of rows of a segment.
func (e *edit) unite(ctx context.Context, a, b RowBitmap, d SegmentDescriptor) (RowBitmap, error) {
	rows, err := e.store().ReadRowBitmap(ctx, a)
	if err != nil {
		return RowBitmap{}, err
	}
	more, err := e.store().ReadRowBitmap(ctx, b)
	if err != nil {
		return RowBitmap{}, err
	}
	rows.Or(more)
	if rows.GetCardinality() == a.Count {
		return a, nil
	}
	return e.store().putRowBitmap(ctx, d.ID, d.Rows, rows, func(i id) { e.made = append(e.made, i.rowsName()) })
}
