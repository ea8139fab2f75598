package commit

import (
	"context"
	"fmt"
	"math"

	"github.com/dsistore/dsistore/storage/catalog"
)

// vacate notes a place that a named segment gives up.
func (e *edit) vacate(canonical string, p catalog.Place) {
	if first, ok := e.vacated[canonical]; !ok || p.Before(first) {
		e.vacated[canonical] = p
	}
}

// places returns where the added segments stand: in place of those of their partition that the change names to be
// removed, else behind all others.
func (e *edit) places(ctx context.Context, add []catalog.SegmentDescriptor) ([]catalog.Place, error) {
	out := make([]catalog.Place, len(add))
	count, before := map[string]uint64{}, map[string]uint64{}
	for _, d := range add {
		count[d.Partition.String()]++
	}
	steps := map[string]uint64{}
	for i, d := range add {
		canonical := d.Partition.String()
		first, ok := e.vacated[canonical]
		if !ok {
			out[i] = catalog.Place{Number: e.info.Number, Index: uint32(i), Added: e.info.Number}
			continue
		}
		if before[canonical] == 0 {
			room, err := e.room(ctx, canonical, first)
			if err != nil {
				return nil, err
			}
			if steps[canonical] = room / count[canonical]; steps[canonical] == 0 {
				return nil, fmt.Errorf(
					"partition %q has no room in its order for %d segments in place of fewer: replace more of "+
						"them at once",
					canonical, count[canonical])
			}
		}
		out[i] = catalog.Place{Number: first.Number, Index: first.Index, Slot: first.Slot +
			before[canonical]*steps[canonical], Added: e.info.Number}
		before[canonical]++
	}
	return out, nil
}

// room returns how many slots there are from a place that is given up to the next segment that stays.
func (e *edit) room(ctx context.Context, canonical string, first catalog.Place) (uint64, error) {
	it := e.store().Trees.Iter(ctx, e.base.Manifest.Listing, catalog.PartitionEnd(canonical))
	for ok := it.Seek(ctx, catalog.SegmentKey(canonical, first)); ok; ok = it.Next(ctx) {
		p, d, reason := catalog.ParseSegment(it.Key, it.Value)
		if reason != "" {
			return 0, e.base.CorruptListing(reason)
		}
		if p.Number != first.Number || p.Index != first.Index {
			break
		}
		if _, gone := e.removed[d.ID]; !gone {
			return p.Slot - first.Slot, nil
		}
	}
	return math.MaxUint64 - first.Slot, it.Err
}
