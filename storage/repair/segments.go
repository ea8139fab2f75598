package repair

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/verify"
	"github.com/dsistore/dsistore/storage/wire"
)

// segments are the segments of the base of which something is damaged, or of what lies over them.
type segments struct {
	features map[catalog.FeatureID]catalog.Feature // of the schema
	overlays []catalog.Overlay                     // all, the lowest first
	lists    []catalog.SampleList                  // all
	dropped  map[string]bool                       // lists
	all      []catalog.SegmentDescriptor
	deletes  []bitmap.Ref // of all
	lost     map[string][]error
	rebuilt  map[string]*remains        // by segment
	layers   []*layer                   // that are damaged
	notes    []catalog.Repaired         // of what no item has
	omitted  map[catalog.FeatureID]bool // dropped features that a copy lacks
}

// A layer is a damaged layer of an overlay.
type layer struct {
	catalog.OverlaySegment
	drop    bool // else it is written anew
	remains *remains
}

// remains are what is left of a segment.
type remains struct {
	d       catalog.SegmentDescriptor
	stripes []uint32
	entries []*segment.Entry // whole
	damaged []*segment.Entry
	errs    []error
	nothing bool // the feature files cannot be found
}

// inspect looks closely at a segment, for the second time. nil: nothing is wrong with it.
func (p *planner) inspect(ctx context.Context, d catalog.SegmentDescriptor) (*remains, error) {
	errs, err := verify.Segment(ctx, p.s, d)
	if err != nil || len(errs) == 0 {
		return nil, err
	}
	for _, e := range errs {
		if err := look(e); err != nil {
			return nil, err
		}
	}
	r := &remains{d: d, errs: errs}
	var entries []*segment.Entry
	err = p.sure(ctx, func() error {
		g, err := p.s.Segments.Open(ctx, d)
		if err != nil {
			return err
		}
		r.stripes = g.StripeRows()
		if entries, err = g.Entries(ctx); err == nil && len(entries) != int(d.Features) {
			err = wire.Corrupt(d.Index, fmt.Sprintf("%d features: the listing says %d", len(entries), d.Features))
		}
		return err
	})
	if err != nil {
		if err := look(err); err != nil {
			return nil, err
		}
		err = p.sure(ctx, func() error {
			r.stripes, entries, err = p.s.Segments.Recover(ctx, d)
			return err
		})
		if err != nil {
			r.errs, r.nothing = append(r.errs, err), true
			return r, look(err)
		}
	}
	whole := map[uint64]bool{}
	for _, e := range entries {
		err := p.sure(ctx, func() error { return verify.Values(ctx, p.s, e) })
		if err := look(err); err != nil {
			return nil, err
		}
		if whole[e.Meta.Feature] = err == nil; err != nil {
			r.errs = append(r.errs, err)
		}
	}
	for _, e := range entries {
		if whole[e.Meta.Feature] && (e.Meta.Group == 0 || whole[e.Meta.Group]) {
			r.entries = append(r.entries, e)
		} else {
			r.damaged = append(r.damaged, e)
		}
	}
	return r, nil
}

// A loss has the features of which values are lost.
type loss struct {
	names   []string          // of those that are read, sorted
	key     bool              // one of these is a key: rows without it would be grouped with others, or found by none
	dropped []catalog.Feature // by name
}

