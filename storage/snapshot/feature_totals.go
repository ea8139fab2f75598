package snapshot

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// FeatureTotals sums what the segments of a snapshot hold of one feature.
type FeatureTotals struct {
	catalog.Feature
	Segments    uint64 // that have the feature
	Rows        uint64 // of those segments; other rows are null, or an overlay has their values
	NullRows    uint64 // of Rows
	Elements    uint64 // over rows
	RawBytes    uint64 // the expanded values in their source width
	StoredBytes uint64 // of the feature files

	// What the writers found of duplicates, and what they said of it (format.Found).
	Slots          uint64 // stored
	StoredElements uint64
	Partial        uint64
	SavedBytes     uint64 // an estimate; the inverse of a group is not taken off
	// Group is the name of the first feature of the dedup group, in the last of the snapshot's segments that have the
	// feature; empty: none.
	Group string
}

// Factor returns how often a stored value is used: the dedupe factor by elements, or by slots where no row has an
// element.
func (t *FeatureTotals) Factor() float64 {
	switch {
	case t.StoredElements > 0:
		return float64(t.Elements) / float64(t.StoredElements)
	case t.Slots > 0:
		return float64(t.Rows) / float64(t.Slots)
	}
	return 1
}

// totalsAtOnce is of how many segments the indexes are read before they are summed up.
const totalsAtOnce = 4 * object.RequestsAtOnce

// FeatureTotals returns the totals of every feature of the snapshot, in name order, from the segments' indexes. Its
// cost is that of reading them all, many at once.
func (s *Snapshot) FeatureTotals(ctx context.Context) ([]FeatureTotals, error) {
	features, err := s.Features(ctx)
	if err != nil {
		return nil, err
	}
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	byID := make(map[catalog.FeatureID]*FeatureTotals, len(features))
	out := make([]FeatureTotals, len(features))
	for i, f := range features {
		out[i].Feature = f
		byID[f.ID] = &out[i]
	}
	parts := make([]segmentTotals, totalsAtOnce)
	for some := range slices.Chunk(segments, totalsAtOnce) {
		err := object.Parallel(ctx, object.RequestsAtOnce, len(some), func(ctx context.Context, i int) error {
			parts[i] = segmentTotals{features: parts[i].features[:0], groups: map[catalog.FeatureID]string{}}
			return parts[i].read(ctx, s, some[i], byID)
		})
		if err != nil {
			return nil, err
		}
		for i := range some {
			for _, f := range parts[i].features {
				t := byID[f.ID]
				t.add(&f.FeatureTotals)
				t.Group = parts[i].groups[f.group]
			}
		}
	}
	slices.SortFunc(out, func(a, b FeatureTotals) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// add adds what a segment has of the feature.
func (t *FeatureTotals) add(o *FeatureTotals) {
	t.Segments += o.Segments
	t.Rows += o.Rows
	t.NullRows += o.NullRows
	t.Elements += o.Elements
	t.RawBytes += o.RawBytes
	t.StoredBytes += o.StoredBytes
	t.Slots += o.Slots
	t.StoredElements += o.StoredElements
	t.Partial += o.Partial
	t.SavedBytes += o.SavedBytes
}

// segmentTotals are what a segment has of the features of a snapshot.
type segmentTotals struct {
	features []featureIn
	groups   map[catalog.FeatureID]string // the names of its dedup groups
}

// A featureIn is what a segment has of a feature.
type featureIn struct {
	FeatureTotals
	group catalog.FeatureID
}

func (p *segmentTotals) read(ctx context.Context, s *Snapshot, d catalog.SegmentDescriptor,
	known map[catalog.FeatureID]*FeatureTotals) error {
	g, err := s.OpenSegment(ctx, d)
	if err != nil {
		return err
	}
	return g.Each(ctx, func(e *segment.Entry) error {
		m := e.Meta
		t := featureIn{group: catalog.FeatureID(m.Group), FeatureTotals: FeatureTotals{
			Feature:  catalog.Feature{ID: catalog.FeatureID(m.Feature)},
			Segments: 1, Rows: m.Rows, NullRows: m.Stats.NullRows, Elements: m.Stats.Elements,
			RawBytes: m.Stats.RawBytes, StoredBytes: e.Length, Partial: m.Found.Partial, SavedBytes: m.Found.SavedBytes,
		}}
		if known[t.ID] == nil { // the inverse of a dedup group: no feature of the schema
			p.groups[t.ID] = segment.GroupName(m)
			return nil
		}
		for i := range m.Stripes {
			t.Slots += uint64(m.Stripes[i].Slots)
			t.StoredElements += m.Stripes[i].Elements
		}
		p.features = append(p.features, t)
		return nil
	})
}

// HeldRows returns in how many of the snapshot's rows something is stored of each feature, dropped or not: in its
// segments, or in overlays that are part of the table. In all other rows the feature is null. Its cost is that of
// reading every segment's index, many at once.
func (s *Snapshot) HeldRows(ctx context.Context, ids ...catalog.FeatureID) ([]uint64, error) {
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	overlays, err := s.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	overlays = slices.DeleteFunc(overlays, func(o catalog.Overlay) bool { return o.Merged == 0 })
	layers, err := s.OverlaySegments(ctx, overlays, segments...)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	sums := make([]uint64, len(ids)) // guarded by mu
	err = object.Parallel(ctx, object.RequestsAtOnce, len(segments), func(ctx context.Context, i int) error {
		rows, err := s.heldIn(ctx, segments[i], layers[i], ids)
		mu.Lock()
		defer mu.Unlock()
		for k, n := range rows {
			sums[k] += n
		}
		return err
	})
	return sums, err
}

// heldIn returns in how many rows of a segment it, or a layer over it, has something stored of each feature; of several
// layers, the one with most rows counts.
func (s *Snapshot) heldIn(ctx context.Context, d catalog.SegmentDescriptor, layers []*catalog.OverlaySegment,
	ids []catalog.FeatureID) ([]uint64, error) {
	rows := make([]uint64, len(ids))
	look := func(d catalog.SegmentDescriptor, held uint64) error {
		g, err := s.OpenSegment(ctx, d)
		if err != nil {
			return err
		}
		entries, err := g.Lookup(ctx, ids...)
		for k, e := range entries {
			if e != nil {
				rows[k] = max(rows[k], held)
			}
		}
		return err
	}
	err := look(d, d.Rows)
	for _, l := range layers {
		switch {
		case err != nil:
			return nil, err
		case l == nil:
		case l.All:
			err = look(l.Data, d.Rows)
		default:
			err = look(l.Data, l.Covered.Count)
		}
	}
	return rows, err
}
