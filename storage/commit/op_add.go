package commit

import (
	"context"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
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
	keys, err := catalog.SegmentIDKeys(catalog.IDs(a)...)
	if err != nil {
		return err
	}
	there, err := e.base.GetListing(ctx, keys...)
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
		if err := e.listSegment(catalog.SegmentKey(d.Partition.String(), places[i]), d); err != nil {
			return err
		}
	}
	return nil
}

// listSegment puts a segment into the listing and the totals.
func (e *edit) listSegment(key []byte, d catalog.SegmentDescriptor) error {
	id, err := names.ParseID(d.ID)
	if err != nil {
		return err
	}
	e.setListing(key, catalog.AppendDescriptor(nil, d))
	e.setListing(catalog.SegmentIDKey(id), key[1:])
	e.info.Rows += d.Rows
	e.info.AddedRows += d.Rows
	e.info.Bytes += d.Bytes
	e.info.Segments++
	return nil
}

// under returns the segments of the ids, in order, as the change leaves them. A removed segment is a conflict.
func (e *edit) under(ctx context.Context, ids []string) ([]catalog.SegmentDescriptor, error) {
	added := map[string]catalog.SegmentDescriptor{}
	for _, d := range Op[AddSegments](e.change) {
		added[d.ID] = d
	}
	for _, r := range Op[ReplaceSegments](e.change) {
		added[r.New.ID] = r.New
	}
	out := make([]catalog.SegmentDescriptor, len(ids))
	var ask []string
	var at []int
	for i, id := range ids {
		if d, ok := added[id]; ok {
			out[i] = d
		} else {
			ask, at = append(ask, id), append(at, i)
		}
	}
	found, err := e.base.SegmentsByID(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for k, d := range found {
		if _, gone := e.removed[ask[k]]; gone || d == nil {
			return nil, fmt.Errorf("segment %s is gone: %w", ask[k], catalog.ErrConflict)
		}
		out[at[k]] = *d
	}
	return out, nil
}
