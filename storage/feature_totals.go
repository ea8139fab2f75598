package storage

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/dsistore/dsistore/format"
)

// FeatureTotals sums what the segments of a snapshot hold of one feature.
type FeatureTotals struct {
	Feature
	Segments    uint64 // that have the feature
	Rows        uint64 // of those segments; the snapshot's other rows are null
	NullRows    uint64 // of Rows
	Elements    uint64 // over rows
	RawBytes    uint64 // the expanded values in their source width
	StoredBytes uint64 // of the feature files

	// What the writers found of duplicates, and what they said of it (format.Found).
	Slots          uint64 // stored
	StoredElements uint64
	Windows        uint64
	SavedBytes     uint64 // an estimate; the inverse of a group is not taken off
	// Group is the name of the first feature of the dedup group, in the last of the snapshot's segments that have the
	// feature; empty: none.
	Group string
}

// Factor returns how often a stored value is used: the dedupe factor by elements, or by slots where no row has an element.
func (t *FeatureTotals) Factor() float64 {
	switch {
	case t.StoredElements > 0:
		return float64(t.Elements) / float64(t.StoredElements)
	case t.Slots > 0:
		return float64(t.Rows) / float64(t.Slots)
	}
	return 1
}

// FeatureTotals returns the totals of every feature of the snapshot, in name order, from the segments' indexes. Its cost
// is that of reading them all.
func (s *Snapshot) FeatureTotals(ctx context.Context) ([]FeatureTotals, error) {
	return s.featureTotals(ctx, func(d SegmentDescriptor, visit func(FeatureID, *FeatureEntry)) error {
		return s.objectTotals(ctx, d, visit)
	})
}

func (s *Snapshot) objectTotals(ctx context.Context, d SegmentDescriptor, visit func(FeatureID, *FeatureEntry)) error {
	g, err := s.OpenSegment(ctx, d)
	if err != nil {
		return err
	}
	defer g.Close()
	return g.Each(ctx, func(e *FeatureEntry) error {
		visit(FeatureID(e.Meta.Feature), e)
		return nil
	})
}

// FeatureTotals is Snapshot.FeatureTotals from the index database: one range scan a segment. A segment that is not in
// the database yet is read from its object, so that the answer is the same.
func (x *Index) FeatureTotals(ctx context.Context, s *Snapshot) ([]FeatureTotals, error) {
	prefix := x.segmentPrefix(s.t.name)
	return s.featureTotals(ctx, func(d SegmentDescriptor, visit func(FeatureID, *FeatureEntry)) error {
		segment, err := parseID(d.ID)
		if err != nil {
			return err
		}
		in, err := x.number(append(prefix[:len(prefix):len(prefix)], segment[:]...))
		if err != nil {
			return err
		}
		if in == 0 {
			return s.objectTotals(ctx, d, visit)
		}
		return x.damaged(x.scan(ctx, d, segment, visit))
	})
}

// scan visits the feature records of a segment in the database.
func (x *Index) scan(ctx context.Context, d SegmentDescriptor, segment id, visit func(FeatureID, *FeatureEntry)) error {
	facts, closer, err := x.db.Get(segment.recordKey(factsRecord))
	if err != nil {
		return corrupt(indexDir, "segment "+d.ID+" has no record: "+err.Error())
	}
	stripes, reason := decodeFacts(facts, d.Rows)
	if err := closer.Close(); err != nil {
		return err
	}
	if reason != "" {
		return corrupt(indexDir, "segment "+d.ID+": "+reason)
	}
	it, err := x.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: segment.recordKey(featureRecord), UpperBound: segment.recordKey(featureRecord + 1),
	})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		f, reason := parseFeatureKey(it.Key(), segment)
		if reason != "" {
			return errors.Join(corrupt(indexDir, reason), it.Close())
		}
		e, err := decodeEntry(segment, f, it.Value(), stripes, x.s.opts.Limits)
		if err != nil {
			return errors.Join(format.Locate(err, indexDir, "", 0), it.Close())
		}
		visit(f, e)
	}
	return errors.Join(it.Error(), it.Close(), ctx.Err())
}

func (s *Snapshot) featureTotals(
	ctx context.Context, each func(SegmentDescriptor, func(FeatureID, *FeatureEntry)) error,
) ([]FeatureTotals, error) {
	features, err := s.Features(ctx)
	if err != nil {
		return nil, err
	}
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	byID := make(map[FeatureID]*FeatureTotals, len(features))
	out := make([]FeatureTotals, len(features))
	for i, f := range features {
		out[i].Feature = f
		byID[f.ID] = &out[i]
	}
	groupOf, groups := map[*FeatureTotals]FeatureID{}, map[FeatureID]string{} // of one segment
	for _, d := range segments {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		clear(groupOf)
		clear(groups)
		err := each(d, func(f FeatureID, e *FeatureEntry) {
			t := byID[f]
			if t == nil { // the inverse of a dedup group: no feature of the schema
				groups[f] = GroupName(e.Meta)
				return
			}
			groupOf[t] = FeatureID(e.Meta.Group)
			t.Windows += e.Meta.Found.Windows
			t.SavedBytes += e.Meta.Found.SavedBytes
			for i := range e.Meta.Stripes {
				t.Slots += uint64(e.Meta.Stripes[i].Slots)
				t.StoredElements += e.Meta.Stripes[i].Elements
			}
			t.Segments++
			t.Rows += e.Meta.Rows
			t.NullRows += e.Meta.Stats.NullRows
			t.Elements += e.Meta.Stats.Elements
			t.RawBytes += e.Meta.Stats.RawBytes
			t.StoredBytes += e.Length
		})
		if err != nil {
			return nil, err
		}
		for t, g := range groupOf {
			t.Group = groups[g]
		}
	}
	slices.SortFunc(out, func(a, b FeatureTotals) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
