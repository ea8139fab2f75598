package reader

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// The values of a feature in a segment come from a chain: the overlays that have the feature, the highest first, and
// the segment itself below them. The first layer that covers a row has its value.
//
//	overlay b   [layer over all rows]      has all rows: nothing below is looked up or read
//	overlay a   [layer over some rows]     has these rows; the others come from below, or are null
//	overlay m   no layer                   rows come from below, are null, or reading is an error
//	segment     the feature, or null if it has none
//
// Merged overlays are lowest, in the order of merging; then those of a branch, then those that a plan names, in the
// plan's order.

// snapshots returns a snapshot of a plan's table by its number.
type snapshots func(ctx context.Context, number uint64) (*storage.Snapshot, error)

// snapshotsOf returns a function that takes snapshots from v, which may be nil, or else opens them.
func snapshotsOf(snap *storage.Snapshot, v *storage.View) snapshots {
	open := map[uint64]*storage.Snapshot{snap.Info().Number: snap}
	if v != nil {
		for _, o := range v.Overlays {
			open[o.In.Info().Number] = o.In
		}
		if v.ListIn != nil {
			open[v.ListIn.Info().Number] = v.ListIn
		}
	}
	return func(ctx context.Context, number uint64) (*storage.Snapshot, error) {
		s, err := open[number], error(nil)
		if s == nil {
			if s, err = snap.Table().At(ctx, number); err == nil {
				open[number] = s
			}
		}
		return s, err
	}
}

