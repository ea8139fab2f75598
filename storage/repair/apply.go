package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/verify"
)

// An applier makes the change of a repair. What it writes nobody names before the commit.
type applier struct {
	*planner
	c    commit.Change
	made []catalog.SegmentDescriptor
	rows []bitmap.Ref

	replaced commit.ReplaceSegments
	deletes  commit.DeleteRows
	listed   commit.SetListRows
	set      commit.SetOverlaySegments
	removed  commit.RemoveOverlaySegments
}

// apply does what the report says.
func (p *planner) apply(ctx context.Context) error {
	a := &applier{planner: p, c: commit.Change{Operation: Operation, Base: p.base.Info().Number}}
	err := a.write(ctx)
	if err == nil && p.noRoot {
		err = p.t.RestoreRoot(ctx, p.base.Manifest.Table)
	}
	if err != nil {
		a.discard(ctx)
		if a.opts.Shallow && isDamage(err) {
			err = fmt.Errorf("what is copied is damaged where --shallow does not look, and nothing was repaired: run "+
				"this without it: %w", err)
		}
		return err
	}
	a.change()
	s, err := commit.Run(ctx, p.t, a.c)
	if err != nil {
		if errors.Is(err, catalog.ErrConflict) {
			a.discard(ctx)
		} else if errors.Is(err, catalog.ErrNotFound) { // a branch or list that was to be dropped
			err = fmt.Errorf("%w: %w", catalog.ErrConflict, err)
		}
		if errors.Is(err, catalog.ErrConflict) {
			return fmt.Errorf("the table was changed meanwhile, and nothing was repaired: run this again: %w", err)
		}
		return err // it may have been made: what is not named gc finds
	}
	p.r.Snapshot = s.Info().Number
	return nil
}

// discard deletes what no commit names. What cannot be deleted gc finds.
func (a *applier) discard(ctx context.Context) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	for _, d := range a.made {
		_ = a.s.Segments.Discard(ctx, d)
	}
	for _, r := range a.rows {
		_ = a.s.Bitmaps.Discard(ctx, r)
	}
}

// write writes the segments, layers and row bitmaps that take the place of damaged ones.
func (a *applier) write(ctx context.Context) error {
	x := &a.segments
	layers := map[string]*layer{} // by the id of their data
	for _, l := range x.layers {
		layers[l.Data.ID] = l
		if l.drop {
			a.removed = append(a.removed, l.OverlaySegment)
		}
	}
	var keys []catalog.Feature
	for _, f := range x.features {
		if f.Role.IsKey() && f.Status != catalog.FeatureDropped {
			keys = append(keys, f)
		}
	}
	for k, d := range x.all {
		r := x.rebuilt[d.ID]
		if r == nil {
			continue
		}
		made, err := a.copy(ctx, r, keys)
		if err != nil {
			return err
		}
		a.replaced = append(a.replaced, commit.Replaced{Old: d.ID, New: made})
		if err := a.over(ctx, d, made, x.deletes[k], layers); err != nil {
			return fmt.Errorf("what lies over segment %s: %w", d.ID, err)
		}
	}
	for _, l := range x.layers {
		if !l.drop && x.rebuilt[l.Segment] == nil {
			if err := a.layer(ctx, l.OverlaySegment, l.Segment, l.remains); err != nil {
				return err
			}
		}
	}
	return nil
}

// copy writes what is left of a segment, and looks at it.
func (a *applier) copy(ctx context.Context, r *remains, keys []catalog.Feature) (catalog.SegmentDescriptor, error) {
	made, err := a.s.Segments.Copy(ctx, r.d, r.stripes, r.entries, keys)
	if err != nil {
		return made, fmt.Errorf("copy segment %s: %w", r.d.ID, err)
	}
	a.made = append(a.made, made)
	errs, err := verify.Segment(ctx, a.s, made)
	if err == nil && len(errs) > 0 {
		err = fmt.Errorf("what was copied of segment %s is damaged: check the disk, the memory and the network: %w",
			r.d.ID, errs[0])
	}
	return made, err
}

