package commit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/wire"
)

// OverwritePartitions removes all segments of partitions. A segment added to one after the base is a conflict.
type OverwritePartitions []catalog.Partition

func (OverwritePartitions) phase() phase { return phaseOverwrite }

func (o OverwritePartitions) validate(*Change) error {
	for _, p := range o {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("overwrite: %w", err)
		}
	}
	return nil
}

func (o OverwritePartitions) apply(ctx context.Context, e *edit) error {
	c := e.change
	seen := map[string]bool{}
	removed := map[string]bool{} // those that RemoveSegments removes
	for _, r := range Op[RemoveSegments](c) {
		removed[r] = true
	}
	for _, p := range o {
		canonical := p.String()
		if seen[canonical] {
			continue
		}
		seen[canonical] = true
		it := e.store().Trees.Iter(ctx, e.base.Manifest.Listing, catalog.PartitionEnd(canonical))
		for ok := it.Seek(ctx, catalog.PartitionPrefix(canonical)); ok; ok = it.Next(ctx) {
			p, d, reason := catalog.ParseSegment(it.Key, it.Value)
			if reason != "" {
				return e.base.CorruptListing(reason)
			}
			if p.Added > c.Base {
				return fmt.Errorf(
					"partition %q got segment %s in snapshot %d, after snapshot %d that the change was made "+
						"against: %w",
					canonical, d.ID, p.Added, c.Base, catalog.ErrConflict)
			}
			if removed[d.ID] {
				continue
			}
			if err := e.drop(slices.Clone(it.Key), d, false); err != nil {
				return err
			}
		}
		if it.Err != nil {
			return it.Err
		}
	}
	return nil
}

// RemoveSegments removes the segments of the ids, which must still be there. The change must have been made against all
// that was set for them: their deletion vectors, layers and rows of sample lists.
type RemoveSegments []string

func (RemoveSegments) phase() phase { return phaseRemove }

func (r RemoveSegments) validate(c *Change) error {
	added := map[string]bool{}
	for _, d := range Op[AddSegments](c) {
		added[d.ID] = true
	}
	for _, segment := range r {
		if _, err := names.ParseID(segment); err != nil {
			return fmt.Errorf("remove segment %w", err)
		}
		if added[segment] {
			return fmt.Errorf("segment %s added and removed", segment)
		}
	}
	return nil
}

func (r RemoveSegments) apply(ctx context.Context, e *edit) error {
	removed := slices.Compact(slices.Sorted(slices.Values(r)))
	keys, err := catalog.SegmentIDKeys(removed...)
	if err != nil {
		return err
	}
	where, err := e.base.GetListing(ctx, keys...)
	if err != nil {
		return err
	}
	for i, w := range where {
		if w == nil {
			return fmt.Errorf("segment %s to remove is gone: %w", removed[i], catalog.ErrConflict)
		}
		where[i] = append([]byte{catalog.PartitionSpace}, w...)
	}
	values, err := e.base.GetListing(ctx, where...)
	if err != nil {
		return err
	}
	for i, v := range values {
		p, d, reason := catalog.ParseSegment(where[i], v)
		if reason != "" {
			return e.base.CorruptListing(reason)
		}
		e.vacate(d.Partition.String(), p)
		if err := e.drop(where[i], d, true); err != nil {
			return err
		}
	}
	return nil
}

// drop takes a segment out of the listing and the totals. key is taken over. replaced: the change must have seen what
// lies over it.
func (e *edit) drop(key []byte, d catalog.SegmentDescriptor, replaced bool) error {
	segment, err := names.ParseID(d.ID)
	if err != nil {
		return err
	}
	e.removed[d.ID] = d
	e.replaced[d.ID] = replaced
	if d.Rows > e.info.Rows || d.Bytes > e.info.Bytes || e.info.Segments == 0 {
		return wire.Corrupt(e.base.ObjectName(), "totals are less than their parts")
	}
	e.setListing(key, nil)
	e.setListing(catalog.SegmentIDKey(segment), nil)
	e.info.Rows -= d.Rows
	e.info.RemovedRows += d.Rows
	e.info.Bytes -= d.Bytes
	e.info.Segments--
	return nil
}

// strip takes away what lies over the segments that the change takes away.
func (e *edit) strip(ctx context.Context) error {
	if len(e.removed) == 0 {
		return nil
	}
	var gone []catalog.SegmentDescriptor
	for _, d := range e.removed {
		gone = append(gone, d)
	}
	slices.SortFunc(gone, func(a, b catalog.SegmentDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	take := func(prefix []byte, what string,
		each func(decoded []byte, d catalog.SegmentDescriptor) (since uint64, reason string)) error {
		values, err := e.base.PerSegment(ctx, prefix, gone)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				continue
			}
			since, reason := each(v, gone[i])
			if reason != "" {
				return e.base.CorruptListing(reason)
			}
			if since > e.change.Base && e.replaced[gone[i].ID] {
				return later(what+" of segment", gone[i].ID, since, e.change.Base)
			}
			if err := e.setOf(gone[i].ID, prefix, nil); err != nil {
				return err
			}
		}
		return nil
	}
	set := func(v []byte, d catalog.SegmentDescriptor) (uint64, string) {
		r, reason := bitmap.DecodeEntry(v, d.Rows, "")
		return r.Since, reason
	}
	if e.base.Manifest.Info.DeletedRows > 0 {
		deletes := []byte{catalog.DeletesSpace}
		if err := take(deletes, "deletes", func(v []byte, d catalog.SegmentDescriptor) (uint64, string) {
			r, reason := bitmap.DecodeEntry(v, d.Rows, "")
			e.info.DeletedRows -= min(r.Count, e.info.DeletedRows)
			return r.Since, reason
		}); err != nil {
			return err
		}
	}
	overlays, err := e.base.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		if err := take(catalog.OverlaySegmentPrefix(o.Number), "layer of overlay "+o.Name, func(v []byte,
			d catalog.SegmentDescriptor) (uint64, string) {
			segment, err := names.ParseID(d.ID)
			if err != nil {
				return 0, err.Error()
			}
			l, reason := catalog.DecodeOverlaySegment(o.Name, segment, v, "")
			if o.Branch != "" {
				l.Since = 0 // its branch keeps it; nobody carries it
			}
			return l.Since, reason
		}); err != nil {
			return err
		}
	}
	lists, err := e.base.SampleLists(ctx)
	if err != nil {
		return err
	}
	for _, l := range lists {
		if err := take(catalog.ListRowsPrefix(l.Name), "sample list "+l.Name, set); err != nil {
			return err
		}
	}
	return nil
}
