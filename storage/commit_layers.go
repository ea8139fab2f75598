package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/format/vector"
)

// This file puts deletes, overlays, sample lists and branches into a commit.

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
		if err := e.fitsSchema(ctx, o); err != nil {
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
		}
		o := *there
		o.Merged = e.info.Number
		e.merging = append(e.merging, o.Features...)
		e.setOverlay(o)
	}
	return nil
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

// fitsSchema holds an overlay's features to the schema's of their names and ids.
func (e *edit) fitsSchema(ctx context.Context, o Overlay) error {
	names := make([]string, len(o.Features))
	keys := make([][]byte, len(o.Features))
	for i, f := range o.Features {
		names[i], keys[i] = f.Name, featureIDKey(f.ID)
	}
	known, err := e.base.Find(ctx, names...)
	if err != nil {
		return err
	}
	owners, err := e.store().get(ctx, e.base.m.schema, keys...)
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
		e.listing = append(e.listing, treeEntry{deletesKey(segment), appendDeletes(nil, set)})
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
	var b *Branch
	for _, set := range c.Branches {
		if set.Name == o.Branch && set.Added != 0 {
			b = &set
		}
	}
	if b == nil {
		var err error
		if b, err = e.base.findBranch(ctx, o.Branch); err != nil {
			return nil, err
		}
	}
	if b == nil {
		return nil, fmt.Errorf("branch %s is gone: %w", o.Branch, ErrConflict)
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
			return nil, fmt.Errorf("segment %s is not in snapshot %d of branch %s", ids[i], b.Snapshot, o.Branch)
		}
		out[ids[i]] = *d
	}
	return out, nil
}

// list returns a sample list as the change leaves it, nil where there is none then.
func (e *edit) list(ctx context.Context, name string) (*SampleList, error) {
	if l, ok := e.listed[name]; ok {
		return l, nil
	}
	return e.base.findList(ctx, name)
}

// lists drops and defines sample lists, and sets their rows.
func (e *edit) lists(ctx context.Context, c Change) error {
	e.listed = map[string]*SampleList{}
	for _, name := range c.DropLists {
		l, err := e.base.SampleList(ctx, name)
		if err != nil {
			return err
		}
		if l.Added > c.Base {
			return later("sample list", name, l.Added, c.Base)
		}
		prefix := listRowsPrefix(name)
		err = e.base.between(ctx, prefix, prefixEnd(prefix), func(key, _ []byte) string {
			e.listing = append(e.listing, treeEntry{slices.Clone(key), nil})
			return ""
		})
		if err != nil {
			return err
		}
		e.listing = append(e.listing, treeEntry{listKey(name), nil})
		e.listed[name] = nil
		e.m.lists--
	}
	for _, l := range c.Lists {
		there, err := e.list(ctx, l.Name)
		if err != nil {
			return err
		}
		if there != nil {
			return taken("sample list", l.Name, there.Added, c.Base)
		}
		l.Added = e.info.Number
		e.listed[l.Name] = &l
		e.m.lists++
		e.listing = append(e.listing, treeEntry{listKey(l.Name), appendList(nil, l)})
	}
	byList := map[string][]ListRows{}
	var names []string
	for _, r := range c.ListRows {
		if byList[r.List] == nil {
			names = append(names, r.List)
		}
		byList[r.List] = append(byList[r.List], r)
	}
	for _, name := range names {
		if err := e.listRows(ctx, c, name, byList[name]); err != nil {
			return fmt.Errorf("sample list %s: %w", name, err)
		}
	}
	return nil
}

func (e *edit) listRows(ctx context.Context, c Change, name string, sets []ListRows) error {
	l, err := e.list(ctx, name)
	if err != nil {
		return err
	}
	if l == nil {
		return fmt.Errorf("it is gone: %w", ErrConflict)
	}
	fresh := l.Added == e.info.Number
	if l.Added > c.Base && !fresh {
		return later("its definition", "", l.Added, c.Base)
	}
	var ids []string
	for _, r := range sets {
		ids = append(ids, r.Segment)
	}
	under, err := e.under(ctx, c, ids)
	if err != nil {
		return err
	}
	var segments []SegmentDescriptor
	for _, i := range ids {
		segments = append(segments, under[i])
	}
	before := make([]RowSet, len(segments))
	if !fresh {
		if before, err = e.base.ListedRows(ctx, name, segments...); err != nil {
			return err
		}
	}
	for i, r := range sets {
		if before[i].Since > c.Base {
			return later("rows of segment", r.Segment, before[i].Since, c.Base)
		}
		if err := r.Rows.fits(r.Segment, segments[i].Rows); err != nil {
			return err
		}
		segment, err := parseID(r.Segment)
		if err != nil {
			return err
		}
		key := append(listRowsPrefix(name), segment[:]...)
		if r.Rows.IsEmpty() {
			e.listing = append(e.listing, treeEntry{key, nil})
			continue
		}
		r.Rows.Since = e.info.Number
		e.listing = append(e.listing, treeEntry{key, appendDeletes(nil, r.Rows)})
	}
	return nil
}

