package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// An overlaidSchema is a table's schema with the overlays that a plan names. It has the features that they add. A
// feature that they replace has a type that holds the values of both. Features are identified by id: if the table has
// renamed one since, it has the new name; if the table has dropped one, it stays dropped. Overlays that are part of the
// table are in the table's own schema.
type overlaidSchema struct {
	schema
	table   string
	byName  map[string]catalog.Feature // the features of overlays
	byID    map[catalog.FeatureID]catalog.Feature
	added   []catalog.Feature // those of byID that the table does not have, in name order
	dropped map[catalog.FeatureID]bool
}

// OverlaySchema returns the schema of a snapshot with overlays, which are the lowest first. It makes three look-ups;
// none without overlays. The error of a name that is missing says which other overlay has it.
func OverlaySchema(ctx context.Context, snap *storage.Snapshot, overlays []storage.ViewOverlay) (schema, error) {
	if len(overlays) == 0 {
		return hintedSchema{snap, snap}, nil
	}
	s, err := overlaySchema(ctx, snap, overlays)
	if err != nil {
		return nil, err
	}
	return hintedSchema{s, snap}, nil
}

func overlaySchema(ctx context.Context, snap *storage.Snapshot, overlays []storage.ViewOverlay) (*overlaidSchema,
	error) {
	s := &overlaidSchema{
		schema: snap, table: snap.Table().Name(), byName: map[string]catalog.Feature{},
		byID:    map[catalog.FeatureID]catalog.Feature{},
		dropped: map[catalog.FeatureID]bool{},
	}
	var ids []catalog.FeatureID
	for _, o := range overlays {
		for _, f := range o.Features {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	known, err := snap.FeaturesByID(ctx, ids...)
	if err != nil {
		return nil, err
	}
	of := map[catalog.FeatureID]string{} // the overlay that adds the feature
	for i, f := range known {
		switch {
		case f == nil:
		case f.Status == catalog.FeatureDropped:
			s.dropped[ids[i]] = true
		default:
			s.byID[f.ID] = *f
		}
	}
	for _, o := range overlays {
		for _, f := range o.Features {
			if s.dropped[f.ID] {
				continue
			}
			below, ok := s.byID[f.ID]
			if !ok {
				of[f.ID] = o.Name
				s.byID[f.ID] = f
				continue
			}
			if s.byID[f.ID], err = under(below, f); err != nil {
				return nil, fmt.Errorf("overlay %s: %w", o.Name, err)
			}
		}
	}
	var names []string
	for id := range of {
		s.added = append(s.added, s.byID[id])
	}
	slices.SortFunc(s.added, func(a, b catalog.Feature) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, f := range s.added {
		names = append(names, f.Name)
	}
	taken, err := snap.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	for i, f := range s.added {
		if other := taken[i]; other != nil {
			return nil, fmt.Errorf("overlay %s adds feature %s, and the table has another of that name", of[f.ID],
				f.Name)
		}
	}
	for _, f := range s.byID {
		if other, ok := s.byName[f.Name]; ok {
			return nil, fmt.Errorf("overlays %s and %s have two features of the name %s", of[other.ID], of[f.ID],
				f.Name)
		}
		s.byName[f.Name] = f
	}
	return s, nil
}

// under returns feature below with a type that also holds the values of f, which an overlay puts over it.
func under(below, f catalog.Feature) (catalog.Feature, error) {
	t, err := vector.Widen(below.Type, f.Type)
	switch {
	case err != nil:
		return below, fmt.Errorf("feature %s is %v below it and %v in it: %w", below.Name, below.Type, f.Type, err)
	case below.Logical != f.Logical:
		return below, fmt.Errorf("feature %s is of logical type %q below it and %q in it", below.Name, below.Logical,
			f.Logical)
	}
	below.Type = t
	return below, nil
}

// Find is Snapshot.Find with the overlays.
func (s *overlaidSchema) Find(ctx context.Context, names ...string) ([]*catalog.Feature, error) {
	out := make([]*catalog.Feature, len(names))
	var rest []string
	var at []int
	for i, name := range names {
		if f, ok := s.byName[name]; ok {
			out[i] = &f
			continue
		}
		rest, at = append(rest, name), append(at, i)
	}
	found, err := s.schema.Find(ctx, rest...)
	if err != nil {
		return nil, err
	}
	for k, i := range at {
		out[i] = found[k]
	}
	return out, nil
}

// Lookup is Find with an error, and suggestions, for an unknown name.
func (s *overlaidSchema) Lookup(ctx context.Context, names ...string) ([]catalog.Feature, error) {
	found, err := s.Find(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := make([]catalog.Feature, len(names))
	for i, f := range found {
		if f != nil {
			out[i] = *f
			continue
		}
		all, err := s.Features(ctx)
		if err != nil {
			return nil, err
		}
		among, err := s.PartitionKeys(ctx)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			among = append(among, f.Name)
		}
		return nil, fmt.Errorf("table %s: %w", s.table, catalog.NotFound("feature", names[i], among))
	}
	return out, nil
}

// Features returns the whole schema in name order.
func (s *overlaidSchema) Features(ctx context.Context) ([]catalog.Feature, error) {
	all, err := s.schema.Features(ctx)
	if err != nil {
		return nil, err
	}
	all = append(s.replaced(all), s.added...)
	slices.SortFunc(all, func(a, b catalog.Feature) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// KeyFeatures returns the features that are keys.
func (s *overlaidSchema) KeyFeatures(ctx context.Context) ([]catalog.Feature, error) {
	all, err := s.schema.KeyFeatures(ctx)
	if err != nil {
		return nil, err
	}
	all = s.replaced(all)
	for _, f := range s.added {
		if f.Role.IsKey() {
			all = append(all, f)
		}
	}
	return all, nil
}

// replaced returns features of the table, with those that overlays replace replaced.
func (s *overlaidSchema) replaced(features []catalog.Feature) []catalog.Feature {
	out := slices.Clone(features)
	for i, f := range out {
		if over, ok := s.byID[f.ID]; ok {
			out[i] = over
		}
	}
	return out
}

// NamedOverlays returns the overlays of a view, then those of names, the lowest first. An overlay that was made on a
// branch can be named there alone.
func NamedOverlays(ctx context.Context, v *storage.View, names []string) ([]storage.ViewOverlay, error) {
	out := slices.Clone(v.Overlays)
	for _, name := range names {
		if slices.ContainsFunc(out, func(o storage.ViewOverlay) bool { return o.Name == name }) {
			return nil, fmt.Errorf("overlay %s is named twice, or by branch %q already", name, v.Branch)
		}
		o, err := v.Snapshot.Overlay(ctx, name)
		if err != nil {
			return nil, err
		}
		if o.Branch != "" && o.Branch != v.Branch { // compaction carries it for its branch alone
			return nil, fmt.Errorf("overlay %s is of branch %s: read %s@%s", name, o.Branch, v.Snapshot.Table().Name(),
				o.Branch)
		}
		out = append(out, storage.ViewOverlay{Overlay: o, In: v.Snapshot})
	}
	return out, nil
}
