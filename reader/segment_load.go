package reader

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader/execution"
	"github.com/dsistore/dsistore/reader/ioplan"
	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
)

// A segmentLoader looks up the files that a layout reads of a segment, in the indexes of the segment and of the layers
// over it:
//
//	chains of overlays ──mixOf──> parts: which rows come from where (without an overlay all from the segment)
//	                     lookUp   feature files of each part
//	                 addFeatures  files and items of the segment
//	                   addGroups  the inverses of their groups
type segmentLoader struct {
	l *Layout
	i int
	g *ioplan.Segment
	// sources are the segment and the layers that are read.
	sources []*source
	byLayer map[int32]int32    // by overlay: its position in sources
	mixes   []*mix             // by chain of l.chains
	parts   [][]mixPart        // by feature; nil: it has no files
	entries [][]*segment.Entry // by feature and part; nil: the part's rows are null
	groups  map[groupRef]*groupUse
	order   []groupRef // of groups
}

// A source is a segment whose feature files are looked up: the segment that is read, or a layer over it.
type source struct {
	d       catalog.SegmentDescriptor
	layer   *catalog.OverlaySegment // nil: the segment itself
	index   segmentIndex            // nil: it is not open
	covered *roaring.Bitmap
	ids     []catalog.FeatureID
	to      []**segment.Entry // where the entries of ids are stored
}

// A mix says where the rows of a segment come from, for the features of one chain. Its parts are disjoint and together
// have all rows.
type mix struct {
	parts []mixPart // the highest first
}

// A mixPart is the rows that come from one layer or from the segment itself, or are null.
type mixPart struct {
	source int32           // in segmentLoader.sources; nullSource: the rows are null
	rows   *roaring.Bitmap // of the segment; nil: all
	// stripes are those that have some of them; nil: all.
	stripes vector.Bitmap
}

const (
	baseSource = 0 // the segment itself
	nullSource = -1
)

// A groupRef identifies a dedup group of a source.
type groupRef struct {
	source int32
	id     catalog.FeatureID
}

// groupUse says in which stripes a group's inverse is needed.
type groupUse struct {
	feature string        // the name of one of its features, for errors
	stripes vector.Bitmap // unless all
	all     bool
	file    int32 // in the segment's files
}

