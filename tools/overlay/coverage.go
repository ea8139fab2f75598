package overlay

import (
	"context"
	"fmt"

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
	in := snap
	if o.Branch != "" {
		b, err := snap.Branch(ctx, o.Branch)
		if err != nil {
			return c, fmt.Errorf("overlay %s: %w", o.Name, err)
		}
		if in, err = snap.Table().At(ctx, b.Snapshot); err != nil {
			return c, fmt.Errorf("overlay %s: %w", o.Name, err)
		}
	}
	segments, err := in.Segments(ctx, nil)
	if err != nil {
		return c, err
	}
	deleted, err := in.DeletionVectors(ctx, segments...)
	if err != nil {
		return c, err
	}
	layers, err := snap.OverlaySegments(ctx, []catalog.Overlay{o}, segments...)
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
