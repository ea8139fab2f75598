package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// This file puts overlays and their layers into a commit.

// overlay returns an overlay as the change leaves it, nil where there is none then.
func (e *edit) overlay(ctx context.Context, name string) (*Overlay, error) {
	if o, ok := e.defined[name]; ok {
		return o, nil
	}
	return e.base.findOverlay(ctx, name)
}

// overlays drops, defines and merges overlays.
func (e *edit) overlays(ctx context.Context, c Change) error {
	e.defined = map[string]*Overlay{}
	drop := slices.Clone(c.DropOverlays)
	if len(c.DropBranches) > 0 {
		all, err := e.base.Overlays(ctx)
		if err != nil {
			return err
		}
		for _, o := range all {
			if slices.Contains(c.DropBranches, o.Branch) && !slices.Contains(drop, o.Name) {
				drop = append(drop, o.Name)
			}
		}
	}
	for _, name := range drop {
		if err := e.dropOverlay(ctx, c, name); err != nil {
			return err
		}
	}
	for _, o := range c.Overlays {
		there, err := e.overlay(ctx, o.Name)
		if err != nil {
			return err
		}
		if there != nil {
			return taken("overlay", o.Name, there.Added, c.Base)
		}
		if e.m.nextOverlay > 1<<32-1 {
			return errors.New("the table has had 2^32 overlays")
		}
		o.Number, o.Added, o.Merged = uint32(e.m.nextOverlay), e.info.Number, 0
		e.m.nextOverlay++
		e.m.overlays++
		o.Features = slices.Clone(o.Features)
		for i := range o.Features {
			o.Features[i].Status = FeatureActive
		}
		under := e.base // whose schema it lies over
		if o.Branch != "" {
			b, err := e.branch(ctx, c, o.Branch)
			if err != nil {
				return err
			}
			if b == nil {
				_, err := e.base.Branch(ctx, o.Branch)
				return fmt.Errorf("overlay %s: %w", o.Name, cmp.Or(err, fmt.Errorf("branch %s is gone: %w", o.Branch, ErrConflict)))
			}
			if b.Snapshot != 0 {
				if under, err = e.base.t.At(ctx, b.Snapshot); err != nil {
					return fmt.Errorf("branch %s: %w", o.Branch, err)
				}
			}
		}
		if err := e.fitsSchema(ctx, o, under); err != nil {
			return err
		}
		e.setOverlay(o)
	}
	for _, name := range c.MergeOverlays {
		there, err := e.overlay(ctx, name)
		if err != nil {
			return err
		}
		switch {
		case there == nil:
			return fmt.Errorf("overlay %s to merge is gone: %w", name, ErrConflict)
		case there.Added > c.Base && there.Added != e.info.Number:
			return later("overlay", name, there.Added, c.Base)
		case there.Branch != "":
			return fmt.Errorf("overlay %s is of branch %s: it cannot become part of the table", name, there.Branch)
		case there.Merged != 0:
			return fmt.Errorf("overlay %s is merged already", name)
		case there.Missing != FallThrough:
			// Compaction makes merged overlays part of the segments that it writes, and could not tell the segments without a layer.
			return fmt.Errorf("overlay %s says %q of segments without a layer: want %q of one that becomes part of the table", name, there.Missing, FallThrough)
		}
		if err := e.noneDropped(ctx, *there); err != nil {
			return err
		}
		o := *there
		o.Merged = e.info.Number
		if o.Features, err = e.renamedFeatures(ctx, o.Features); err != nil {
			return err
		}
		e.merging = append(e.merging, o.Features...)
		e.setOverlay(o)
	}
	return nil
}

// noneDropped returns an error when the table has dropped a feature of an overlay: what is part of the table has its features in the schema.
func (e *edit) noneDropped(ctx context.Context, o Overlay) error {
	ids := make([]FeatureID, len(o.Features))
	for i, f := range o.Features {
		ids[i] = f.ID
	}
	known, err := e.base.FeaturesByID(ctx, ids...)
	if err != nil {
		return err
	}
	for _, k := range known {
		if k != nil && k.Status == FeatureDropped {
			return fmt.Errorf("overlay %s has feature %s, which was dropped: it cannot become part of the table", o.Name, k.Name)
		}
	}
	return nil
}

