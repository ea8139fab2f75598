package reader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// A mix says where the rows of the features of one chain come from in a segment. Its parts have different rows, and together all.
type mix struct {
	parts []mixPart // the highest first
}

// A mixPart is rows that one layer, the segment itself, or nothing has.
type mixPart struct {
	source int32           // in mixedSegment.sources; nullSource: the rows are null
	rows   *roaring.Bitmap // of the segment; nil: all
	// stripes are those that have some of them; nil: all.
	stripes vector.Bitmap
}

const (
	baseSource = 0 // the segment itself
	nullSource = -1
)

// A mixedSegment is a segment with layers over it, while it is looked up.
type mixedSegment struct {
	l *Layout
	i int
	g *segment
	// sources are the segment and the layers that are read.
	sources []*source
	byLayer map[int32]int32 // of overlays, places in sources
	mixes   []*mix          // of l.chains, as far as they are made
	groups  map[groupRef]*groupUse
	order   []groupRef // of groups
}

// A source is a segment whose feature files are looked up: the one that is read, or a layer over it.
type source struct {
	d       storage.SegmentDescriptor
	layer   *storage.Layer // nil: the segment itself
	index   segmentIndex   // nil: it is not open
	covered *roaring.Bitmap
	ids     []storage.FeatureID
	entries map[storage.FeatureID]*storage.FeatureEntry
}

// A groupRef names a dedup group of a source.
type groupRef struct {
	source int32
	id     storage.FeatureID
}

// groupUse says where a group's inverse is needed.
type groupUse struct {
	feature string        // one of the group
	stripes vector.Bitmap // nil: all
	all     bool
	file    int32 // in the segment's files
}

// readMixed is readIndex for a segment that layers lie over; the index is that of the segment itself.
func (l *Layout) readMixed(ctx context.Context, g *segment, i int, index segmentIndex) (_ *segment, err error) {
	x := &mixedSegment{
		l: l, i: i, g: g, sources: []*source{{d: l.segments[i], index: index}}, byLayer: map[int32]int32{},
		mixes: make([]*mix, len(l.chains)), groups: map[groupRef]*groupUse{},
	}
	defer func() {
		if closing := x.close(); closing != nil {
			err = errors.Join(err, closing)
		}
	}()
	for c, chain := range l.chains {
		if x.mixes[c], err = x.mixOf(ctx, chain); err != nil {
			return nil, err
		}
	}
	if err := x.lookUp(ctx); err != nil {
		return nil, err
	}
	if err := x.addFeatures(); err != nil {
		return nil, err
	}
	if err := x.addGroups(ctx); err != nil {
		return nil, err
	}
	g.dictionaries = newDictionaries(g.files)
	return g, nil
}

// close closes the layers' indexes.
func (x *mixedSegment) close() error {
	var errs []error
	for _, s := range x.sources[1:] {
		if s.index != nil {
			errs = append(errs, s.index.Close())
		}
	}
	return errors.Join(errs...)
}

