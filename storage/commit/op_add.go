package commit

import (
	"context"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
)

// AddSegments adds segments. Those of a partition of which the change removes segments replace them: they take the
// place of the first.
type AddSegments []catalog.SegmentDescriptor

func (AddSegments) phase() phase { return phaseAdd }

func (a AddSegments) adds() ([]catalog.SegmentDescriptor, []bitmap.Ref) { return a, nil }

func (a AddSegments) validate(*Change) error {
	if uint64(len(a)) > math.MaxUint32 {
		return fmt.Errorf("%d segments", len(a))
	}
	segments := make(map[string]bool, len(a))
	for _, d := range a {
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

func (a AddSegments) apply(ctx context.Context, e *edit) error {
	keys := make([][]byte, len(a))
	for i, d := range a {
		segment, err := names.ParseID(d.ID)
		if err != nil {
			return err
		}
		keys[i] = catalog.SegmentIDKey(segment)
	}
	there, err := e.store().Trees.Get(ctx, e.base.Manifest.Listing, keys...)
	if err != nil {
		return err
	}
	places, err := e.places(ctx, a)
	if err != nil {
		return err
	}
	for i, d := range a {
		if there[i] != nil {
			return fmt.Errorf("segment %s is in the table already: %w", d.ID, catalog.ErrConflict)
		}
		key := catalog.SegmentKey(d.Partition.String(), places[i])
		e.listing = append(e.listing, lsm.Entry{Key: key, Value: catalog.AppendDescriptor(nil, d)},
			lsm.Entry{Key: keys[i], Value: key[1:]})
		e.info.Rows += d.Rows
		e.info.AddedRows += d.Rows
		e.info.Bytes += d.Bytes
		e.info.Segments++
	}
	return nil
}

// under returns the segments of the ids as the change leaves them. A removed segment is a conflict.
func (e *edit) under(ctx context.Context, ids []string) (map[string]catalog.SegmentDescriptor, error) {
	out := make(map[string]catalog.SegmentDescriptor, len(ids))
	for _, d := range Op[AddSegments](e.change) {
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
		return nil, fmt.Errorf("segment %s is gone: %w", ask[k], catalog.ErrConflict)
	}
	return out, nil
}
