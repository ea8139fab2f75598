package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Segments that go, by their partition or by name, and what lies over them.

var overwritePartitions = operation{
	asked: func(c *Change) bool { return len(c.Overwrite) > 0 },
	validate: func(c *Change) error {
		for _, p := range c.Overwrite {
			if err := p.Validate(); err != nil {
				return fmt.Errorf("overwrite: %w", err)
			}
		}
		return nil
	},
	apply: (*edit).overwrite,
}

var removeSegments = operation{
	asked: func(c *Change) bool { return len(c.Remove) > 0 },
	validate: func(c *Change) error {
		for _, r := range c.Remove {
			if _, err := parseID(r); err != nil {
				return fmt.Errorf("remove segment %w", err)
			}
			if slices.ContainsFunc(c.Add, func(d SegmentDescriptor) bool { return d.ID == r }) {
				return fmt.Errorf("segment %s added and removed", r)
			}
		}
		return nil
	},
	apply: (*edit).remove,
}

// stripRemoved follows from both.
var stripRemoved = operation{apply: (*edit).strip}

// overwrite removes all segments of the partitions to overwrite.
func (e *edit) overwrite(ctx context.Context, c *Change) error {
	seen := map[string]bool{}
	removed := make(map[string]bool, len(c.Remove)) // those that remove takes care of
	for _, r := range c.Remove {
		removed[r] = true
	}
	for _, p := range c.Overwrite {
		canonical := p.String()
		if seen[canonical] {
			continue
		}
		seen[canonical] = true
		it := e.store().iter(ctx, e.base.m.listing, partitionEnd(canonical))
		for ok := it.seek(ctx, partitionPrefix(canonical)); ok; ok = it.next(ctx) {
			p, d, reason := parseSegment(it.key, it.value)
			if reason != "" {
				return corrupt(e.base.treeName(e.base.m.listing), reason)
			}
			if p.added > c.Base {
				return fmt.Errorf("partition %q got segment %s in snapshot %d, after snapshot %d that the change was made against: %w",
					canonical, d.ID, p.added, c.Base, ErrConflict)
			}
			if removed[d.ID] {
				continue
			}
			if err := e.drop(slices.Clone(it.key), d, false); err != nil {
				return err
			}
		}
		if it.err != nil {
			return it.err
		}
	}
	return nil
}

// remove removes the segments named.
func (e *edit) remove(ctx context.Context, c *Change) error {
	removed := slices.Compact(slices.Sorted(slices.Values(c.Remove)))
	keys := make([][]byte, len(removed))
	for i, s := range removed {
		segment, _ := parseID(s)
		keys[i] = idKey(segment)
	}
	where, err := e.store().get(ctx, e.base.m.listing, keys...)
	if err != nil {
		return err
	}
	for i, w := range where {
		if w == nil {
			return fmt.Errorf("segment %s to remove is gone: %w", removed[i], ErrConflict)
		}
		where[i] = append([]byte{partitionSpace}, w...)
	}
	values, err := e.store().get(ctx, e.base.m.listing, where...)
	if err != nil {
		return err
	}
	for i, v := range values {
		p, d, reason := parseSegment(where[i], v)
		if reason != "" {
			return corrupt(e.base.treeName(e.base.m.listing), reason)
		}
		e.vacate(d.Partition.String(), p)
		if err := e.drop(where[i], d, true); err != nil {
			return err
		}
	}
	return nil
}

// drop takes a segment out of the listing and the totals. key is taken over. replaced: the change must have seen what lies over it.
func (e *edit) drop(key []byte, d SegmentDescriptor, replaced bool) error {
	segment, err := parseID(d.ID)
	if err != nil {
		return err
	}
	if e.removed == nil {
		e.removed, e.replaced = map[string]SegmentDescriptor{}, map[string]bool{}
	}
	e.removed[d.ID] = d
	e.replaced[d.ID] = replaced
	if d.Rows > e.info.Rows || d.Bytes > e.info.Bytes || e.info.Segments == 0 {
		return corrupt(e.base.name(), "totals are less than their parts")
	}
	e.listing = append(e.listing, entry{key, nil}, entry{idKey(segment), nil})
	e.info.Rows -= d.Rows
	e.info.RemovedRows += d.Rows
	e.info.Bytes -= d.Bytes
	e.info.Segments--
	return nil
}

// strip takes away what lies over the segments that the change takes away.
func (e *edit) strip(ctx context.Context, c *Change) error {
	if len(e.removed) == 0 {
		return nil
	}
	var gone []SegmentDescriptor
	for _, d := range e.removed {
		gone = append(gone, d)
	}
	slices.SortFunc(gone, func(a, b SegmentDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	take := func(prefix []byte, what string, each func(decoded []byte, d SegmentDescriptor) (since uint64, reason string)) error {
		values, err := e.base.perSegment(ctx, prefix, gone)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				continue
			}
			since, reason := each(v, gone[i])
			if reason != "" {
				return corrupt(e.base.treeName(e.base.m.listing), reason)
			}
			if since > c.Base && e.replaced[gone[i].ID] {
				return later(what+" of segment", gone[i].ID, since, c.Base)
			}
			segment, err := parseID(gone[i].ID)
			if err != nil {
				return err
			}
			e.listing = append(e.listing, entry{append(slices.Clone(prefix), segment[:]...), nil})
		}
		return nil
	}
	set := func(v []byte, d SegmentDescriptor) (uint64, string) {
		r, reason := decodeSet(v, d.Rows, "")
		return r.Since, reason
	}
	if e.base.m.info.DeletedRows > 0 {
		if err := take([]byte{deletesSpace}, "deletes", func(v []byte, d SegmentDescriptor) (uint64, string) {
			r, reason := decodeSet(v, d.Rows, "")
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
		if err := take(overlaySegmentPrefix(o.Number), "layer of overlay "+o.Name, func(v []byte, d SegmentDescriptor) (uint64, string) {
			segment, err := parseID(d.ID)
			if err != nil {
				return 0, err.Error()
			}
			l, reason := decodeOverlaySegment(o.Name, segment, v, "")
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
		if err := take(listRowsPrefix(l.Name), "sample list "+l.Name, set); err != nil {
			return err
		}
	}
	return nil
}
