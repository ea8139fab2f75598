package overlay

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Coverage says how much of a table an overlay covers.
type Coverage struct {
	Segments, Layers int    // of the snapshot; those that have a layer
	Rows, Covered    uint64 // that are not deleted; of them, those that are covered
	Bytes            uint64 // of the layers
}

// A SegmentCoverage is the coverage of one segment.
type SegmentCoverage struct {
	Segment catalog.SegmentDescriptor
	Layer   bool // it has one
	Rows    uint64
	Covered uint64
	Bytes   uint64 // of the layer
}

// Cover adds up what an overlay of a snapshot covers: of its segments or, where it was made on a branch, of the
// branch's. visit, unless it is nil, is called for each of them, in the order of the table. Rows that were covered and
// are deleted since count as long as others of their segment are not covered.
func Cover(ctx context.Context, snap *storage.Snapshot, o catalog.Overlay,
	visit func(SegmentCoverage)) (Coverage, error) {
	var c Coverage
	in, has, o, err := sources(ctx, snap, o)
	if err != nil {
		return c, fmt.Errorf("overlay %s: %w", o.Name, err)
	}
	segments, err := in.Segments(ctx, nil)
	if err != nil {
		return c, err
	}
	deleted, err := in.DeletionVectors(ctx, segments...)
	if err != nil {
		return c, err
	}
	layers, err := has.OverlaySegments(ctx, []catalog.Overlay{o}, segments...)
	if err != nil {
		return c, err
	}
	for i, d := range segments {
		s := SegmentCoverage{Segment: d, Rows: d.Rows - deleted[i].Count}
		if l := layers[i][0]; l != nil {
			s.Layer, s.Bytes = true, l.Data.Bytes
			if s.Covered = s.Rows; !l.All {
				s.Covered = min(l.Covered.Count, s.Rows)
			}
			c.Layers++
		}
		c.Segments++
		c.Rows += s.Rows
		c.Covered += s.Covered
		c.Bytes += s.Bytes
		if visit != nil {
			visit(s)
		}
	}
	return c, nil
}

// sources returns the snapshots that an overlay of a snapshot is read from: the one whose segments it lies over, and
// the one that has its layers, with the overlay as it is there. They are snap and snap, or, of an overlay that was made
// on a branch, what the branch pins: a compaction after that takes the layers out of the newest snapshot, with the
// segments under them, and the branch goes on reading both.
func sources(ctx context.Context, snap *storage.Snapshot, o catalog.Overlay) (segments, layers *storage.Snapshot,
	_ catalog.Overlay, err error) {
	if o.Branch == "" {
		return snap, snap, o, nil
	}
	b, err := snap.Branch(ctx, o.Branch)
	if err != nil {
		return nil, nil, o, err
	}
	if segments, err = snap.Table().At(ctx, b.Snapshot); err != nil {
		return nil, nil, o, err
	}
	i := slices.IndexFunc(b.Overlays, func(p catalog.Pin) bool { return p.Name == o.Name })
	if i < 0 {
		return segments, snap, o, nil
	}
	if layers, err = snap.Table().At(ctx, b.Overlays[i].Snapshot); err != nil {
		return nil, nil, o, err
	}
	o, err = layers.Overlay(ctx, o.Name)
	return segments, layers, o, err
}

// EachLayer calls visit for each layer of an overlay of a snapshot, as readers find it: see Cover. An error that visit
// returns ends it.
func EachLayer(ctx context.Context, snap *storage.Snapshot, o catalog.Overlay,
	visit func(catalog.OverlaySegment) error) error {
	_, has, o, err := sources(ctx, snap, o)
	if err != nil {
		return fmt.Errorf("overlay %s: %w", o.Name, err)
	}
	return has.EachOverlaySegment(ctx, o, visit)
}