// over writes what lies over a segment for the one that takes its place. Their rows are the same.
func (a *applier) over(ctx context.Context, old, made catalog.SegmentDescriptor, deleted bitmap.Ref,
	damaged map[string]*layer) error {
	x := &a.segments
	set, err := a.bitmap(ctx, deleted, old, made)
	if err != nil {
		return err
	}
	if set.Count > 0 {
		a.deletes = append(a.deletes, commit.DeletionVector{Segment: made.ID, Rows: set})
	}
	for _, l := range x.lists {
		if x.dropped[l.Name] {
			continue
		}
		rows, err := a.base.ListedRows(ctx, l.Name, old)
		if err != nil {
			return err
		}
		if set, err = a.bitmap(ctx, rows[0], old, made); err != nil {
			return err
		}
		if set.Count > 0 {
			a.listed = append(a.listed, commit.ListRows{List: l.Name, Segment: made.ID, Rows: set})
		}
	}
	layers, err := a.base.OverlaySegments(ctx, x.overlays, old)
	if err != nil {
		return err
	}
	for i, l := range layers[0] {
		if l == nil || x.overlays[i].Branch != "" {
			continue // its branch has it in the snapshot that it reads
		}
		var r *remains
		if d := damaged[l.Data.ID]; d != nil {
			if d.drop {
				continue
			}
			r = d.remains
		}
		if err := a.layer(ctx, *l, made.ID, r); err != nil {
			return err
		}
	}
	return nil
}

// bitmap writes a row bitmap of a segment as one of the segment that takes its place.
func (a *applier) bitmap(ctx context.Context, r bitmap.Ref, old, made catalog.SegmentDescriptor) (bitmap.Ref, error) {
	if r.Count == 0 {
		return bitmap.Ref{}, nil
	}
	rows, err := a.s.Bitmaps.Read(ctx, r.WithRows(old.Rows))
	if err != nil {
		return bitmap.Ref{}, err
	}
	set, err := a.s.Bitmaps.Put(ctx, made.ID, made.Rows, rows)
	a.rows = append(a.rows, set)
	return set, err
}

// layer writes a layer anew, over a segment, from what is left of it; nil: it is whole.
func (a *applier) layer(ctx context.Context, l catalog.OverlaySegment, over string, r *remains) error {
	if r == nil {
		g, err := a.s.Segments.Open(ctx, l.Data)
		if err != nil {
			return err
		}
		r = &remains{d: l.Data, stripes: g.StripeRows()}
		if r.entries, err = g.Entries(ctx); err != nil {
			return err
		}
	}
	made, err := a.copy(ctx, r, nil)
	if err != nil {
		return err
	}
	old := l.Data
	l.Segment, l.Data, l.Since = over, made, 0
	if !l.All {
		if l.Covered, err = a.bitmap(ctx, l.Covered, old, made); err != nil {
			return err
		}
	}
	a.set = append(a.set, l)
	return nil
}

// change puts the change together.
func (a *applier) change() {
	x := &a.segments
	var gone commit.RemoveSegments
	for _, d := range x.all {
		if x.lost[d.ID] != nil {
			gone = append(gone, d.ID)
		}
	}
	var lists commit.DropLists
	for _, l := range x.lists {
		if x.dropped[l.Name] {
			lists = append(lists, l.Name)
		}
	}
	notes := x.notes
	for _, i := range a.r.Items {
		if i.Action != Leave {
			notes = append(notes, i.note())
		}
	}
	omitted := commit.OmitFeatures(slices.Sorted(maps.Keys(x.omitted)))
	a.c.Ops = []commit.Operation{omitted, gone, a.replaced, a.deletes, a.listed, a.set, a.removed, lists,
		commit.DropBranches(a.branches), commit.ExpireBelow(a.expire), commit.Repair{Lost: a.lost, Notes: notes}}
}