// renamedFeatures returns an overlay's features under the names that the table has for their ids now.
func (e *edit) renamedFeatures(ctx context.Context, features []Feature) ([]Feature, error) {
	keys := make([][]byte, len(features))
	for i, f := range features {
		keys[i] = featureIDKey(f.ID)
	}
	names, err := e.store().get(ctx, e.base.m.schema, keys...)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(features)
	for i, name := range names {
		if name != nil {
			out[i].Name = string(name)
		}
	}
	return out, nil
}

func (e *edit) setOverlay(o Overlay) {
	e.defined[o.Name] = &o
	e.listing = append(e.listing, treeEntry{overlayKey(o.Name), appendOverlay(nil, o)})
}

// taken says that a name is in use: a conflict when it was not so at the base.
func taken(what, name string, since, base uint64) error {
	err := fmt.Errorf("%s %s: %w since snapshot %d", what, name, ErrExists, since)
	if since > base {
		err = fmt.Errorf("%w: %w", err, ErrConflict)
	}
	return err
}

// fitsSchema holds an overlay's features to those of their names and ids in the schema of the snapshot that it lies over.
func (e *edit) fitsSchema(ctx context.Context, o Overlay, under *Snapshot) error {
	names := make([]string, len(o.Features))
	keys := make([][]byte, len(o.Features))
	for i, f := range o.Features {
		names[i], keys[i] = f.Name, featureIDKey(f.ID)
	}
	known, err := under.Find(ctx, names...)
	if err != nil {
		return err
	}
	owners, err := e.store().get(ctx, under.m.schema, keys...)
	if err != nil {
		return err
	}
	for i, f := range o.Features {
		switch k := known[i]; {
		case k != nil && k.ID != f.ID:
			return fmt.Errorf("overlay %s: feature %s: id %016x: the table has %016x", o.Name, f.Name, uint64(f.ID), uint64(k.ID))
		case k != nil:
			if _, err := vector.Widen(k.Type, f.Type); err != nil {
				return fmt.Errorf("overlay %s: feature %s is %v in the table and %v in the overlay: %w", o.Name, f.Name, k.Type, f.Type, err)
			}
		case owners[i] != nil:
			return fmt.Errorf("overlay %s: %w", o.Name, ownedBy(f, string(owners[i])))
		}
	}
	return nil
}

// dropOverlay takes an overlay and its layers away.
func (e *edit) dropOverlay(ctx context.Context, c Change, name string) error {
	o, err := e.overlay(ctx, name)
	if err != nil {
		return err
	}
	if o == nil {
		_, err := e.base.Overlay(ctx, name)
		return err
	}
	if o.Added > c.Base {
		return later("overlay", name, o.Added, c.Base)
	}
	err = e.base.AllLayers(ctx, *o, func(l Layer) error {
		if o.Merged != 0 && !slices.Contains(c.Remove, l.Segment) {
			return fmt.Errorf("overlay %s is part of the table since snapshot %d, and lies over segment %s: compaction makes it part of the segments",
				name, o.Merged, l.Segment)
		}
		segment, err := parseID(l.Segment)
		if err != nil {
			return err
		}
		e.listing = append(e.listing, treeEntry{append(layerPrefix(o.Number), segment[:]...), nil})
		return nil
	})
	if err != nil {
		return err
	}
	e.listing = append(e.listing, treeEntry{overlayKey(name), nil})
	e.defined[name] = nil
	e.m.overlays--
	return nil
}

// layers sets the change's layers.
func (e *edit) layers(ctx context.Context, c Change) error {
	byOverlay := map[string][]Layer{}
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
		if err := e.layersOf(ctx, c, *o, byOverlay[name]); err != nil {
			return fmt.Errorf("overlay %s: %w", name, err)
		}
	}
	return nil
}

func (e *edit) layersOf(ctx context.Context, c Change, o Overlay, layers []Layer) error {
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
	before, err := e.base.Layers(ctx, []Overlay{o}, segments...)
	if err != nil {
		return err
	}
	for i, l := range layers {
		if b := before[i][0]; b != nil && b.Since > c.Base {
			return later("layer over segment", l.Segment, b.Since, c.Base)
		}
		if reason := l.misfit(segments[i]); reason != "" {
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
		e.listing = append(e.listing, treeEntry{append(layerPrefix(o.Number), segment[:]...), appendLayer(nil, l)})
	}
	return nil
}

// underOverlay returns the segments that layers of an overlay lie over: the table's, or those of the overlay's branch.
func (e *edit) underOverlay(ctx context.Context, c Change, o Overlay, ids []string) (map[string]SegmentDescriptor, error) {
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
