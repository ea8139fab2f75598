package storage

import (
	"context"
	"errors"
	"fmt"
)

// Layers of overlays.

var setOverlaySegments = operation{
	of:        "layers of overlays",
	asked:     func(c *Change) bool { return len(c.Layers) > 0 },
	needsBase: true,
	validate: func(c *Change) error {
		var once checkOnce
		for _, l := range c.Layers {
			once.check(errors.Join(checkName("overlay", l.Overlay), l.Data.Validate()), "layer:", l.Overlay+"\x00"+l.Segment)
			once.check(nil, "segment of a layer:", l.Data.ID)
			if _, err := parseID(l.Segment); err != nil {
				once.check(err, "layer of overlay", l.Overlay)
			}
			if l.All && !l.Covered.IsEmpty() {
				once.check(errors.New("covers all rows, and some"), "layer over segment", l.Segment)
			}
		}
		return once.err
	},
	adds: func(c *Change) (segments []SegmentDescriptor, rows []RowBitmap) {
		for _, l := range c.Layers {
			segments, rows = append(segments, l.Data), append(rows, l.Covered)
		}
		return segments, rows
	},
	apply: (*edit).overlaySegments,
}

// layers sets the change's layers.
func (e *edit) overlaySegments(ctx context.Context, c *Change) error {
	byOverlay := map[string][]OverlaySegment{}
	var names []string
	for _, l := range c.Layers {
		if byOverlay[l.Overlay] == nil {
			names = append(names, l.Overlay)
		}
		byOverlay[l.Overlay] = append(byOverlay[l.Overlay], l)
	}
	for _, name := range names {
		o, err := e.overlay(ctx, name)
		if err != nil {
			return err
		}
		if o == nil {
			return fmt.Errorf("overlay %s is gone: %w", name, ErrConflict)
		}
		if o.Added > c.Base && o.Added != e.info.Number {
			return later("overlay", name, o.Added, c.Base)
		}
		// What was to be seen by those who name the overlay would be seen by everybody.
		if o.Merged > c.Base && o.Merged != e.info.Number {
			return fmt.Errorf("overlay %s became part of the table in snapshot %d, after snapshot %d that the change was made against: %w",
				name, o.Merged, c.Base, ErrConflict)
		}
		if err := e.overlaySegmentsOf(ctx, c, *o, byOverlay[name]); err != nil {
			return fmt.Errorf("overlay %s: %w", name, err)
		}
	}
	return nil
}

func (e *edit) overlaySegmentsOf(ctx context.Context, c *Change, o Overlay, layers []OverlaySegment) error {
	var ids []string
	for _, l := range layers {
		ids = append(ids, l.Segment)
	}
	under, err := e.underOverlay(ctx, c, o, ids)
	if err != nil {
		return err
	}
	var segments []SegmentDescriptor
	for _, i := range ids {
		segments = append(segments, under[i])
	}
	before, err := e.base.OverlaySegments(ctx, []Overlay{o}, segments...)
	if err != nil {
		return err
	}
	for i, l := range layers {
		if b := before[i][0]; b != nil && b.Since > c.Base {
			return later("layer over segment", l.Segment, b.Since, c.Base)
		}
		if reason := l.mismatch(segments[i]); reason != "" {
			return errors.New(reason)
		}
		if err := l.Covered.fits(l.Segment, segments[i].Rows); err != nil {
			return err
		}
		segment, err := parseID(l.Segment)
		if err != nil {
			return err
		}
		l.Since = e.info.Number
		e.listing = append(e.listing, entry{append(overlaySegmentPrefix(o.Number), segment[:]...), appendOverlaySegment(nil, l)})
	}
	return nil
}

// underOverlay returns the segments that layers of an overlay lie over: the table's, or those of the overlay's branch.
func (e *edit) underOverlay(ctx context.Context, c *Change, o Overlay, ids []string) (map[string]SegmentDescriptor, error) {
	if o.Branch == "" {
		return e.under(ctx, c, ids)
	}
	b, err := e.branch(ctx, c, o.Branch)
	if err != nil {
		return nil, err
	}
	switch {
	case b == nil:
		return nil, fmt.Errorf("branch %s is gone: %w", o.Branch, ErrConflict)
	case b.Added > c.Base:
		return nil, later("branch", o.Branch, b.Added, c.Base)
	case b.Snapshot == 0:
		return e.under(ctx, c, ids) // of the snapshot that the commit makes
	}
	s, err := e.base.t.At(ctx, b.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("branch %s: %w", o.Branch, err)
	}
	found, err := s.SegmentsByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]SegmentDescriptor, len(ids))
	for i, d := range found {
		if d == nil {
			return nil, fmt.Errorf("segment %s is not in snapshot %d of branch %s: %w", ids[i], b.Snapshot, o.Branch, ErrConflict)
		}
		out[ids[i]] = *d
	}
	return out, nil
}
