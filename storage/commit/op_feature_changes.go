package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/catalog"
)

// A FeatureChange gives a feature another name, or another status, or both. It touches no data: segments know features
// by id.
type FeatureChange struct {
	Feature string                 // its name now, also when it was dropped
	Rename  string                 // its new name; empty: the name stays
	Status  *catalog.FeatureStatus // nil: the status stays
}

func (f FeatureChange) validate() error {
	if f.Feature == "" {
		return fmt.Errorf("feature change without a name")
	}
	if f.Rename == "" && f.Status == nil {
		return fmt.Errorf("feature %s: nothing to change", f.Feature)
	}
	if f.Status != nil && int(*f.Status) >= len(catalog.StatusNames) {
		return fmt.Errorf("feature %s: unknown %v", f.Feature, *f.Status)
	}
	return nil
}

// ChangeFeatures renames features, or sets their status.
type ChangeFeatures []FeatureChange

func (ChangeFeatures) phase() phase { return phaseChangeFeatures }

func (s ChangeFeatures) validate(c *Change) error {
	var once checkOnce
	added := Op[AddFeatures](c)
	for _, f := range s {
		once.check(f.validate(), "feature changed:", f.Feature)
		if f.Rename != "" {
			once.check(nil, "feature renamed to", f.Rename)
		}
		if slices.ContainsFunc(s, func(g FeatureChange) bool {
			return g.Rename == f.Feature && g.Feature != f.Feature
		}) {
			once.check(errors.New("changed, and another is renamed to it"), "feature", f.Feature)
		}
		if slices.ContainsFunc(added, func(g catalog.Feature) bool {
			return g.Name == f.Feature || g.Name == f.Rename
		}) {
			once.check(errors.New("changed, and of the added segments"), "feature", f.Feature)
		}
	}
	return once.err
}

func (s ChangeFeatures) apply(ctx context.Context, e *edit) error {
	var names []string
	for _, f := range s {
		names = append(names, f.Feature, cmp.Or(f.Rename, f.Feature))
	}
	found, err := e.base.FindAll(ctx, names...)
	if err != nil {
		return err
	}
	for i, change := range s {
		known, taken := found[2*i], found[2*i+1]
		if known == nil {
			return e.noFeature(ctx, change.Feature)
		}
		f := *known
		if change.Rename != "" && change.Rename != f.Name {
			if taken != nil && taken.Status != catalog.FeatureDropped {
				return fmt.Errorf("feature %s cannot be renamed to %s: %w: use another", f.Name, change.Rename,
					catalog.ErrExists)
			}
			f.Name = change.Rename
		}
		if change.Status != nil {
			f.Status = *change.Status
		}
		if err := f.Validate(); err != nil {
			return err
		}
		if f.Role.IsKey() && f.Status == catalog.FeatureDropped {
			return fmt.Errorf("feature %s is the %v: it cannot be dropped", known.Name, f.Role)
		}
		if f == *known {
			continue
		}
		switch gone, was := f.Status == catalog.FeatureDropped, known.Status == catalog.FeatureDropped; {
		case gone && !was:
			e.info.Features--
			e.m.Retired++
		case was && !gone:
			e.info.Features++
		}
		if f.Name != known.Name {
			e.renamed = append(e.renamed, renamed{known.Name, f.Name})
			e.m.Retired++
			e.setSchema(catalog.NameKey(known.Name), nil)
			e.setSchema(catalog.FeatureIDKey(f.ID), []byte(f.Name))
		}
		e.setSchema(catalog.NameKey(f.Name), catalog.AppendFeature(nil, f))
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
	return catalog.NotFound("feature", name, names)
}

// A renamed feature, in either of its names.
type renamed struct{ from, to string }

// keys brings the entry up to date with the features that the change adds, drops and renames.
func (e *edit) keys(ctx context.Context) error {
	before, after := e.base.Manifest.Info.Features, e.info.Features
	if len(e.added) == 0 && len(e.renamed) == 0 && before == after {
		return nil
	}
	k, err := e.base.NotedKeyFeatures(ctx)
	if err != nil {
		return err
	}
	if k != nil {
		k.Of = after
		for _, f := range e.added {
			if f.Role.IsKey() {
				k.Keys = append(k.Keys, catalog.KeyFeature{Role: f.Role, Name: f.Name})
			}
		}
		for _, r := range e.renamed {
			for i := range k.Keys {
				if k.Keys[i].Name == r.from {
					k.Keys[i].Name = r.to
					break
				}
			}
		}
		if value := catalog.AppendKeyFeatures(nil, *k); len(value) <= catalog.MaxKeyFeatures {
			e.setSchema(catalog.KeyFeaturesKey(), value)
			return nil
		}
	}
	// What does not fit is left out, and readers go through the schema. An entry that stayed could hold again, wrongly:
	// with features dropped their number might come back to it.
	e.setSchema(catalog.KeyFeaturesKey(), nil)
	return nil
}