// mixOf goes down a chain until every row is found.
func (x *mixedSegment) mixOf(ctx context.Context, chain []int32) (*mix, error) {
	l, d := x.l, x.l.segments[x.i]
	m := new(mix)
	var rest *roaring.Bitmap // rows that are not found yet; nil: all
	add := func(source int32, rows *roaring.Bitmap) {
		if rows == nil || !rows.IsEmpty() {
			m.parts = append(m.parts, mixPart{source: source, rows: rows})
		}
	}
	bottom := int32(baseSource)
	for _, k := range chain {
		o, layer := &l.overlays[k], l.layers[x.i][k]
		if layer == nil {
			switch o.Missing {
			case storage.FallThrough:
				continue
			case storage.Refuse:
				return nil, l.refusal(k, x.i, "segment "+d.ID)
			}
			bottom = nullSource
			break
		}
		if coversAll(layer) {
			bottom = x.source(k)
			break
		}
		if err := selectable(d); err != nil {
			return nil, fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		s := x.source(k)
		covered, err := x.coveredBy(ctx, s)
		if err != nil {
			return nil, err
		}
		if rest == nil {
			rest = roaring.New()
			rest.AddRange(0, d.Rows)
		}
		add(s, roaring.And(rest, covered))
		rest.AndNot(covered)
		if o.Uncovered == storage.Null {
			bottom = nullSource
			break
		}
	}
	add(bottom, rest)
	if len(m.parts) == 1 {
		m.parts[0].rows = nil
		return m, nil
	}
	for p := range m.parts {
		part := &m.parts[p]
		part.stripes = make(vector.Bitmap, vector.BitmapWords(x.g.stripes()))
		for k := range x.g.stripes() {
			if part.rows.CardinalityInRange(x.g.first[k], x.g.first[k+1]) > 0 {
				part.stripes.Set(k)
			}
		}
	}
	return m, nil
}

// source returns the place in sources of overlay k's layer.
func (x *mixedSegment) source(k int32) int32 {
	at, ok := x.byLayer[k]
	if !ok {
		layer := x.l.layers[x.i][k]
		at = int32(len(x.sources))
		x.sources = append(x.sources, &source{d: layer.Data, layer: layer})
		x.byLayer[k] = at
	}
	return at
}

// coveredBy returns the rows that a source covers, read once.
func (x *mixedSegment) coveredBy(ctx context.Context, at int32) (*roaring.Bitmap, error) {
	s := x.sources[at]
	if s.covered == nil {
		var err error
		if s.covered, err = x.l.covered(ctx, s.layer); err != nil {
			return nil, fmt.Errorf("overlay %s: %w", s.layer.Overlay, err)
		}
	}
	return s.covered, nil
}

// layersAtOnce is of how many layers of a segment the indexes are read at once.
const layersAtOnce = 16

// lookUp looks the features up in the sources that have rows of them, side by side.
func (x *mixedSegment) lookUp(ctx context.Context) error {
	for j, f := range x.l.features {
		if IsPartitionKey(f) {
			continue
		}
		for _, p := range x.partsOf(j) {
			if p.source != nullSource {
				s := x.sources[p.source]
				s.ids = append(s.ids, f.ID)
			}
		}
	}
	errs := make([]error, len(x.sources))
	var g errgroup.Group
	g.SetLimit(layersAtOnce)
	for i, s := range x.sources {
		if i == baseSource || len(s.ids) == 0 {
			continue
		}
		g.Go(func() error {
			errs[i] = x.openLayer(ctx, s)
			return nil
		})
	}
	errs[baseSource] = x.sources[baseSource].lookUp(ctx)
	_ = g.Wait()
	return firstError(errs)
}

// openLayer opens the index of a layer, whose stripes must be those of the segment, and looks its features up.
func (x *mixedSegment) openLayer(ctx context.Context, s *source) error {
	index, err := x.l.open(ctx, s.d)
	if err != nil {
		return err
	}
	s.index = index
	if !slices.Equal(index.StripeRows(), x.sources[baseSource].index.StripeRows()) {
		return &format.CorruptError{
			Object: s.d.Index, Stripe: -1, Offset: -1,
			Reason: fmt.Sprintf("the stripes of a layer of overlay %s are not those of segment %s under it", s.layer.Overlay, x.l.segments[x.i].ID),
		}
	}
	return s.lookUp(ctx)
}

func (s *source) lookUp(ctx context.Context) error {
	if len(s.ids) == 0 {
		return nil
	}
	entries, err := s.index.Lookup(ctx, s.ids...)
	if err != nil {
		return err
	}
	s.entries = make(map[storage.FeatureID]*storage.FeatureEntry, len(entries))
	for i, e := range entries {
		s.entries[s.ids[i]] = e
	}
	return nil
}

// wholeSegment are the parts of a feature that no overlay has.
var wholeSegment = []mixPart{{source: baseSource}}

// partsOf returns where feature j comes from.
func (x *mixedSegment) partsOf(j int) []mixPart {
	if at := x.l.chainOf[j]; at >= 0 {
		return x.mixes[at].parts
	}
	return wholeSegment
}

// entry returns the entry of feature j in a part, nil where its rows are null.
func (x *mixedSegment) entry(j int, p *mixPart) *storage.FeatureEntry {
	if p.source == nullSource {
		return nil
	}
	return x.sources[p.source].entries[x.l.features[j].ID]
}

// addFeatures adds the files of features, and makes the items. Features whose parts are of the same groups are one.
func (x *mixedSegment) addFeatures() error {
	l, g := x.l, x.g
	items := map[string]int{} // of features with groups, by these
	for j := range l.features {
		f := &l.features[j]
		if isWeight(*f) {
			g.items = append(g.items, item{inverse: -1, features: []int32{int32(j)}})
			continue
		}
		if IsPartitionKey(*f) {
			continue
		}
		parts := x.partsOf(j)
		files := make([]int32, len(parts))
		grouped, some := true, false
		var key strings.Builder // which sources there are says which rows each has
		for p := range parts {
			files[p] = -1
			e := x.entry(j, &parts[p])
			if e == nil {
				fmt.Fprintf(&key, " %d", parts[p].source)
				continue
			}
			some = true
			if err := g.addFile(x.sources[parts[p].source].d, e, f.Name, f.Type); err != nil {
				return err
			}
			files[p] = int32(len(g.files) - 1)
			file := &g.files[files[p]]
			file.transforms, file.stripes = l.transformers[j], parts[p].stripes
			grouped = grouped && e.Meta.Group != 0
			fmt.Fprintf(&key, " %d:%x", parts[p].source, e.Meta.Group)
		}
		if !some {
			if t := l.transformers[j]; t != nil && t.fills {
				g.items = append(g.items, item{inverse: -1, features: []int32{int32(j)}})
			}
			continue
		}
		g.featureFile[j] = slices.Max(files)
		at, known := items[key.String()]
		if !grouped || !known {
			at = len(g.items)
			g.items = append(g.items, x.newItem(j, parts, grouped))
		}
		if grouped && !known {
			items[key.String()] = at
		}
		it := &g.items[at]
		it.features = append(it.features, int32(j))
		for p := range it.parts {
			it.parts[p].files = append(it.parts[p].files, files[p])
		}
	}
	return nil
}

// newItem returns an item for feature j and those of the same groups.
func (x *mixedSegment) newItem(j int, parts []mixPart, grouped bool) item {
	it := item{inverse: -1}
	for p := range parts {
		if e := x.entry(j, &parts[p]); e != nil && e.Meta.Group != 0 {
			x.useGroup(groupRef{parts[p].source, storage.FeatureID(e.Meta.Group)}, x.l.features[j].Name, parts[p].stripes)
		}
	}
	if len(parts) == 1 {
		return it
	}
	it.grouped = grouped
	for _, p := range parts {
		it.parts = append(it.parts, itemPart{rows: p.rows, stripes: p.stripes, inverse: -1})
	}
	x.g.blends = append(x.g.blends, int32(len(x.g.items)))
	return it
}

// useGroup notes that a group's inverse is needed in stripes.
func (x *mixedSegment) useGroup(ref groupRef, feature string, stripes vector.Bitmap) {
	u := x.groups[ref]
	if u == nil {
		u = &groupUse{feature: feature}
		x.groups[ref] = u
		x.order = append(x.order, ref)
	}
	if stripes == nil {
		u.all = true
		return
	}
	u.stripes = u.stripes.Grow(len(stripes) * 64)
	for i, w := range stripes {
		u.stripes[i] |= w
	}
}

// addGroups adds the files of the groups, and gives the items theirs.
func (x *mixedSegment) addGroups(ctx context.Context) error {
	for at, s := range x.sources {
		var ids []storage.FeatureID
		for _, ref := range x.order {
			if ref.source == int32(at) {
				ids = append(ids, ref.id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		entries, err := s.index.Lookup(ctx, ids...)
		if err != nil {
			return err
		}
		for k, e := range entries {
			u := x.groups[groupRef{int32(at), ids[k]}]
			if e == nil {
				return noGroup(s.d, u.feature, ids[k])
			}
			if err := x.g.addFile(s.d, e, "group of "+u.feature, vector.Type{Kind: vector.Inverse}); err != nil {
				return err
			}
			u.file = int32(len(x.g.files) - 1)
			if !u.all {
				x.g.files[u.file].stripes = u.stripes
			}
		}
	}
	for i := range x.g.items {
		it := &x.g.items[i]
		j := int(it.features[0])
		parts := x.partsOf(j)
		for p := range parts {
			e := x.entry(j, &parts[p])
			if e == nil || e.Meta.Group == 0 {
				continue
			}
			file := x.groups[groupRef{parts[p].source, storage.FeatureID(e.Meta.Group)}].file
			if it.parts == nil {
				it.inverse = file
			} else {
				it.parts[p].inverse = file
			}
		}
	}
	return nil
}

func noGroup(d storage.SegmentDescriptor, feature string, group storage.FeatureID) error {
	return &format.CorruptError{
		Object: d.Index, Feature: feature, Stripe: -1, Offset: -1,
		Reason: fmt.Sprintf("its dedup group %016x is not in the segment", uint64(group)),
	}
}
