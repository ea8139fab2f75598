package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// overlay returns an overlay as the change leaves it, nil where there is none then.
func (e *edit) overlay(ctx context.Context, name string) (*catalog.Overlay, error) {
	if o, ok := e.defined[name]; ok {
		return o, nil
	}
	return e.base.FindOverlay(ctx, name)
}

// DropOverlays drops overlays, with their segments.
type DropOverlays []string

func (DropOverlays) phase() phase { return phaseDropOverlays }

func (d DropOverlays) validate(c *Change) error {
	return cmp.Or(c.needBase(len(d), "overlays"), checkNames("overlay", "overlay dropped:", d))
}

func (d DropOverlays) apply(ctx context.Context, e *edit) error {
	for _, name := range d {
		if err := e.dropOverlay(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// DefineOverlays defines overlays over those that there are, the lowest first. Number, Added and Merged are set by the
// commit.
type DefineOverlays []catalog.Overlay

func (DefineOverlays) phase() phase { return phaseDefineOverlays }

func (d DefineOverlays) validate(c *Change) error {
	var once checkOnce
	for _, o := range d {
		o.Merged = 0
		once.check(o.Validate(), "overlay", o.Name)
	}
	return cmp.Or(c.needBase(len(d), "overlays"), once.err)
}

func (d DefineOverlays) apply(ctx context.Context, e *edit) error {
	for _, o := range d {
		there, err := e.overlay(ctx, o.Name)
		if err != nil {
			return err
		}
		if there != nil {
			return taken("overlay", o.Name, there.Added, e.change.Base)
		}
		if e.m.NextOverlay > 1<<32-1 {
			return errors.New("the table has had 2^32 overlays")
		}
		o.Number, o.Added, o.Merged = uint32(e.m.NextOverlay), e.info.Number, 0
		e.m.NextOverlay++
		e.m.Overlays++
		o.Features = slices.Clone(o.Features)
		for i := range o.Features {
			o.Features[i].Status = catalog.FeatureActive
		}
		under := e.base // whose schema it lies over
		if o.Branch != "" {
			b, err := e.branch(ctx, o.Branch)
			if err != nil {
				return err
			}
			if b == nil {
				_, err := e.base.Branch(ctx, o.Branch)
				return fmt.Errorf("overlay %s: %w", o.Name, cmp.Or(err, fmt.Errorf("branch %s is gone: %w", o.Branch,
					catalog.ErrConflict)))
			}
			if b.Snapshot != 0 {
				if under, err = e.base.Log.At(ctx, b.Snapshot); err != nil {
					return fmt.Errorf("branch %s: %w", o.Branch, err)
				}
			}
		}
		if err := e.fitsSchema(ctx, o, under); err != nil {
			return err
		}
		e.setOverlay(o)
	}
	return nil
}

// MergeOverlays makes overlays part of the table, and their features part of its schema.
type MergeOverlays []string

func (MergeOverlays) phase() phase { return phaseAddFeatures }

func (m MergeOverlays) validate(c *Change) error {
	return cmp.Or(c.needBase(len(m), "overlays"), checkNames("overlay", "overlay merged:", m))
}

func (m MergeOverlays) apply(ctx context.Context, e *edit) error {
	for _, name := range m {
		there, err := e.overlay(ctx, name)
		if err != nil {
			return err
		}
		switch {
		case there == nil:
			return fmt.Errorf("overlay %s to merge is gone: %w", name, catalog.ErrConflict)
		case there.Added > e.change.Base && there.Added != e.info.Number:
			return later("overlay", name, there.Added, e.change.Base)
		case there.Branch != "":
			return fmt.Errorf("overlay %s was made on branch %s, for what that reads: add it to the table under "+
				"another name, and merge that", name, there.Branch)
		case there.Merged != 0:
			return fmt.Errorf("overlay %s is merged already", name)
		case there.MissingLayers != catalog.FallThrough:
			// Compaction makes merged overlays part of the segments that it writes, and could not tell the segments
			// without a layer.
			return fmt.Errorf("overlay %s has %q for missing layers, those of segments that are ingested later: only "+
				"one with %q becomes part of the table: add it again with that", name, there.MissingLayers,
				catalog.FallThrough)
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

// noneDropped returns an error when the table has dropped a feature of an overlay: what is part of the table has its
// features in the schema.
func (e *edit) noneDropped(ctx context.Context, o catalog.Overlay) error {
	ids := make([]catalog.FeatureID, len(o.Features))
	for i, f := range o.Features {
		ids[i] = f.ID
	}
	known, err := e.base.FeaturesByID(ctx, ids...)
	if err != nil {
		return err
	}
	for _, k := range known {
		if k != nil && k.Status == catalog.FeatureDropped {
			return fmt.Errorf("overlay %s has feature %s, which was dropped: it cannot become part of the table",
				o.Name, k.Name)
		}
	}
	return nil
}

// renamedFeatures returns an overlay's features under the names that the table has for their ids now.
func (e *edit) renamedFeatures(ctx context.Context, features []catalog.Feature) ([]catalog.Feature, error) {
	names, err := e.base.GetSchema(ctx, catalog.FeatureIDKeys(features)...)
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

func (e *edit) setOverlay(o catalog.Overlay) {
	e.defined[o.Name] = &o
	e.setListing(catalog.OverlayKey(o.Name), catalog.AppendOverlay(nil, o))
}

// fitsSchema holds an overlay's features to those of their names and ids in the schema of the snapshot that it lies
// over.
func (e *edit) fitsSchema(ctx context.Context, o catalog.Overlay, under *snapshot.Snapshot) error {
	names := make([]string, len(o.Features))
	for i, f := range o.Features {
		names[i] = f.Name
	}
	known, err := under.Find(ctx, names...)
	if err != nil {
		return err
	}
	owners, err := under.GetSchema(ctx, catalog.FeatureIDKeys(o.Features)...)
	if err != nil {
		return err
	}
	for i, f := range o.Features {
		switch k := known[i]; {
		case k != nil && k.ID != f.ID:
			return fmt.Errorf("overlay %s: feature %s: id %016x: the table has %016x", o.Name, f.Name, uint64(f.ID),
				uint64(k.ID))
		case k != nil:
			if _, err := vector.Widen(k.Type, f.Type); err != nil {
				return fmt.Errorf("overlay %s: feature %s is %v in the table and %v in the overlay: %w", o.Name, f.Name,
					k.Type, f.Type, err)
			}
		case owners[i] != nil:
			return fmt.Errorf("overlay %s: %w", o.Name, ownedBy(f, string(owners[i])))
		}
	}
	return nil
}

// dropOverlay takes an overlay and its layers away.
func (e *edit) dropOverlay(ctx context.Context, name string) error {
	o, err := e.overlay(ctx, name)
	if err != nil {
		return err
	}
	if o == nil {
		_, err := e.base.Overlay(ctx, name)
		return err
	}
	if o.Added > e.change.Base {
		return later("overlay", name, o.Added, e.change.Base)
	}
	err = e.base.EachOverlaySegment(ctx, *o, func(l catalog.OverlaySegment) error {
		if o.Merged != 0 && !slices.Contains(Op[RemoveSegments](e.change), l.Segment) {
			return fmt.Errorf(
				"overlay %s is part of the table since snapshot %d, and lies over segment %s: compaction makes it "+
					"part of the segments",
				name, o.Merged, l.Segment)
		}
		return e.setOf(l.Segment, catalog.OverlaySegmentPrefix(o.Number), nil)
	})
	if err != nil {
		return err
	}
	e.setListing(catalog.OverlayKey(name), nil)
	e.defined[name] = nil
	e.m.Overlays--
	return nil
}