// branches drops and sets branches.
func (e *edit) branches(ctx context.Context, c Change) error {
	for _, name := range c.DropBranches {
		b, err := e.base.Branch(ctx, name)
		if err != nil {
			return err
		}
		if b.Added > c.Base {
			return later("branch", name, b.Added, c.Base)
		}
		e.listing = append(e.listing, treeEntry{branchKey(name), nil})
		e.m.branches--
	}
	if len(c.Branches) == 0 {
		return nil
	}
	all, err := e.base.Branches(ctx)
	if err != nil {
		return err
	}
	pinned := map[uint64]bool{} // also when they have expired
	for _, b := range all {
		for _, n := range b.Pins() {
			pinned[n] = true
		}
	}
	for _, b := range c.Branches {
		there, err := e.base.findBranch(ctx, b.Name)
		if err != nil {
			return err
		}
		switch {
		case there != nil && b.Added == 0:
			return taken("branch", b.Name, there.Added, c.Base)
		case there == nil && b.Added != 0:
			return fmt.Errorf("branch %s is gone: %w", b.Name, ErrConflict)
		case there != nil && there.Added != b.Added:
			return later("branch", b.Name, there.Added, b.Added)
		case there == nil:
			e.m.branches++
		}
		b = b.resolved(e.info.Number)
		b.Added = e.info.Number
		switch {
		case there != nil:
			b.Created = there.Created
		case b.Created.IsZero():
			b.Created = e.info.Time
		}
		if err := e.checkPins(ctx, b, pinned); err != nil {
			return fmt.Errorf("branch %s: %w", b.Name, err)
		}
		e.listing = append(e.listing, treeEntry{branchKey(b.Name), appendBranch(nil, b)})
	}
	return nil
}

// checkPins makes sure that a branch pins what is there, and stays.
func (e *edit) checkPins(ctx context.Context, b Branch, pinned map[uint64]bool) error {
	at := func(n uint64) (*Snapshot, error) {
		if n < e.base.m.info.Oldest && !pinned[n] {
			return nil, fmt.Errorf("snapshot %d has expired, and gc may be about to take it: %w", n, ErrNotFound)
		}
		return e.base.t.At(ctx, n)
	}
	if b.Snapshot != e.info.Number {
		if _, err := at(b.Snapshot); err != nil {
			return err
		}
	}
	for _, p := range b.Overlays {
		if p.Snapshot != e.info.Number {
			s, err := at(p.Snapshot)
			if err == nil {
				_, err = s.Overlay(ctx, p.Name)
			}
			if err != nil {
				return err
			}
			continue
		}
		o, err := e.overlay(ctx, p.Name)
		if err != nil {
			return err
		}
		if o == nil {
			_, err := e.base.Overlay(ctx, p.Name)
			return cmpErr(err, fmt.Errorf("overlay %s is gone: %w", p.Name, ErrConflict))
		}
	}
	switch p := b.List; {
	case p.Name == "":
	case p.Snapshot != e.info.Number:
		s, err := at(p.Snapshot)
		if err == nil {
			_, err = s.SampleList(ctx, p.Name)
		}
		return err
	default:
		l, err := e.list(ctx, p.Name)
		if err != nil {
			return err
		}
		if l == nil {
			_, err := e.base.SampleList(ctx, p.Name)
			return cmpErr(err, fmt.Errorf("sample list %s is gone: %w", p.Name, ErrConflict))
		}
	}
	return nil
}

// cmpErr returns the first error that is one.
func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// oldest says which snapshots have expired.
func (e *edit) oldest(_ context.Context, c Change) error {
	if c.Oldest > e.base.m.info.Number {
		return fmt.Errorf("oldest snapshot %d: the newest is %d", c.Oldest, e.base.m.info.Number)
	}
	e.info.Oldest = max(e.info.Oldest, c.Oldest)
	return nil
}
