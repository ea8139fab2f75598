package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/tools/ingest/source"
)

// Extend covers more rows of a table by an overlay: rows that were ingested since, or whose keys other files have. The
// overlay keeps its values, features, types and policies. Extend is one commit, like Add, and reports what was covered
// before. An overlay that is part of the table cannot be extended, nor one of a branch, whose rows do not change.
//
// Layers over segments with rows to cover are written anew. Old snapshots and branches keep the layers that they had.
func Extend(ctx context.Context, store *storage.Store, table, name string, opts Options) (Report, error) {
	switch {
	case strings.Contains(table, "@"):
		return Report{}, fmt.Errorf("%s: the rows of a branch stay the same, so that an overlay is made over all of "+
			"them: only overlays of tables are extended", table)
	case len(opts.Features) > 0:
		return Report{}, errors.New("features: an overlay that is extended has its features, and takes those from " +
			"the files")
	case opts.Replace || opts.MissingRows != catalog.FallThrough || opts.MissingLayers != catalog.FallThrough ||
		opts.Role != catalog.RoleFeature:
		return Report{}, errors.New("replace, role and missing-value policies are about a new overlay: one that is " +
			"extended keeps what it has")
	}
	return makeOverlay(ctx, store, table, name, opts, &extension{})
}

// An extension is what an overlay had before it is extended.
type extension struct {
	number uint32                             // of the overlay
	before map[string]*catalog.OverlaySegment // over the segments of the view that was opened last; nil: none was
}

// layer returns the overlay's layer over a segment, nil where there is none. A nil extension has none.
func (x *extension) layer(segment string) *catalog.OverlaySegment {
	if x == nil {
		return nil
	}
	return x.before[segment]
}

// covers reports whether a segment has no row to cover.
func (x *extension) covers(segment string) bool {
	l := x.layer(segment)
	return l != nil && (l.All || l.Covered.Count == l.Data.Rows)
}

// coveredBy returns how many of a segment's rows that are not deleted a layer covers; nil: none.
func (m *maker) coveredBy(ctx context.Context, l *catalog.OverlaySegment, s *baseSegment) (uint64, error) {
	switch {
	case l == nil:
		return 0, nil
	case l.All:
		return s.rows, nil
	case s.dead == nil || l.Covered.IsEmpty():
		return l.Covered.Count, nil
	}
	rows, err := m.table.Store().Bitmaps().Read(ctx, l.Covered)
	if err != nil {
		return 0, err
	}
	n := uint64(0)
	for it := rows.Iterator(); it.HasNext(); {
		if !s.dead.Get(int(it.Next())) {
			n++
		}
	}
	return n, nil
}

// lookUp reads the overlay and its layers over the segments of a view. A layer that was written to replace another than
// the overlay has now is discarded, and written again.
func (m *maker) lookUp(ctx context.Context, v *view) error {
	x := m.extends
	o, err := v.newest.Overlay(ctx, m.overlay.Name)
	switch {
	case err != nil:
		return err
	case o.Merged != 0:
		return fmt.Errorf("overlay %s is part of the table since snapshot %d: add another, and merge it", o.Name,
			o.Merged)
	case o.Branch != "":
		return fmt.Errorf("overlay %s is of branch %s, whose rows stay the same: only overlays of tables are extended",
			o.Name, o.Branch)
	case x.before != nil && o.Number != x.number:
		return fmt.Errorf("overlay %s was replaced meanwhile: %w", o.Name, storage.ErrConflict)
	}
	m.overlay = o
	descriptors := v.descriptors()
	layers, err := v.newest.OverlaySegments(ctx, []catalog.Overlay{o}, descriptors...)
	if err != nil {
		return err
	}
	first := x.before == nil
	before := make(map[string]*catalog.OverlaySegment, len(layers))
	for i, d := range descriptors {
		if l := layers[i][0]; l != nil {
			before[d.ID] = l
		}
	}
	stale := map[string]*catalog.OverlaySegment{}
	for id, l := range m.layers {
		if was, is := x.before[id], before[id]; was != is && (was == nil || is == nil || was.Data.ID != is.Data.ID) {
			stale[id] = l
			delete(m.layers, id)
		}
	}
	m.discard(ctx, stale)
	x.number, x.before = o.Number, before
	if first {
		c := CoverageReport{Segments: len(v.segments), Layers: len(before)}
		for i := range v.segments {
			s := &v.segments[i]
			n, err := m.coveredBy(ctx, before[s.ID], s)
			if err != nil {
				return err
			}
			c.Rows += s.rows
			c.Covered += n
		}
		m.report.Before = &c
	}
	return nil
}

// prepareMore is prepare for an overlay that is extended: what is given must have its features.
func (m *maker) prepareMore(ctx context.Context, v *view) error {
	for _, f := range m.overlay.Features {
		k, err := v.feature(ctx, f.Name)
		if err != nil {
			return err
		}
		m.tellFeature(&f, k)
	}
	find := func(_ context.Context, name string) (*known, error) {
		for _, f := range m.overlay.Features {
			if f.Name == name {
				return &known{f, "overlay " + m.overlay.Name, "to hold both, make the overlay anew"}, nil
			}
		}
		return nil, fmt.Errorf("overlay %s has no feature %s", m.overlay.Name, name)
	}
	if len(m.opts.Exprs) == 0 {
		opts := *m.opts
		for _, f := range m.overlay.Features {
			opts.Features = append(opts.Features, f.Name)
		}
		m.opts = &opts
		return m.readFiles(ctx, v, find)
	}
	exprs, err := v.parseExprs(ctx, m.opts, find)
	if err != nil {
		return err
	}
	for _, f := range m.overlay.Features {
		i := slices.IndexFunc(exprs, func(c computed) bool { return c.Name == f.Name })
		if i < 0 {
			return fmt.Errorf("no expression of feature %s, which overlay %s has", f.Name, m.overlay.Name)
		}
		c := exprs[i]
		if c.Type != f.Type {
			return m.otherType(f, source.TypeName(c.Type, ""))
		}
		c.Feature = f
		m.exprs = append(m.exprs, c)
	}
	return nil
}

// matchFeatures makes the features of files those of the overlay, each of which they must have.
func (m *maker) matchFeatures(features []*fileFeature) error {
	for _, x := range features { // finish has found all of them
		i := slices.IndexFunc(m.overlay.Features, func(f catalog.Feature) bool { return f.Name == x.Name })
		f := m.overlay.Features[i]
		if w, err := vector.Widen(x.Type, f.Type); err != nil || w != f.Type || x.Logical != f.Logical {
			return m.otherType(f, source.TypeName(x.Type, x.Logical)+" in "+x.firstFile)
		}
		x.Feature = f
	}
	return nil
}

func (m *maker) otherType(f catalog.Feature, is string) error {
	return fmt.Errorf("feature %s is %s in overlay %s and %s: to hold both, the overlay has to be made anew", f.Name,
		source.TypeName(f.Type, f.Logical), m.overlay.Name, is)
}
