package storage

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// What a commit does to the schema for the segments that it adds.

var addFeatures = operation{
	asked:    func(c *Change) bool { return len(c.Features)+len(c.MergeOverlays) > 0 },
	validate: (*Change).validateFeatures,
	apply:    (*edit).features,
}

func (c *Change) validateFeatures() error {
	names := make(map[string]bool, len(c.Features))
	ids := make(map[FeatureID]string, len(c.Features))
	for _, f := range c.Features {
		if err := f.Validate(); err != nil {
			return err
		}
		if names[f.Name] {
			return fmt.Errorf("feature %s twice", f.Name)
		}
		if other, ok := ids[f.ID]; ok {
			return idCollision(f.ID, other, f.Name)
		}
		names[f.Name], ids[f.ID] = true, f.Name
	}
	return nil
}

// features merges the change's features into the schema.
func (e *edit) features(ctx context.Context, c *Change) error {
	features, err := c.allFeatures(e.merging)
	if err != nil {
		return err
	}
	names := make([]string, len(features))
	keys := make([][]byte, len(features))
	for i, f := range features {
		names[i], keys[i] = f.Name, featureIDKey(f.ID)
	}
	known, err := e.base.find(ctx, names...)
	if err != nil {
		return err
	}
	owners, err := e.store().get(ctx, e.base.m.schema, keys...)
	if err != nil {
		return err
	}
	for i, f := range features {
		if owners[i] != nil && string(owners[i]) != f.Name {
			return ownedBy(f, string(owners[i]))
		}
		merged := f
		merged.Status = FeatureActive
		// One of the same name is another feature, with an id of its own; the name of a dropped one may have been another's since.
		if known[i] != nil && known[i].Status == FeatureDropped && known[i].ID != f.ID {
			known[i] = nil
		}
		if owners[i] != nil && (known[i] == nil || known[i].ID != f.ID || known[i].Status == FeatureDropped) {
			return ownedBy(f, f.Name)
		}
		if known[i] == nil {
			e.info.Features++
			e.added = append(e.added, f)
			e.schema = append(e.schema, entry{keys[i], []byte(f.Name)})
		} else {
			if merged, err = mergeFeature(*known[i], f); err != nil {
				return err
			}
			if merged == *known[i] {
				continue
			}
		}
		e.schema = append(e.schema, entry{nameKey(f.Name), appendFeature(nil, merged)})
	}
	return nil
}

// ownedBy says why a feature of f's id, under another name or dropped, stands in the way of f.
func ownedBy(f Feature, other string) error {
	if other == f.Name {
		return fmt.Errorf("feature %s was dropped: %w", f.Name, ErrConflict)
	}
	for g := range f.Generation + 1 {
		if NewFeatureID(other, g) == f.ID {
			return idCollision(f.ID, other, f.Name)
		}
	}
	return fmt.Errorf("feature %s is called %s now: %w", f.Name, other, ErrConflict)
}

// mergeFeature returns the schema's feature once a segment with f is added.
func mergeFeature(known, f Feature) (Feature, error) {
	out := known
	if known.ID != f.ID || known.Generation != f.Generation {
		return out, fmt.Errorf("feature %s: id %016x of generation %d; the table has %016x of generation %d",
			f.Name, uint64(f.ID), f.Generation, uint64(known.ID), known.Generation)
	}
	var err error
	if out.Type, err = vector.Widen(known.Type, f.Type); err != nil {
		return out, fmt.Errorf("feature %s is %v in the table and %v in the change: %w", f.Name, known.Type, f.Type, err)
	}
	if f.Role != RoleFeature && f.Role != known.Role {
		return out, fmt.Errorf("feature %s is a %v in the table and a %v in the change", f.Name, known.Role, f.Role)
	}
	if known.Logical != f.Logical {
		return out, fmt.Errorf("feature %s is of logical type %q in the table and %q in the change", f.Name, known.Logical, f.Logical)
	}
	if known.OriginColumn != f.OriginColumn || known.OriginKey != f.OriginKey {
		return out, fmt.Errorf("feature %s comes from key %q of column %q in the table and from key %q of column %q in the change",
			f.Name, known.OriginKey, known.OriginColumn, f.OriginKey, f.OriginColumn)
	}
	return out, nil
}

func idCollision(f FeatureID, a, b string) error {
	return fmt.Errorf("features %q and %q have the same id %016x: rename one", a, b, uint64(f))
}

// allFeatures returns the change's features and those of overlays that are merged, each once.
func (c *Change) allFeatures(merging []Feature) ([]Feature, error) {
	if len(merging) == 0 {
		return c.Features, nil
	}
	out := slices.Clone(c.Features)
	at := map[string]int{}
	for i, f := range out {
		at[f.Name] = i
	}
	for _, f := range merging {
		i, ok := at[f.Name]
		if !ok {
			at[f.Name] = len(out)
			out = append(out, f)
			continue
		}
		var err error
		if out[i], err = mergeFeature(out[i], f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// leaveOut is about features that the added segments do not have any more.
var leaveOut = operation{
	asked: func(c *Change) bool { return len(c.Without) > 0 },
	apply: (*edit).without,
}

// without makes sure that features which the added segments leave out are dropped: else their values would be lost.
func (e *edit) without(ctx context.Context, c *Change) error {
	keys := make([][]byte, len(c.Without))
	for i, f := range c.Without {
		keys[i] = featureIDKey(f)
	}
	owners, err := e.store().get(ctx, e.base.m.schema, keys...)
	if err != nil {
		return err
	}
	var names []string
	for _, o := range owners {
		names = append(names, string(o))
	}
	found, err := e.base.find(ctx, names...)
	if err != nil {
		return err
	}
	for i, f := range found {
		// Another feature may have taken the name since.
		if f != nil && f.ID == c.Without[i] && f.Status != FeatureDropped {
			return fmt.Errorf("feature %s, which the added segments leave out, is not dropped any more: %w", f.Name, ErrConflict)
		}
	}
	return nil
}
