package report

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/tools/overlay"
)

const (
	// Compaction makes segments of about wholeRows rows or wholeBytes. Small ones have less than smallShare of both
	// (package compaction).
	wholeRows  = 1 << 20
	wholeBytes = 4 << 30
	smallShare = 0.5
	// Packs are filled up to wholePack. One of less than smallPack beside others is too small.
	wholePack = 128 << 20
	smallPack = 8 << 20
	// shownSegments is how many of the largest and smallest segments are listed.
	shownSegments = 10
)

// isSmall reports whether compaction would merge the segment, if there were others.
func isSmall(d catalog.SegmentDescriptor) bool {
	return max(float64(d.Rows)/wholeRows, float64(d.Bytes)/wholeBytes) < smallShare
}

// segmentHealth counts the segments.
func (c *collector) segmentHealth() SegmentHealth {
	h := SegmentHealth{Count: uint64(len(c.segments)), WholeRows: wholeRows, WholeBytes: wholeBytes}
	small := map[string]uint64{} // by partition
	var rows, bytes uint64
	for _, s := range c.segments {
		rows, bytes, h.IndexBytes = rows+s.d.Rows, bytes+s.d.Bytes, h.IndexBytes+s.d.IndexSize
		if isSmall(s.d) {
			h.Small++
			h.SmallBytes += s.d.Bytes
			small[s.d.Partition.String()]++
		}
	}
	for _, n := range small {
		if n > 1 {
			h.Mergeable += n
		}
	}
	h.MeanRows, h.MeanBytes = share(rows, h.Count), share(bytes, h.Count)
	return h
}

// extremes returns the largest and the smallest segments.
func (c *collector) extremes() (largest, smallest []SegmentSummary) {
	all := make([]SegmentSummary, 0, len(c.segments))
	for _, s := range c.segments {
		all = append(all, SegmentSummary{s.d.ID, s.d.Partition.String(), s.d.Rows, s.deleted, s.d.Bytes})
	}
	slices.SortFunc(all, func(a, b SegmentSummary) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Segment, b.Segment))
	})
	largest = slices.Clone(all[:min(len(all), shownSegments)])
	slices.Reverse(all)
	return largest, slices.Clone(all[:min(len(all), shownSegments)])
}

// packHealth counts the objects of the segments.
func (c *collector) packHealth() PackHealth {
	h := PackHealth{WholeBytes: wholePack, SmallBelowBytes: smallPack}
	for _, s := range c.segments {
		packs, small := uint64(0), uint64(0)
		for _, o := range s.objects {
			if !strings.HasPrefix(path.Base(o.Name), "pack-") {
				h.Files++
				h.FileBytes += o.Size
				continue
			}
			packs++
			h.PackBytes += o.Size
			if o.Size < smallPack {
				small++
			}
		}
		h.Packs += packs
		if small > 1 || packs == 1 { // the last of several may be what was left over
			h.Small += small
		}
	}
	return h
}

// waiting returns the deleted rows and dropped features that are still stored.
func (c *collector) waiting() (deleted, dropped Waiting) {
	for _, s := range c.segments {
		if s.deleted > 0 {
			deleted.Count += s.deleted
			deleted.Segments++
			deleted.Bytes += partOf(s.d, s.deleted)
		}
		if s.droppedBytes > 0 {
			dropped.Segments++
		}
	}
	for _, f := range c.order {
		if f.Status == catalog.FeatureDropped && f.segments > 0 {
			dropped.Count++
			dropped.Bytes += f.stored
		}
	}
	return deleted, dropped
}

// partOf estimates the bytes of so many of a segment's rows.
func partOf(d catalog.SegmentDescriptor, rows uint64) uint64 {
	if d.Rows == 0 {
		return 0
	}
	return uint64(mulDiv(int64(d.Bytes), rows, d.Rows))
}

// overlays returns what the overlays of a snapshot cover and save, and adds their layers to the features.
func (c *collector) overlays(ctx context.Context, snap *storage.Snapshot) ([]OverlayHealth, []OverlaySaving, error) {
	health, savings := []OverlayHealth{}, []OverlaySaving{}
	all, err := snap.Overlays(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		s := OverlaySaving{Overlay: o.Name, Features: uint64(len(o.Features))}
		cover, err := overlay.Cover(ctx, snap, o, func(p overlay.SegmentCoverage) {
			if p.Layer {
				s.SavedBytes += p.Segment.Bytes
			}
		})
		if err != nil {
			return nil, nil, err
		}
		s.Bytes, s.CopyBytes = cover.Bytes, cover.Bytes+s.SavedBytes
		savings = append(savings, s)
		h := OverlayHealth{
			Overlay: o.Name, Added: o.Added, Features: []string{}, Segments: uint64(cover.Segments),
			Layers: uint64(cover.Layers), Rows: cover.Rows,
			Covered: cover.Covered, Coverage: share(cover.Covered, cover.Rows), Bytes: cover.Bytes,
		}
		switch {
		case o.Merged != 0:
			h.State = "merged"
		case o.Branch != "":
			h.State = "branch " + o.Branch
		}
		for _, f := range o.Features {
			h.Features = append(h.Features, f.Name)
			c.feature(f, statusOverlay)
		}
		health = append(health, h)
		if err := c.layers(ctx, snap, o); err != nil {
			return nil, nil, err
		}
	}
	return health, savings, nil
}

// layers adds the bytes of each feature in an overlay's layers.
func (c *collector) layers(ctx context.Context, snap *storage.Snapshot, o catalog.Overlay) error {
	return overlay.EachLayer(ctx, snap, o, func(l catalog.OverlaySegment) error {
		g, err := snap.OpenSegment(ctx, l.Data)
		if err != nil {
			return err
		}
		return g.Each(ctx, func(e *segment.Entry) error {
			if f := c.byID[catalog.FeatureID(e.Meta.Feature)]; f != nil {
				f.layers += e.Length
			}
			return nil
		})
	})
}

// lists returns what the sample lists of a snapshot have and save.
func lists(ctx context.Context, snap *storage.Snapshot,
	segments []catalog.SegmentDescriptor) ([]ListHealth, []ListSaving, error) {
	health, savings := []ListHealth{}, []ListSaving{}
	all, err := snap.SampleLists(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range all {
		sets, err := snap.ListedRows(ctx, l.Name, segments...)
		if err != nil {
			return nil, nil, err
		}
		s := ListSaving{List: l.Name}
		for i, r := range sets {
			s.Rows += r.Count
			s.SavedBytes += partOf(segments[i], r.Count)
		}
		savings = append(savings, s)
		health = append(health, ListHealth{
			List: l.Name, Definition: l.Definition, Added: l.Added, Rows: s.Rows,
			Share: share(s.Rows, snap.Info().Rows),
		})
	}
	return health, savings, nil
}