// misses returns what is lost of features. With nothing left it is all of them.
func (r *remains) misses(features map[catalog.FeatureID]catalog.Feature) (out loss) {
	lost := map[catalog.FeatureID]catalog.Feature{}
	if r.nothing {
		maps.Copy(lost, features)
	}
	for _, e := range r.damaged {
		id := catalog.FeatureID(e.Meta.Feature)
		if f, ok := features[id]; ok {
			lost[id] = f
		}
	}
	for _, f := range lost {
		if f.Status == catalog.FeatureDropped {
			out.dropped = append(out.dropped, f)
			continue
		}
		out.names = append(out.names, f.Name)
		out.key = out.key || f.Role.IsKey()
	}
	slices.Sort(out.names)
	slices.SortFunc(out.dropped, func(a, b catalog.Feature) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// copied sets an item's action to a copy that takes the place of what is damaged, without what is lost. where says
// where features are null then.
func (p *planner) copied(i *Item, lost loss, where string) {
	i.Action, i.Features = Rebuild, lost.names
	i.Lost = "nothing is lost: it is copied from what is whole"
	if len(lost.names) > 0 {
		i.Action = NullFeatures
		i.Lost = fmt.Sprintf("the values of %s are lost: they are null %s", strings.Join(lost.names, ", "), where)
	}
	if len(lost.dropped) == 0 {
		return
	}
	var dropped []string
	for _, f := range lost.dropped {
		p.segments.omitted[f.ID] = true
		dropped = append(dropped, f.Name)
	}
	if len(lost.names) == 0 {
		i.Lost = "nothing is lost that is read: it is copied from what is whole"
	}
	i.Lost += fmt.Sprintf("; dropped features lose their values: %s, null %s if restored", strings.Join(dropped, ", "),
		where)
}

// findSegments finds out what of the base's segments is damaged, and of what lies over them.
func (p *planner) findSegments(ctx context.Context) error {
	x := &p.segments
	x.lost, x.rebuilt, x.dropped = map[string][]error{}, map[string]*remains{}, map[string]bool{}
	x.features, x.omitted = map[catalog.FeatureID]catalog.Feature{}, map[catalog.FeatureID]bool{}
	features, err := p.base.AllFeatures(ctx)
	if err != nil {
		return err
	}
	for _, f := range features {
		x.features[f.ID] = f
	}
	if x.all, err = p.base.Segments(ctx, nil); err != nil {
		return err
	}
	if x.deletes, err = p.base.DeletionVectors(ctx, x.all...); err != nil {
		return err
	}
	if x.overlays, err = p.base.Overlays(ctx); err != nil {
		return err
	}
	if x.lists, err = p.base.SampleLists(ctx); err != nil {
		return err
	}
	if err := p.findDeletes(ctx); err != nil {
		return err
	}
	for _, d := range x.all {
		if !p.isDamaged(d.ID) {
			continue
		}
		r, err := p.inspect(ctx, d)
		if err != nil {
			return err
		}
		if r == nil {
			p.isWhole("segment", d.ID, wholeAgain)
			continue
		}
		x.rebuilt[d.ID] = r
		p.taken(d.ID)
	}
	if err := p.findLayers(ctx); err != nil {
		return err
	}
	if err := p.decide(ctx); err != nil {
		return err
	}
	if err := p.findLists(ctx); err != nil {
		return err
	}
	return p.findRest(ctx)
}

// isDamaged reports whether verify has found something wrong with what has the id.
func (p *planner) isDamaged(id string) bool {
	i, err := names.ParseID(id)
	return err == nil && len(p.byID[i]) > 0
}

// taken notes that an item has the damage of an id.
func (p *planner) taken(id string) {
	if i, err := names.ParseID(id); err == nil {
		delete(p.byID, i)
	}
}

const (
	wholeAgain = "nothing is wrong with it when it is read again: check the disk, the memory and the network"
	readable   = "it can be read, and nothing is done about it"
)

// isWhole names what was damaged when verify read it, and can be read.
func (p *planner) isWhole(kind, id, how string) {
	i, err := names.ParseID(id)
	if err != nil {
		return
	}
	p.add(&Item{Action: Leave, Kind: kind, ID: id, Damage: texts(p.byID[i]...), Lost: how})
	p.taken(id)
}

// damagedRows returns the damage of a row bitmap that is an object, looked at again; nil: none.
func (p *planner) damagedRows(ctx context.Context, r bitmap.Ref) ([]error, error) {
	id, size, ok := r.Object()
	if !ok || len(p.byID[id]) == 0 {
		return nil, nil
	}
	err := p.sure(ctx, func() error {
		_, err := p.s.Bitmaps.Read(ctx, r)
		return err
	})
	if err == nil {
		how := wholeAgain
		if info, err := p.s.Blobs.Stat(ctx, id.RowsName()); err == nil && uint64(info.Size) != size {
			how = readable // what is behind its end nobody reads
		}
		p.isWhole("row bitmap", id.String(), how)
		return nil, nil
	}
	return p.byID[id], look(err)
}

// findDeletes finds the deletion vectors that are damaged. Without one nobody knows which rows of the segment were
// deleted, and deleted rows must not come back: all of them go.
func (p *planner) findDeletes(ctx context.Context) error {
	x := &p.segments
	for i, d := range x.all {
		errs, err := p.damagedRows(ctx, x.deletes[i])
		if err != nil {
			return err
		}
		if errs == nil {
			continue
		}
		id, _, _ := x.deletes[i].Object()
		x.lost[d.ID] = append(x.lost[d.ID], errs...)
		x.notes = append(x.notes, catalog.Repaired{ID: id.String(),
			What: "deletion vector " + id.String() + ": went with the rows of segment " + d.ID})
		p.taken(id.String())
	}
	return nil
}

// findLayers finds the layers that are damaged, and what becomes of them. Of those of an overlay that is part of the
// table the rows go, unless they may be null: what lies below them are other values.
func (p *planner) findLayers(ctx context.Context) error {
	x := &p.segments
	listed := map[string]bool{}
	for _, d := range x.all {
		listed[d.ID] = true
	}
	for i := range x.overlays {
		o := &x.overlays[i]
		read := map[catalog.FeatureID]catalog.Feature{}
		for _, f := range o.Features {
			if of, ok := x.features[f.ID]; ok {
				f.Status = of.Status // the overlay's says nothing
			}
			read[f.ID] = f
		}
		err := p.base.EachOverlaySegment(ctx, *o, func(l catalog.OverlaySegment) error {
			if !listed[l.Segment] || o.Branch != "" {
				return nil // only its branch reads it, in another snapshot
			}
			covered, err := p.damagedRows(ctx, l.Covered)
			if err != nil {
				return err
			}
			var r *remains
			if p.isDamaged(l.Data.ID) {
				if r, err = p.inspect(ctx, l.Data); err != nil {
					return err
				}
				if r == nil {
					p.isWhole("layer", l.Data.ID, wholeAgain)
				}
			}
			if r == nil && covered == nil {
				return nil
			}
			under, err := p.underOthers(ctx, i, l.Segment, read)
			if err != nil {
				return err
			}
			return p.layer(ctx, o, l, r, covered, under)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// underOthers returns those of the features of overlay i that are read over a segment: not those that a later merged
// overlay replaces in all of its rows, if this one is merged too. Keys count always, as for readOf.
func (p *planner) underOthers(ctx context.Context, i int, id string,
	read map[catalog.FeatureID]catalog.Feature) (map[catalog.FeatureID]catalog.Feature, error) {
	x := &p.segments
	at := slices.IndexFunc(x.all, func(d catalog.SegmentDescriptor) bool { return d.ID == id })
	if at < 0 || x.overlays[i].Merged == 0 {
		return read, nil
	}
	layers, err := p.base.OverlaySegments(ctx, x.overlays, x.all[at])
	if err != nil {
		return nil, err
	}
	out := maps.Clone(read)
	for k, l := range layers[0] {
		if o := x.overlays[k]; l != nil && l.All && o.Merged > x.overlays[i].Merged {
			for _, f := range o.Features {
				if !out[f.ID].Role.IsKey() {
					delete(out, f.ID)
				}
			}
		}
	}
	return out, nil
}

// layer decides what becomes of a layer.
func (p *planner) layer(ctx context.Context, o *catalog.Overlay, l catalog.OverlaySegment, r *remains, covered []error,
	read map[catalog.FeatureID]catalog.Feature) error {
	x := &p.segments
	i := &Item{Kind: "layer", ID: l.Data.ID, Partition: l.Data.Partition.String(), Overlay: o.Name}
	errs := covered
	var lost loss
	if r != nil {
		errs = append(slices.Clone(r.errs), covered...)
		lost = r.misses(read)
	}
	i.Damage = texts(errs...)
	p.taken(l.Data.ID)
	if id, _, ok := l.Covered.Object(); ok && covered != nil {
		p.taken(id.String())
		x.notes = append(x.notes, catalog.Repaired{ID: id.String(), What: "rows that layer " + l.Data.ID + " covers"})
	}
	planned := &layer{OverlaySegment: l, remains: r}
	over := fmt.Sprintf("segment %s", l.Segment)
	switch {
	case covered == nil && (len(lost.names) == 0 || p.opts.NullFeatures && !lost.key):
		p.copied(i, lost, "over "+over)
	case o.Merged == 0:
		i.Action, i.Features, planned.drop = DropLayer, lost.names, true
		i.Lost = fmt.Sprintf("the values of the overlay over %s are lost; from now on it refuses to be read where it "+
			"has none", over)
	default:
		// An item of the segment has it.
		x.lost[l.Segment] = append(x.lost[l.Segment], errs...)
		x.notes = append(x.notes, catalog.Repaired{ID: l.Data.ID,
			What: fmt.Sprintf("layer of overlay %s %s: went with the rows of %s", o.Name, l.Data.ID, over)})
		return nil
	}
	if planned.remains != nil && r.nothing {
		g, err := p.stripesUnder(ctx, l.Segment)
		if err != nil {
			return err
		}
		planned.remains.stripes = g
		if g == nil && !planned.drop { // nothing is left of the segment under it either
			i.Action, planned.drop = DropLayer, true
		}
	}
	x.layers = append(x.layers, planned)
	p.add(i)
	return nil
}

// stripesUnder returns the rows of the stripes of a segment of the base; nil where it is lost.
func (p *planner) stripesUnder(ctx context.Context, id string) ([]uint32, error) {
	if r := p.segments.rebuilt[id]; r != nil {
		return r.stripes, nil
	}
	d, err := p.base.SegmentsByID(ctx, id)
	if err != nil {
		return nil, err
	}
	if d[0] == nil {
		return nil, nil
	}
	g, err := p.s.Segments.Open(ctx, *d[0])
	if err != nil {
		return nil, look(err)
	}
	return g.StripeRows(), nil
}

// decide decides what becomes of the segments.
func (p *planner) decide(ctx context.Context) error {
	x := &p.segments
	for k, d := range x.all {
		r, errs := x.rebuilt[d.ID], x.lost[d.ID]
		if r == nil && errs == nil {
			continue
		}
		i := &Item{Kind: "segment", ID: d.ID, Partition: d.Partition.String(), Action: DropRows}
		var lost loss
		if r != nil {
			read, err := p.readOf(ctx, d)
			if err != nil {
				return err
			}
			lost = r.misses(read)
			errs = append(errs, r.errs...)
		}
		i.Damage = texts(errs...)
		switch nullable := x.lost[d.ID] == nil && !r.nothing; {
		case nullable && (len(lost.names) == 0 || p.opts.NullFeatures && !lost.key):
			p.copied(i, lost, fmt.Sprintf("in %d rows", d.Rows-x.deletes[k].Count))
		default:
			i.Rows = d.Rows - x.deletes[k].Count
			if r != nil && !r.nothing && len(r.entries) > 0 {
				i.Features = lost.names
			}
			over, err := p.over(ctx, d)
			if err != nil {
				return err
			}
			i.Lost = fmt.Sprintf("%d rows are lost%s", i.Rows, over)
			switch {
			case nullable && lost.key:
				i.Hint = "without a key they cannot stay"
			case nullable:
				i.Hint = fmt.Sprintf("--null-features keeps them, with %s null", strings.Join(lost.names, ", "))
			}
			x.lost[d.ID] = errs
			delete(x.rebuilt, d.ID)
		}
		p.add(i)
	}
	// Layers over segments that go need no item of their own: they go with them.
	x.layers = slices.DeleteFunc(x.layers, func(l *layer) bool {
		if x.lost[l.Segment] == nil {
			return false
		}
		p.r.Items = slices.DeleteFunc(p.r.Items, func(i *Item) bool { return i.Kind == "layer" && i.ID == l.Data.ID })
		x.notes = append(x.notes, catalog.Repaired{ID: l.Data.ID,
			What: "layer " + l.Data.ID + ": went with the rows of segment " + l.Segment})
		return true
	})
	return nil
}

// readOf returns the features that are read of a segment: not those that a merged overlay replaces in all of its rows.
// Keys count always, for key tables and erasures look at the segment's own.
func (p *planner) readOf(ctx context.Context, d catalog.SegmentDescriptor) (map[catalog.FeatureID]catalog.Feature,
	error) {
	out := maps.Clone(p.segments.features)
	layers, err := p.base.OverlaySegments(ctx, p.segments.overlays, d)
	if err != nil {
		return nil, err
	}
	for i, l := range layers[0] {
		if o := p.segments.overlays[i]; l != nil && l.All && o.Merged != 0 {
			for _, f := range o.Features {
				if !out[f.ID].Role.IsKey() {
					delete(out, f.ID)
				}
			}
		}
	}
	return out, nil
}

// over says what of overlays and sample lists goes with a segment.
func (p *planner) over(ctx context.Context, d catalog.SegmentDescriptor) (string, error) {
	var overlays, lists []string
	layers, err := p.base.OverlaySegments(ctx, p.segments.overlays, d)
	if err != nil {
		return "", err
	}
	for i, l := range layers[0] {
		if o := p.segments.overlays[i]; l != nil && o.Branch == "" {
			overlays = append(overlays, o.Name)
		}
	}
	for _, l := range p.segments.lists {
		rows, err := p.base.ListedRows(ctx, l.Name, d)
		if err != nil {
			return "", err
		}
		if rows[0].Count > 0 {
			lists = append(lists, l.Name)
		}
	}
	out := ""
	if len(overlays) > 0 {
		out += ", with what overlays " + strings.Join(overlays, ", ") + " have for them"
	}
	if len(lists) > 0 {
		out += ", some of them of sample lists " + strings.Join(lists, ", ")
	}
	return out, nil
}

// findLists finds the sample lists with rows that cannot be read. One without some of its rows is another list: it
// goes.
func (p *planner) findLists(ctx context.Context) error {
	x := &p.segments
	for _, l := range x.lists {
		stored, err := p.base.ListedRows(ctx, l.Name, x.all...)
		if err != nil {
			return err
		}
		var all []error
		for i, r := range stored {
			errs, err := p.damagedRows(ctx, r)
			if err != nil {
				return err
			}
			if errs == nil {
				continue
			}
			id, _, _ := r.Object()
			p.taken(id.String())
			if x.lost[x.all[i].ID] == nil {
				all = append(all, errs...)
			}
			x.notes = append(x.notes, catalog.Repaired{ID: id.String(), What: "rows of sample list " + l.Name})
		}
		if all == nil {
			continue
		}
		x.dropped[l.Name] = true
		p.add(&Item{Action: DropList, Kind: "sample list", Name: l.Name, Damage: texts(all...),
			Lost: "the list is lost: make it again"})
	}
	return nil
}

// findRest names the damaged segments and row bitmaps that the newest snapshot does not show: those of snapshots before
// it and of branches. They stay as they are. Only verify has looked at them: it looks again.
func (p *planner) findRest(ctx context.Context) error {
	if len(p.byID) == 0 {
		return nil
	}
	only, again := map[names.ID]bool{}, map[names.ID]bool{}
	for id := range p.byID {
		only[id] = true
	}
	found, err := p.verify(ctx, only)
	if err := cmp.Or(err, p.isThere(ctx)); err != nil {
		return err
	}
	for _, d := range found {
		if id, ok := names.ParseDataName(objectOf(d)); ok {
			again[id] = true
		}
	}
	byID := func(a, b names.ID) int { return bytes.Compare(a[:], b[:]) }
	for _, id := range slices.SortedFunc(maps.Keys(p.byID), byID) {
		i := &Item{Action: Note, Kind: "object", ID: id.String(), Damage: texts(p.byID[id]...),
			Lost: "nothing of the newest snapshot is lost; snapshots before it, or branches, cannot read it"}
		if damaged, isRun := p.runs[id]; isRun && !damaged {
			if p.expire > 0 || p.lost.Last > 0 {
				continue // what it missed goes
			}
			i.Action, i.Lost = Leave, readable
		} else if !again[id] {
			i.Action, i.Lost = Leave, wholeAgain
		} else if object := objectOf(p.byID[id][0]); object == id.ListingName() || object == id.SchemaName() {
			i.Action, i.Lost = Leave, "only expired snapshots have it, which leases hold: it goes with them"
		}
		p.add(i)
	}
	return nil
}

// objectOf returns the object that an error blames.
func objectOf(err error) string {
	var c *format.CorruptError
	if errors.As(err, &c) {
		return c.Object
	}
	return ""
}
