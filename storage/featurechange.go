package storage

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/dsistore/dsistore/internal/nearest"
)

// A FeatureChange gives a feature another name, or another status, or both. It touches no data: segments know features by id.
type FeatureChange struct {
	Feature string         // its name now, also when it was dropped
	Rename  string         // its new name; empty: the name stays
	Status  *FeatureStatus // nil: the status stays
}

func (f FeatureChange) validate() error {
	if f.Feature == "" {
		return fmt.Errorf("feature change without a name")
	}
	if f.Rename == "" && f.Status == nil {
		return fmt.Errorf("feature %s: nothing to change", f.Feature)
	}
	if f.Status != nil && int(*f.Status) >= len(statusNames) {
		return fmt.Errorf("feature %s: unknown %v", f.Feature, *f.Status)
	}
	return nil
}

// featureChanges renames, deprecates, drops and takes back.
func (e *edit) featureChanges(ctx context.Context, c Change) error {
	if len(c.FeatureChanges) == 0 {
		return nil
	}
	var names []string
	for _, f := range c.FeatureChanges {
		names = append(names, f.Feature, cmp.Or(f.Rename, f.Feature))
	}
	found, err := e.base.find(ctx, names...)
	if err != nil {
		return err
	}
	for i, change := range c.FeatureChanges {
		known, taken := found[2*i], found[2*i+1]
		if known == nil {
			return e.noFeature(ctx, change.Feature)
		}
		f := *known
		if change.Rename != "" && change.Rename != f.Name {
			if taken != nil && taken.Status != FeatureDropped {
				return fmt.Errorf("feature %s: %s: %w", f.Name, change.Rename, ErrExists)
			}
			f.Name = change.Rename
		}
		if change.Status != nil {
			f.Status = *change.Status
		}
		if err := f.Validate(); err != nil {
			return err
		}
		if f.Role.IsKey() && f.Status == FeatureDropped {
			return fmt.Errorf("feature %s is the %v: it cannot be dropped", known.Name, f.Role)
		}
		if f == *known {
			continue
		}
		switch gone, was := f.Status == FeatureDropped, known.Status == FeatureDropped; {
		case gone && !was:
			e.info.Features--
		case was && !gone:
			e.info.Features++
		}
		if f.Name != known.Name {
			e.renamed = append(e.renamed, renamed{known.Name, f.Name})
			e.schema = append(e.schema, treeEntry{nameKey(known.Name), nil}, treeEntry{featureIDKey(f.ID), []byte(f.Name)})
		}
		e.schema = append(e.schema, treeEntry{nameKey(f.Name), appendFeature(nil, f)})
	}
	return nil
}

// without makes sure that features which the added segments leave out are dropped: else their values would be lost.
func (e *edit) without(ctx context.Context, c Change) error {
	if len(c.Without) == 0 {
		return nil
	}
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

// noFeature is Snapshot.noFeature with the names of dropped features too.
func (e *edit) noFeature(ctx context.Context, name string) error {
	all, err := e.base.AllFeatures(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range all {
		names = append(names, f.Name)
	}
	return fmt.Errorf("feature %.100q: %w%s", name, ErrNotFound, nearest.Hint(name, names))
}

// NewFeatures returns the features with id and generation as a change to the table, which has this as its newest snapshot, must
// give them: those of the schema's feature of the name where it has one, else those of a new one. A name whose features were
// dropped or renamed gets the next generation. Its cost is a look-up or two, and one more for each generation.
func (s *Snapshot) NewFeatures(ctx context.Context, features ...Feature) ([]Feature, error) {
	names := make([]string, len(features))
	for i, f := range features {
		names[i] = f.Name
	}
	known, err := s.find(ctx, names...)
	if err != nil {
		return nil, err
	}
	out := make([]Feature, len(features))
	var open []int // without an id yet
	for i, f := range features {
		out[i] = f
		out[i].Status = FeatureActive
		switch k := known[i]; {
		case k != nil && k.Status != FeatureDropped:
			out[i].ID, out[i].Generation, out[i].Status = k.ID, k.Generation, k.Status
			continue
		case k != nil:
			out[i].Generation = k.Generation + 1
		default:
			out[i].Generation = 0
		}
		open = append(open, i)
	}
	for len(open) > 0 {
		keys := make([][]byte, len(open))
		for k, i := range open {
			out[i].ID = NewFeatureID(out[i].Name, out[i].Generation)
			keys[k] = featureIDKey(out[i].ID)
		}
		owners, err := s.t.s.get(ctx, s.m.schema, keys...)
		if err != nil {
			return nil, err
		}
		rest := open[:0]
		for k, i := range open {
			if owners[k] != nil {
				out[i].Generation++
				rest = append(rest, i)
			}
		}
		open = rest
	}
	return out, nil
}

// FeatureIDs returns the ids that features of the table have or had: a new feature must have another. Its cost is the schema's; nil,
// at no cost, where none was dropped or renamed, and every id is that of a feature in Features.
func (s *Snapshot) FeatureIDs(ctx context.Context) (map[FeatureID]bool, error) {
	if s.m.version < 2 {
		return nil, nil
	}
	lower, upper := spaceBounds(idSpace)
	it := s.t.s.iter(ctx, s.m.schema, upper)
	out := map[FeatureID]bool{}
	for ok := it.seek(ctx, lower); ok; ok = it.next(ctx) {
		if len(it.key) != 9 {
			return nil, corrupt(s.treeName(s.m.schema), "feature id key is malformed")
		}
		out[FeatureID(binary.BigEndian.Uint64(it.key[1:]))] = true
	}
	return out, it.err
}