// snapshotsIn returns the snapshots that p reads: the plan's, and those of its overlays and lists, each once.
func snapshotsIn(ctx context.Context, p *plan.Plan, at snapshots) ([]*storage.Snapshot, error) {
	numbers := []uint64{p.Snapshot}
	for _, o := range p.Overlays {
		numbers = append(numbers, o.Snapshot)
	}
	for _, l := range p.Lists() {
		numbers = append(numbers, l.Snapshot)
	}
	slices.Sort(numbers)
	var out []*storage.Snapshot
	for _, n := range slices.Compact(numbers) {
		s, err := at(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// overlaysOf returns the overlays that are part of the table, and those that a plan names.
func overlaysOf(ctx context.Context, snap *storage.Snapshot, p *plan.Plan, at snapshots) (
	merged, named []storage.ViewOverlay, err error) {
	own, err := snap.Overlays(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range own {
		if o.Merged != 0 {
			merged = append(merged, storage.ViewOverlay{Overlay: o, In: snap})
		}
	}
	for _, pin := range p.Overlays {
		in, err := at(ctx, pin.Snapshot)
		if err != nil {
			return nil, nil, fmt.Errorf("overlay %s: %w", pin.Name, err)
		}
		var o catalog.Overlay
		k := slices.IndexFunc(own, func(o catalog.Overlay) bool { return o.Name == pin.Name })
		if in == snap && k >= 0 {
			o = own[k]
		} else if o, err = in.Overlay(ctx, pin.Name); err != nil {
			return nil, nil, err
		}
		named = append(named, storage.ViewOverlay{Overlay: o, In: in})
	}
	return merged, named, nil
}

// coverage returns the rows that a layer covers.
type coverage func(ctx context.Context, l *catalog.OverlaySegment) (*roaring.Bitmap, error)

// openOverlays adds overlays, the lowest first, to the layout. It drops those that have neither a feature of the layout
// nor one of others.
func (l *Layout) openOverlays(ctx context.Context, overlays []storage.ViewOverlay, others []catalog.Feature) error {
	read := map[catalog.FeatureID]bool{}
	for _, list := range [][]catalog.Feature{l.features, others} {
		for _, f := range list {
			if !plan.IsPartitionKey(f) {
				read[f.ID] = true
			}
		}
	}
	overlays = slices.DeleteFunc(slices.Clone(overlays), func(o storage.ViewOverlay) bool {
		return !slices.ContainsFunc(o.Features, func(f catalog.Feature) bool { return read[f.ID] })
	})
	if len(overlays) == 0 || len(l.segments) == 0 {
		return nil
	}
	layers, err := layersOf(ctx, overlays, l.segments)
	if err != nil {
		return err
	}
	defined := make([]catalog.Overlay, len(overlays))
	for k, o := range overlays {
		defined[k] = o.Overlay
	}
	store := overlays[0].In.Table().Store()
	l.applyOverlays(defined, layers, func(ctx context.Context, x *catalog.OverlaySegment) (*roaring.Bitmap, error) {
		return store.Bitmaps().Read(ctx, x.Covered)
	})
	return nil
}

// layersOf is Snapshot.OverlaySegments for overlays of several snapshots.
func layersOf(ctx context.Context, overlays []storage.ViewOverlay,
	segments []catalog.SegmentDescriptor) ([][]*catalog.OverlaySegment, error) {
	out := make([][]*catalog.OverlaySegment, len(segments))
	for i := range out {
		out[i] = make([]*catalog.OverlaySegment, len(overlays))
	}
	done := make([]bool, len(overlays))
	for k, o := range overlays {
		if done[k] {
			continue
		}
		var some []catalog.Overlay
		var at []int
		for j := k; j < len(overlays); j++ { // one call for the overlays of a snapshot
			if overlays[j].In == o.In {
				some, at, done[j] = append(some, overlays[j].Overlay), append(at, j), true
			}
		}
		found, err := o.In.OverlaySegments(ctx, some, segments...)
		if err != nil {
			return nil, err
		}
		for i := range found {
			for n, j := range at {
				out[i][j] = found[i][n]
			}
		}
	}
	return out, nil
}

// applyOverlays is openOverlays for overlays whose layers are known.
func (l *Layout) applyOverlays(overlays []catalog.Overlay, layers [][]*catalog.OverlaySegment, covered coverage) {
	l.overlays, l.layers, l.covered = overlays, layers, covered
	l.chains, l.read, l.chainOf = nil, nil, make([]int32, len(l.features))
	known := map[string]int32{"": -1}
	for j, f := range l.features {
		var chain []int32
		var key []byte
		for k := len(overlays) - 1; k >= 0 && !plan.IsPartitionKey(f); k-- {
			if _, ok := slices.BinarySearchFunc(overlays[k].Features, f.ID, compareID); ok {
				chain = append(chain, int32(k))
				key = binary.LittleEndian.AppendUint32(key, uint32(k))
			}
		}
		at, ok := known[string(key)]
		if !ok {
			at = int32(len(l.chains))
			known[string(key)] = at
			l.chains = append(l.chains, chain)
			l.read = append(l.read, chain...)
		}
		l.chainOf[j] = at
	}
	slices.Sort(l.read)
	l.read = slices.Compact(l.read)
}

func compareID(f catalog.Feature, id catalog.FeatureID) int {
	switch {
	case f.ID < id:
		return -1
	case f.ID > id:
		return 1
	}
	return 0
}

// ends reports whether overlay k over segment i hides everything below it: all its rows are covered, null or refused.
func (l *Layout) ends(k int32, i int) bool {
	x := l.layers[i][k]
	if x == nil {
		return l.overlays[k].MissingLayers != catalog.FallThrough
	}
	return coversAll(x) || l.overlays[k].MissingRows == catalog.Null
}

// hasLayers reports whether an overlay that is read may change the values of segment i.
func (l *Layout) hasLayers(i int) bool {
	return slices.ContainsFunc(l.read, func(k int32) bool {
		return l.layers[i][k] != nil || l.overlays[k].MissingLayers != catalog.FallThrough
	})
}

func coversAll(x *catalog.OverlaySegment) bool { return x.All || x.Covered.Count == x.Data.Rows }

// refused returns an error if an overlay whose missing-layer policy is Refuse has no layer over some segments.
func (l *Layout) refused() error {
	if !slices.ContainsFunc(l.overlays, func(o catalog.Overlay) bool { return o.MissingLayers == catalog.Refuse }) {
		return nil
	}
	for k := range l.overlays {
		segments, rows, first := 0, uint64(0), -1
		for i := range l.segments {
			if l.refusedIn(int32(k), i) {
				segments++
				rows += l.segments[i].Rows
				if first < 0 {
					first = i
				}
			}
		}
		if segments > 0 {
			return l.refusal(int32(k), first, fmt.Sprintf("%d segments of %d, with %d rows", segments, len(l.segments),
				rows))
		}
	}
	return nil
}

// refusedIn reports whether reading overlay k over segment i is an error: it has no layer there, its policy is Refuse,
// and no overlay above hides it.
func (l *Layout) refusedIn(k int32, i int) bool {
	if l.overlays[k].MissingLayers != catalog.Refuse || l.layers[i][k] != nil {
		return false
	}
	return slices.ContainsFunc(l.chains, func(chain []int32) bool {
		for _, other := range chain {
			if other == k {
				return true
			}
			if l.ends(other, i) {
				return false
			}
		}
		return false
	})
}

func (l *Layout) refusal(k int32, first int, where string) error {
	return fmt.Errorf("overlay %s has no layer over %s, the first of partition %q, and refuses to be read there: add "+
		"rows to it, leave those partitions out, or read without it", l.overlays[k].Name, where,
		l.segments[first].Partition)
}

// layersKey returns a key of the layers over segment i that are read. Different layers have different keys.
func (l *Layout) layersKey(i int) string {
	var key []byte
	for _, k := range l.read {
		x := l.layers[i][k]
		if x == nil {
			key = append(key, 0)
			continue
		}
		key = append(append(key, 1), x.Data.ID...)
		key = binary.LittleEndian.AppendUint64(key, x.Since)
	}
	return string(key)
}

// chainKey returns a key of the features' chains and their policies, for all segments.
func (l *Layout) chainKey() string {
	var key []byte
	for _, at := range l.chainOf {
		key = append(key, '\n')
		if at < 0 {
			continue
		}
		for _, k := range l.chains[at] {
			o := &l.overlays[k]
			key = fmt.Appendf(key, " %d:%d:%d", o.Number, o.MissingRows, o.MissingLayers)
		}
	}
	return string(key)
}
