package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

// SetOverlaySegments sets layers of overlays, in place of those that there are.
type SetOverlaySegments []catalog.OverlaySegment

func (SetOverlaySegments) phase() phase { return phaseRows }

func (s SetOverlaySegments) validate(c *Change) error {
	var once checkOnce
	for _, l := range s {
		once.check(errors.Join(catalog.CheckName("overlay", l.Overlay), l.Data.Validate()), "layer:",
			l.Overlay+"\x00"+l.Segment)
		once.check(nil, "segment of a layer:", l.Data.ID)
		if _, err := names.ParseID(l.Segment); err != nil {
			once.check(err, "layer of overlay", l.Overlay)
		}
		if l.All && !l.Covered.IsEmpty() {
			once.check(errors.New("covers all rows, and some"), "layer over segment", l.Segment)
		}
	}
	return cmp.Or(c.needBase(len(s), "layers of overlays"), once.err)
}

func (s SetOverlaySegments) adds() (segments []catalog.SegmentDescriptor, rows []bitmap.Ref) {
	for _, l := range s {
		segments, rows = append(segments, l.Data), append(rows, l.Covered)
	}
	return segments, rows
}

func (s SetOverlaySegments) apply(ctx context.Context, e *edit) error {
	base := e.change.Base
	names, byOverlay := grouped(s, func(l catalog.OverlaySegment) string { return l.Overlay })
	for _, name := range names {
		o, err := e.overlay(ctx, name)
		if err != nil {
			return err
		}
		if o == nil {
			return fmt.Errorf("overlay %s is gone: %w", name, catalog.ErrConflict)
		}
		if o.Added > base && o.Added != e.info.Number {
			return later("overlay", name, o.Added, base)
		}
		// Only those who name the overlay were to see these values. Now everybody would.
		if o.Merged > base && o.Merged != e.info.Number {
			return fmt.Errorf(
				"overlay %s became part of the table in snapshot %d, after snapshot %d that the change was made "+
					"against: %w",
				name, o.Merged, base, catalog.ErrConflict)
		}
		if err := e.setOverlaySegments(ctx, *o, byOverlay[name]); err != nil {
			return fmt.Errorf("overlay %s: %w", name, err)
		}
	}
	return nil
}

// grouped groups elements by a key, and returns the keys in the order in which they come first.
func grouped[E any](all []E, key func(E) string) (keys []string, groups map[string][]E) {
	groups = map[string][]E{}
	for _, x := range all {
		k := key(x)
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], x)
	}
	return keys, groups
}

// setOverlaySegments sets the segments of one overlay.
func (e *edit) setOverlaySegments(ctx context.Context, o catalog.Overlay, layers []catalog.OverlaySegment) error {
	base := e.change.Base
	var ids []string
	for _, l := range layers {
		ids = append(ids, l.Segment)
	}
	segments, err := e.underOverlay(ctx, o, ids)
	if err != nil {
		return err
	}
	before, err := e.base.OverlaySegments(ctx, []catalog.Overlay{o}, segments...)
	if err != nil {
		return err
	}
	for i, l := range layers {
		if b := before[i][0]; b != nil && b.Since > base {
			return later("layer over segment", l.Segment, b.Since, base)
		}
		if reason := l.Mismatch(segments[i]); reason != "" {
			return errors.New(reason)
		}
		if err := l.Covered.Fits(l.Segment, segments[i].Rows); err != nil {
			return err
		}
		l.Since = e.info.Number
		value := catalog.AppendOverlaySegment(nil, l)
		if err := e.setOf(l.Segment, catalog.OverlaySegmentPrefix(o.Number), value); err != nil {
			return err
		}
	}
	return nil
}

// underOverlay is under for the segments that those of an overlay lie over: the table's, or those of the overlay's
// branch.
func (e *edit) underOverlay(ctx context.Context, o catalog.Overlay,
	ids []string) ([]catalog.SegmentDescriptor, error) {
	if o.Branch == "" {
		return e.under(ctx, ids)
	}
	b, err := e.branch(ctx, o.Branch)
	if err != nil {
		return nil, err
	}
	switch {
	case b == nil:
		return nil, fmt.Errorf("branch %s is gone: %w", o.Branch, catalog.ErrConflict)
	case b.Added > e.change.Base:
		return nil, later("branch", o.Branch, b.Added, e.change.Base)
	case b.Snapshot == 0:
		return e.under(ctx, ids) // of the snapshot that the commit makes
	}
	s, err := e.base.Log.At(ctx, b.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("branch %s: %w", o.Branch, err)
	}
	found, err := s.SegmentsByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.SegmentDescriptor, len(ids))
	for i, d := range found {
		if d == nil {
			return nil, fmt.Errorf("segment %s is not in snapshot %d of branch %s: %w", ids[i], b.Snapshot, o.Branch,
				catalog.ErrConflict)
		}
		out[i] = *d
	}
	return out, nil
}
