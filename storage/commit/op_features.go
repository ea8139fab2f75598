package commit

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage/catalog"
)

// AddFeatures are the features of the added segments. New ones are added to the schema, and the types of known ones
// widened.
type AddFeatures []catalog.Feature

func (AddFeatures) phase() phase { return phaseAddFeatures }

func (a AddFeatures) validate(*Change) error {
	names := make(map[string]bool, len(a))
	ids := make(map[catalog.FeatureID]string, len(a))
	for _, f := range a {
		if err := f.Validate(); err != nil {
			return err
		}
		if names[f.Name] {
			return fmt.Errorf("feature %s twice", f.Name)
		}
		if other, ok := ids[f.ID]; ok {
			return catalog.IDCollision(f.ID, other, f.Name)
		}
		names[f.Name], ids[f.ID] = true, f.Name
	}
	return nil
}

// apply does nothing: features adds them, together with those of merged overlays.
func (AddFeatures) apply(context.Context, *edit) error { return nil }

// features merges the added features, and those of merged overlays, into the schema.
func (e *edit) features(ctx context.Context) error {
	features, err := Op[AddFeatures](e.change).with(e.merging)
	if err != nil || len(features) == 0 {
		return err
	}
	names := make([]string, len(features))
	keys := catalog.FeatureIDKeys(features)
	for i, f := range features {
		names[i] = f.Name
	}
	known, err := e.base.FindAll(ctx, names...)
	if err != nil {
		return err
	}
	owners, err := e.base.GetSchema(ctx, keys...)
	if err != nil {
		return err
	}
	for i, f := range features {
		if owners[i] != nil && string(owners[i]) != f.Name {
			return ownedBy(f, string(owners[i]))
		}
		merged := f
		merged.Status = catalog.FeatureActive
		// One of the same name is another feature, with an id of its own; the name of a dropped one may have been
		// another's since.
		if known[i] != nil && known[i].Status == catalog.FeatureDropped && known[i].ID != f.ID {
			known[i] = nil
		}
		if owners[i] != nil && (known[i] == nil || known[i].ID != f.ID || known[i].Status == catalog.FeatureDropped) {
			return ownedBy(f, f.Name)
		}
		if known[i] == nil {
			e.info.Features++
			e.added = append(e.added, f)
			e.setSchema(keys[i], []byte(f.Name))
		} else {
			if merged, err = mergeFeature(*known[i], f); err != nil {
				// The table may have had no such feature, or another type, when the change was made. Made anew, the
				// change is refused for certain, or fits.
				if e.base.Manifest.Info.Number != e.change.Base {
					err = fmt.Errorf("%w: %w", err, catalog.ErrConflict)
				}
				return err
			}
			if merged == *known[i] {
				continue
			}
		}
		e.setSchema(catalog.NameKey(f.Name), catalog.AppendFeature(nil, merged))
	}
	return nil
}

// ownedBy says why a feature of f's id, under another name or dropped, stands in the way of f.
func ownedBy(f catalog.Feature, other string) error {
	if other == f.Name {
		return fmt.Errorf("feature %s was dropped: %w", f.Name, catalog.ErrConflict)
	}
	for g := range f.Generation + 1 {
		if catalog.NewFeatureID(other, g) == f.ID {
			return catalog.IDCollision(f.ID, other, f.Name)
		}
	}
	return fmt.Errorf("feature %s is called %s now: %w", f.Name, other, catalog.ErrConflict)
}

// mergeFeature returns the schema's feature once a segment with f is added.
func mergeFeature(known, f catalog.Feature) (catalog.Feature, error) {
	out := known
	if known.ID != f.ID || known.Generation != f.Generation {
		return out, fmt.Errorf("feature %s: id %016x of generation %d; the table has %016x of generation %d",
			f.Name, uint64(f.ID), f.Generation, uint64(known.ID), known.Generation)
	}
	var err error
	if out.Type, err = vector.Widen(known.Type, f.Type); err != nil {
		return out, fmt.Errorf("feature %s is %v in the table and %v in the change: %w", f.Name, known.Type,
			f.Type, err)
	}
	if f.Role != catalog.RoleFeature && f.Role != known.Role {
		return out, fmt.Errorf("feature %s is a %v in the table and a %v in the change", f.Name, known.Role, f.Role)
	}
	if known.Logical != f.Logical {
		return out, fmt.Errorf("feature %s is of logical type %q in the table and %q in the change", f.Name,
			known.Logical, f.Logical)
	}
	if known.OriginColumn != f.OriginColumn || known.OriginKey != f.OriginKey {
		return out, fmt.Errorf(
			"feature %s comes from key %q of column %q in the table and from key %q of column %q in the change",
			f.Name, known.OriginKey, known.OriginColumn, f.OriginKey, f.OriginColumn)
	}
	return out, nil
}

// with returns the features and those of merged overlays, each once.
func (a AddFeatures) with(merging []catalog.Feature) ([]catalog.Feature, error) {
	if len(merging) == 0 {
		return a, nil
	}
	out := slices.Clone([]catalog.Feature(a))
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