// loadSegment opens the index of segment i of the layout, and those of the layers over it, and looks up the files of
// the layout's features.
func (l *Layout) loadSegment(ctx context.Context, i int) (_ *ioplan.Segment, err error) {
	d := l.segments[i]
	index, err := l.open(ctx, d)
	if err != nil {
		return nil, err
	}
	x := &segmentLoader{l: l, i: i, sources: []*source{{d: d, index: index}}}
	if x.g, err = l.newSegment(i, index.StripeRows()); err != nil {
		return nil, err
	}
	if l.chains != nil && l.hasLayers(i) {
		x.byLayer, x.mixes = map[int32]int32{}, make([]*mix, len(l.chains))
		for c, chain := range l.chains {
			if x.mixes[c], err = x.mixOf(ctx, chain); err != nil {
				return nil, err
			}
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
	x.g.Dictionaries = ioplan.NewDictionaries(x.g.Files)
	x.g.SetOwners()
	return x.g, nil
}

// newSegment returns segment i without files and items.
func (l *Layout) newSegment(i int, stripeRows []uint32) (*ioplan.Segment, error) {
	d := l.segments[i]
	first, err := ioplan.Cumulate(d, stripeRows)
	if err != nil {
		return nil, err
	}
	g := &ioplan.Segment{ID: d.ID, First: first, Selected: l.selectionOf(i), FeatureFile: make([]int32,
		len(l.features)),
		Partition: d.Partition}
	for j := range g.FeatureFile {
		g.FeatureFile[j] = -1
	}
	if l.weighted != nil {
		g.Weighted = l.weighted[i]
	}
	g.Starts = ioplan.StartsOf(l.firstRow[i], ioplan.SelectedRows(stripeRows, g.Selected))
	return g, nil
}

// mixOf returns the mix of a chain. It goes down the chain until the source of every row is known.
func (x *segmentLoader) mixOf(ctx context.Context, chain []int32) (*mix, error) {
	l, d := x.l, x.l.segments[x.i]
	m := new(mix)
	var rest *roaring.Bitmap // rows whose source is not known yet; nil: all
	add := func(source int32, rows *roaring.Bitmap) {
		if rows == nil || !rows.IsEmpty() {
			m.parts = append(m.parts, mixPart{source: source, rows: rows})
		}
	}
	bottom := int32(baseSource)
	for _, k := range chain {
		o, layer := &l.overlays[k], l.layers[x.i][k]
		if layer == nil {
			switch o.MissingLayers {
			case catalog.FallThrough:
				continue
			case catalog.Refuse:
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
		if o.MissingRows == catalog.Null {
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
		part.stripes = make(vector.Bitmap, vector.BitmapWords(x.g.Stripes()))
		for k := range x.g.Stripes() {
			if part.rows.CardinalityInRange(x.g.First[k], x.g.First[k+1]) > 0 {
				part.stripes.Set(k)
			}
		}
	}
	return m, nil
}

// source returns the position in sources of overlay k's layer.
func (x *segmentLoader) source(k int32) int32 {
	at, ok := x.byLayer[k]
	if !ok {
		layer := x.l.layers[x.i][k]
		at = int32(len(x.sources))
		x.sources = append(x.sources, &source{d: layer.Data, layer: layer})
		x.byLayer[k] = at
	}
	return at
}

// coveredBy returns the rows that a source covers. They are read once.
func (x *segmentLoader) coveredBy(ctx context.Context, at int32) (*roaring.Bitmap, error) {
	s := x.sources[at]
	if s.covered == nil {
		var err error
		if s.covered, err = x.l.covered(ctx, s.layer); err != nil {
			return nil, fmt.Errorf("overlay %s: %w", s.layer.Overlay, err)
		}
	}
	return s.covered, nil
}

// layersAtOnce is how many indexes of layers of a segment are read concurrently.
const layersAtOnce = 16

// wholeSegment are the parts of a feature that no overlay has.
var wholeSegment = []mixPart{{source: baseSource}}

// lookUp looks up the features in the sources that have rows of them, concurrently.
func (x *segmentLoader) lookUp(ctx context.Context) error {
	x.parts, x.entries = make([][]mixPart, len(x.l.features)), make([][]*segment.Entry, len(x.l.features))
	memory := make([]*segment.Entry, len(x.l.features)) // of features with one part
	for j, f := range x.l.features {
		if plan.IsPartitionKey(f) || plan.IsWeight(f) {
			continue
		}
		x.parts[j], x.entries[j] = wholeSegment, memory[j:j+1:j+1]
		if x.mixes != nil && x.l.chainOf[j] >= 0 {
			x.parts[j] = x.mixes[x.l.chainOf[j]].parts
			x.entries[j] = make([]*segment.Entry, len(x.parts[j]))
		}
		for p, part := range x.parts[j] {
			if part.source != nullSource {
				s := x.sources[part.source]
				s.ids, s.to = append(s.ids, f.ID), append(s.to, &x.entries[j][p])
			}
		}
	}
	return execution.Parallel(len(x.sources), layersAtOnce, func(i int) error {
		s := x.sources[i]
		if i != baseSource && len(s.ids) > 0 {
			return x.openLayer(ctx, s)
		}
		return s.lookUp(ctx)
	})
}

// openLayer opens the index of a layer, checks that it has the segment's stripes, and looks up its features.
func (x *segmentLoader) openLayer(ctx context.Context, s *source) (err error) {
	if s.index, err = x.l.open(ctx, s.d); err != nil {
		s.index = nil
		return err
	}
	if !slices.Equal(s.index.StripeRows(), x.sources[baseSource].index.StripeRows()) {
		return &format.CorruptError{
			Object: s.d.Index, Stripe: -1, Offset: -1,
			Reason: fmt.Sprintf("the stripes of a layer of overlay %s are not those of segment %s under it",
				s.layer.Overlay, x.l.segments[x.i].ID),
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
	for i, e := range entries {
		*s.to[i] = e
	}
	return nil
}

// addFeatures adds the files of features, and makes the items. Features whose parts are in the same groups share one
// item.
func (x *segmentLoader) addFeatures() error {
	l, g := x.l, x.g
	items := map[string]int{} // of features in groups, by key
	var key []byte            // the source and group of each part; the sources determine the rows of each part
	for j := range l.features {
		f := &l.features[j]
		alone := ioplan.Item{Inverse: -1, Features: []int32{int32(j)}}
		if plan.IsWeight(*f) {
			g.Items = append(g.Items, alone)
			continue
		}
		parts := x.parts[j]
		first, grouped := len(g.Files), true
		key = key[:0]
		for p, e := range x.entries[j] {
			key = binary.LittleEndian.AppendUint32(key, uint32(parts[p].source))
			if e == nil {
				key = append(key, 0)
				continue
			}
			if err := g.AddFile(x.sources[parts[p].source].d, e, f.Name, f.Type); err != nil {
				return err
			}
			file := &g.Files[len(g.Files)-1]
			file.Transforms, file.Stripes = l.transformers[j], parts[p].stripes
			grouped = grouped && e.Meta.Group != 0
			key = binary.LittleEndian.AppendUint64(append(key, 1), e.Meta.Group)
		}
		if len(g.Files) == first {
			if t := l.transformers[j]; parts != nil && t != nil && t.Fills {
				g.Items = append(g.Items, alone)
			}
			continue
		}
		g.FeatureFile[j] = int32(len(g.Files) - 1)
		at, known := 0, false
		if grouped {
			at, known = items[string(key)]
		}
		if !known {
			at = len(g.Items)
			g.Items = append(g.Items, x.newItem(j, grouped))
			if grouped {
				items[string(key)] = at
			}
		}
		it := &g.Items[at]
		it.Features = append(it.Features, int32(j))
		next := int32(first)
		for p := range it.Parts {
			file := int32(-1)
			if x.entries[j][p] != nil {
				file = next
				next++
			}
			it.Parts[p].Files = append(it.Parts[p].Files, file)
		}
	}
	return nil
}

// newItem returns an item for feature j and the features of the same groups.
func (x *segmentLoader) newItem(j int, grouped bool) ioplan.Item {
	it := ioplan.Item{Inverse: -1}
	parts := x.parts[j]
	for p, e := range x.entries[j] {
		if e != nil && e.Meta.Group != 0 {
			x.useGroup(groupRef{parts[p].source, catalog.FeatureID(e.Meta.Group)}, x.l.features[j].Name,
				parts[p].stripes)
		}
	}
	if len(parts) == 1 {
		return it
	}
	it.Grouped = grouped
	for _, p := range parts {
		it.Parts = append(it.Parts, ioplan.ItemPart{Rows: p.rows, Stripes: p.stripes, Inverse: -1})
	}
	x.g.Merged = append(x.g.Merged, int32(len(x.g.Items)))
	return it
}

// useGroup notes that a group's inverse is needed in stripes.
func (x *segmentLoader) useGroup(ref groupRef, feature string, stripes vector.Bitmap) {
	u := x.groups[ref]
	if u == nil {
		if x.groups == nil {
			x.groups = map[groupRef]*groupUse{}
		}
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

// addGroups adds the files of the groups' inverses, and sets them in the items.
func (x *segmentLoader) addGroups(ctx context.Context) error {
	if len(x.order) == 0 {
		return nil
	}
	for at, s := range x.sources {
		var ids []catalog.FeatureID
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
				return &format.CorruptError{
					Object: s.d.Index, Feature: u.feature, Stripe: -1, Offset: -1,
					Reason: fmt.Sprintf("its dedup group %016x is not in the segment", uint64(ids[k])),
				}
			}
			if err := x.g.AddFile(s.d, e, "group of "+u.feature, vector.Type{Kind: vector.Inverse}); err != nil {
				return err
			}
			u.file = int32(len(x.g.Files) - 1)
			if !u.all {
				x.g.Files[u.file].Stripes = u.stripes
			}
		}
	}
	for i := range x.g.Items {
		it := &x.g.Items[i]
		j := it.Features[0]
		for p, e := range x.entries[j] {
			if e == nil || e.Meta.Group == 0 {
				continue
			}
			file := x.groups[groupRef{x.parts[j][p].source, catalog.FeatureID(e.Meta.Group)}].file
			if it.Parts == nil {
				it.Inverse = file
			} else {
				it.Parts[p].Inverse = file
			}
		}
	}
	return nil
}
