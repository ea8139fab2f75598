package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// This file checks what a change says of deletes, overlays, sample lists and branches, and puts deletes into a commit.

// needsVersion2 reports whether a snapshot of version 1 could not say what the change does.
func (c Change) needsVersion2() bool {
	return len(c.Deletes)+len(c.FeatureChanges) > 0 || c.Oldest > 0 || c.needsBase()
}

// needsBase reports whether the change may meet what another has set, and so must say what it has seen.
func (c Change) needsBase() bool {
	return len(c.Overlays)+len(c.DropOverlays)+len(c.MergeOverlays)+len(c.Layers)+len(c.Lists)+len(c.DropLists)+len(c.ListRows)+
		len(c.Branches)+len(c.DropBranches) > 0
}

// rowSets returns the sets of rows that the change adds.
func (c Change) rowSets() []RowSet {
	var out []RowSet
	for _, d := range c.Deletes {
		out = append(out, d.Rows)
	}
	for _, l := range c.Layers {
		out = append(out, l.Covered)
	}
	for _, l := range c.ListRows {
		out = append(out, l.Rows)
	}
	return out
}

// validateLayers is Validate for what this file is about.
func (c Change) validateLayers() error {
	if c.needsBase() && c.Base == 0 {
		return errors.New("base of 0: overlays, sample lists and branches are changed against a snapshot")
	}
	var once checkOnce
	for _, d := range c.Deletes {
		_, err := parseID(d.Segment)
		once.check(err, "deletes of segment", d.Segment)
	}
	for _, f := range c.FeatureChanges {
		once.check(f.validate(), "feature changed:", f.Feature)
		if f.Rename != "" {
			once.check(nil, "feature renamed to", f.Rename)
		}
		if slices.ContainsFunc(c.Features, func(g Feature) bool { return g.Name == f.Feature || g.Name == f.Rename }) {
			once.check(errors.New("changed, and of the added segments"), "feature", f.Feature)
		}
	}
	for _, o := range c.Overlays {
		o.Merged = 0
		once.check(o.Validate(), "overlay", o.Name)
	}
	for _, o := range c.DropOverlays {
		once.check(checkName("overlay", o), "overlay dropped:", o)
	}
	for _, o := range c.MergeOverlays {
		once.check(checkName("overlay", o), "overlay merged:", o)
	}
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
	for _, l := range c.Lists {
		once.check(l.Validate(), "sample list", l.Name)
	}
	for _, l := range c.DropLists {
		once.check(checkName("sample list", l), "sample list dropped:", l)
	}
	for _, l := range c.ListRows {
		_, err := parseID(l.Segment)
		once.check(errors.Join(checkName("sample list", l.List), err), "rows of a sample list:", l.List+"\x00"+l.Segment)
	}
	for _, b := range c.Branches {
		once.check(b.resolved(1).Validate(), "branch", b.Name)
	}
	for _, b := range c.DropBranches {
		once.check(checkName("branch", b), "branch", b)
	}
	return once.err
}

// A checkOnce keeps the first error, and makes one of what comes twice.
type checkOnce struct {
	seen map[string]bool
	err  error
}

func (o *checkOnce) check(err error, what, name string) {
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	key := what + "\x00" + name
	if err == nil && o.seen[key] {
		err = errors.New("twice")
	}
	o.seen[key] = true
	if o.err == nil && err != nil {
		o.err = fmt.Errorf("%s %.150q: %w", what, name, err)
	}
}

// resolved returns b with the given snapshot where it has 0.
func (b Branch) resolved(number uint64) Branch {
	b.Snapshot = cmp.Or(b.Snapshot, number)
	b.Overlays = slices.Clone(b.Overlays)
	for i := range b.Overlays {
		b.Overlays[i].Snapshot = cmp.Or(b.Overlays[i].Snapshot, number)
	}
	if b.List.Name != "" {
		b.List.Snapshot = cmp.Or(b.List.Snapshot, number)
	}
	return b
}

