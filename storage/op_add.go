package storage

import (
	"context"
	"fmt"
	"math"
)

// Segments that come.

var addSegments = operation{
	asked:    func(c *Change) bool { return len(c.Add) > 0 },
	validate: (*Change).validateAdd,
	adds:     func(c *Change) ([]SegmentDescriptor, []RowBitmap) { return c.Add, nil },
	apply:    (*edit).add,
}

func (c *Change) validateAdd() error {
	if uint64(len(c.Add)) > math.MaxUint32 {
		return fmt.Errorf("%d segments", len(c.Add))
	}
	segments := make(map[string]bool, len(c.Add))
	for _, d := range c.Add {
		if err := d.Validate(); err != nil {
			return err
		}
		if segments[d.ID] {
			return fmt.Errorf("segment %s twice", d.ID)
		}
		segments[d.ID] = true
	}
	return nil
}

// add puts the new segments into the listing.
func (e *edit) add(ctx context.Context, c *Change) error {
	keys := make([][]byte, len(c.Add))
	for i, d := range c.Add {
		segment, err := parseID(d.ID)
		if err != nil {
			return err
		}
		keys[i] = idKey(segment)
	}
	there, err := e.store().get(ctx, e.base.m.listing, keys...)
	if err != nil {
		return err
	}
	places, err := e.places(ctx, c.Add)
	if err != nil {
		return err
	}
	for i, d := range c.Add {
		if there[i] != nil {
			return fmt.Errorf("segment %s is in the table already: %w", d.ID, ErrConflict)
		}
		key := segmentKey(d.Partition.String(), places[i])
		e.listing = append(e.listing, entry{key, appendDescriptor(nil, d)}, entry{keys[i], key[1:]})
		e.info.Rows += d.Rows
		e.info.AddedRows += d.Rows
		e.info.Bytes += d.Bytes
		e.info.Segments++
	}
	return nil
}

// under returns the segments of the ids as the change leaves them; one that is gone is a conflict.
func (e *edit) under(ctx context.Context, c *Change, ids []string) (map[string]SegmentDescriptor, error) {
	out := make(map[string]SegmentDescriptor, len(ids))
	for _, d := range c.Add {
		out[d.ID] = d
	}
	var ask []string
	for _, i := range ids {
		if _, ok := out[i]; !ok {
			ask = append(ask, i)
		}
	}
	found, err := e.base.SegmentsByID(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for k, d := range found {
		if d != nil {
			if _, gone := e.removed[d.ID]; !gone {
				out[d.ID] = *d
				continue
			}
		}
		return nil, fmt.Errorf("segment %s is gone: %w", ask[k], ErrConflict)
	}
	return out, nil
}