// allFeatures returns the change's features and those of overlays that are merged, each once.
func (c Change) allFeatures(merging []Feature) ([]Feature, error) {
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

// later says that another set something after the change's base.
func later(what, name string, since, base uint64) error {
	return fmt.Errorf("%s %s was set in snapshot %d, after snapshot %d that the change was made against: %w", what, name, since, base, ErrConflict)
}

// strip takes away what lies over the segments that the change takes away.
func (e *edit) strip(ctx context.Context, c Change) error {
	if len(e.removed) == 0 {
		return nil
	}
	var gone []SegmentDescriptor
	for _, d := range e.removed {
		gone = append(gone, d)
	}
	slices.SortFunc(gone, func(a, b SegmentDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	take := func(prefix []byte, what string, each func(decoded []byte, d SegmentDescriptor) (since uint64, reason string)) error {
		values, err := e.base.perSegment(ctx, prefix, gone)
		if err != nil {
			return err
		}
		for i, v := range values {
			if v == nil {
				continue
			}
			since, reason := each(v, gone[i])
			if reason != "" {
				return corrupt(e.base.treeName(e.base.m.listing), reason)
			}
			if since > c.Base && e.replaced[gone[i].ID] {
				return later(what+" of segment", gone[i].ID, since, c.Base)
			}
			segment, err := parseID(gone[i].ID)
			if err != nil {
				return err
			}
			e.listing = append(e.listing, treeEntry{append(slices.Clone(prefix), segment[:]...), nil})
		}
		return nil
	}
	set := func(v []byte, d SegmentDescriptor) (uint64, string) {
		r, reason := decodeSet(v, d.Rows, "")
		return r.Since, reason
	}
	if e.base.m.info.DeletedRows > 0 {
		if err := take([]byte{deletesSpace}, "deletes", func(v []byte, d SegmentDescriptor) (uint64, string) {
			r, reason := decodeSet(v, d.Rows, "")
			e.info.DeletedRows -= min(r.Count, e.info.DeletedRows)
			return r.Since, reason
		}); err != nil {
			return err
		}
	}
	overlays, err := e.base.Overlays(ctx)
	if err != nil {
		return err
	}
	for _, o := range overlays {
		if err := take(layerPrefix(o.Number), "layer of overlay "+o.Name, func(v []byte, d SegmentDescriptor) (uint64, string) {
			segment, err := parseID(d.ID)
			if err != nil {
				return 0, err.Error()
			}
			l, reason := decodeLayer(o.Name, segment, v, "")
			if o.Branch != "" {
				l.Since = 0 // its branch keeps it; nobody carries it
			}
			return l.Since, reason
		}); err != nil {
			return err
		}
	}
	lists, err := e.base.SampleLists(ctx)
	if err != nil {
		return err
	}
	for _, l := range lists {
		if err := take(listRowsPrefix(l.Name), "sample list "+l.Name, set); err != nil {
			return err
		}
	}
	return nil
}

// under returns the segments of the ids as the change leaves them; one that is gone is a conflict.
func (e *edit) under(ctx context.Context, c Change, ids []string) (map[string]SegmentDescriptor, error) {
	out := make(map[string]SegmentDescriptor, len(ids))
	for _, d := range c.Add {
		out[d.ID] = d
	}
	var ask []string
	for _, i := range ids {
		if _, ok := out[i]; !ok {
			ask = append(ask, i)
		}
	}
	found, err := e.base.SegmentsByID(ctx, ask...)
	if err != nil {
		return nil, err
	}
	for k, d := range found {
		if d != nil {
			if _, gone := e.removed[d.ID]; !gone {
				out[d.ID] = *d
				continue
			}
		}
		return nil, fmt.Errorf("segment %s is gone: %w", ask[k], ErrConflict)
	}
	return out, nil
}

// deletes unites the change's deletes with those that there are.
func (e *edit) deletes(ctx context.Context, c Change) error {
	if len(c.Deletes) == 0 {
		return nil
	}
	var ids []string
	for _, d := range c.Deletes {
		ids = append(ids, d.Segment)
	}
	under, err := e.under(ctx, c, ids)
	if err != nil {
		return fmt.Errorf("deletes: %w", err)
	}
	var segments []SegmentDescriptor
	for _, i := range ids {
		segments = append(segments, under[i])
	}
	before, err := e.base.DeletedRows(ctx, segments...)
	if err != nil {
		return err
	}
	for i, d := range c.Deletes {
		if err := d.Rows.fits(d.Segment, segments[i].Rows); err != nil {
			return fmt.Errorf("deletes: %w", err)
		}
		set := d.Rows
		if !before[i].IsEmpty() {
			if set, err = e.unite(ctx, before[i], set, segments[i]); err != nil {
				return err
			}
		}
		if set.Count == before[i].Count {
			continue
		}
		set.Since = e.info.Number
		e.info.DeletedRows += set.Count - before[i].Count
		segment, err := parseID(d.Segment)
		if err != nil {
			return err
		}
		e.listing = append(e.listing, treeEntry{deletesKey(segment), appendSet(nil, set)})
	}
	return nil
}

// unite returns the union of two sets of rows of a segment.
func (e *edit) unite(ctx context.Context, a, b RowSet, d SegmentDescriptor) (RowSet, error) {
	rows, err := e.store().ReadRows(ctx, a)
	if err != nil {
		return RowSet{}, err
	}
	more, err := e.store().ReadRows(ctx, b)
	if err != nil {
		return RowSet{}, err
	}
	rows.Or(more)
	if rows.GetCardinality() == a.Count {
		return a, nil
	}
	return e.store().putRows(ctx, d.ID, d.Rows, rows, func(i id) { e.made = append(e.made, i.rowsName()) })
}

// oldest says which snapshots have expired.
func (e *edit) oldest(_ context.Context, c Change) error {
	if c.Oldest > e.base.m.info.Number {
		return fmt.Errorf("oldest snapshot %d: the newest is %d", c.Oldest, e.base.m.info.Number)
	}
	e.info.Oldest = max(e.info.Oldest, c.Oldest)
	return nil
}
