package compaction

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/writer"
)

// An input is a segment to be rewritten, with its deleted rows and overlays.
type input struct {
	d       catalog.SegmentDescriptor
	stripes []uint32 // rows of each
	entries map[catalog.FeatureID]*segment.Entry
	deleted *roaring.Bitmap // nil: none
	// merged are the layers of overlays that are part of the table, the highest first. separate has an element for each
	// overlay that stays an overlay; nil if the segment has no layer of it.
	merged   []*layer
	separate []*layer
}

// A layer is the part of an overlay over one input.
type layer struct {
	overlay catalog.Overlay
	data    catalog.SegmentDescriptor
	entries map[catalog.FeatureID]*segment.Entry
	covered *roaring.Bitmap // nil: all rows
}

// indexOf returns the entries of a segment's index, by feature or by dedup group for an inverse, and the rows of its
// stripes.
func indexOf(ctx context.Context, store *storage.Store,
	d catalog.SegmentDescriptor) (map[catalog.FeatureID]*segment.Entry, []uint32, error) {
	g, err := store.Segments().Open(ctx, d)
	if err != nil {
		return nil, nil, fmt.Errorf("segment %s: %w", d.ID, err)
	}
	entries, err := g.Entries(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("segment %s: %w", d.ID, err)
	}
	out := make(map[catalog.FeatureID]*segment.Entry, len(entries))
	for _, e := range entries {
		out[catalog.FeatureID(e.Meta.Feature)] = e
	}
	return out, g.StripeRows(), nil
}

// openInputs opens segments of a snapshot with their deleted rows and their layers of overlays.
func openInputs(ctx context.Context, snap *storage.Snapshot, ds []catalog.SegmentDescriptor,
	overlays []catalog.Overlay) ([]*input, error) {
	store := snap.Table().Store()
	deleted, err := snap.DeletionVectors(ctx, ds...)
	if err != nil {
		return nil, err
	}
	layers, err := snap.OverlaySegments(ctx, overlays, ds...)
	if err != nil {
		return nil, err
	}
	out := make([]*input, len(ds))
	err = object.Parallel(ctx, object.RequestsAtOnce, len(ds), func(ctx context.Context, i int) (err error) {
		out[i], err = openInput(ctx, store, ds[i], deleted[i], overlays, layers[i])
		return err
	})
	return out, err
}

// openInput opens one input. layers has an element for each overlay.
func openInput(ctx context.Context, store *storage.Store, d catalog.SegmentDescriptor, deleted bitmap.Ref,
	overlays []catalog.Overlay, layers []*catalog.OverlaySegment) (*input, error) {
	if d.Rows > math.MaxUint32 {
		return nil, fmt.Errorf("segment %s: %d rows: at most %d can be rewritten", d.ID, d.Rows,
			uint32(math.MaxUint32))
	}
	in := &input{d: d}
	var err error
	if in.entries, in.stripes, err = indexOf(ctx, store, d); err != nil {
		return nil, err
	}
	if !deleted.IsEmpty() {
		if in.deleted, err = store.Bitmaps().Read(ctx, deleted); err != nil {
			return nil, err
		}
	}
	for j, o := range overlays {
		l, err := openLayer(ctx, store, in, o, layers[j])
		if err != nil {
			return nil, err
		}
		switch {
		case o.Merged != 0 && l != nil:
			in.merged = append([]*layer{l}, in.merged...)
		case separate(o):
			in.separate = append(in.separate, l)
		}
	}
	return in, nil
}

// openLayer opens a layer over an input. It returns nil if there is none, or if the overlay is a branch's.
func openLayer(ctx context.Context, store *storage.Store, in *input, o catalog.Overlay,
	l *catalog.OverlaySegment) (*layer, error) {
	if l == nil || o.Branch != "" {
		return nil, nil
	}
	out := &layer{overlay: o, data: l.Data}
	var stripes []uint32
	var err error
	if out.entries, stripes, err = indexOf(ctx, store, l.Data); err != nil {
		return nil, err
	}
	if !slices.Equal(stripes, in.stripes) {
		return nil, &format.CorruptError{Object: l.Data.Index, Stripe: -1, Offset: -1, Reason: fmt.Sprintf(
			"the layer of overlay %s has other stripes than segment %s under it", l.Overlay, in.d.ID)}
	}
	if l.All {
		return out, nil
	}
	out.covered, err = store.Bitmaps().Read(ctx, l.Covered)
	return out, err
}

// covers returns the rows that l covers; nil: all rows. A nil layer covers none.
func (l *layer) covers() *roaring.Bitmap {
	if l == nil {
		return roaring.New()
	}
	return l.covered
}

// has reports whether the input has a file of a feature, its own or of a merged layer.
func (in *input) has(f catalog.FeatureID) bool {
	if in.entries[f] != nil {
		return true
	}
	for _, l := range in.merged {
		if l.entries[f] != nil {
			return true
		}
	}
	return false
}

// sources returns the sources of a feature of the table, the highest first.
func (in *input) sources(f catalog.FeatureID) []source {
	var out []source
	for _, l := range in.merged {
		if !hasFeature(l.overlay, f) {
			continue
		}
		out = append(out, l.source(f))
		if l.covered == nil {
			return out
		}
		if l.overlay.MissingRows == catalog.Null {
			return append(out, source{})
		}
	}
	return append(out, sourceOf(in.entries, f, nil))
}

func hasFeature(o catalog.Overlay, f catalog.FeatureID) bool {
	return slices.ContainsFunc(o.Features, func(g catalog.Feature) bool { return g.ID == f })
}

// source returns l's source of a feature.
func (l *layer) source(f catalog.FeatureID) source { return sourceOf(l.entries, f, l.covered) }

// A source is a feature file, and the rows whose values come from it.
type source struct {
	entry   *segment.Entry  // nil: null in every row
	group   *segment.Entry  // the inverse of its dedup group; nil: it is in no group
	covered *roaring.Bitmap // nil: all rows
}

func sourceOf(entries map[catalog.FeatureID]*segment.Entry, f catalog.FeatureID,
	covered *roaring.Bitmap) source {
	s := source{entry: entries[f], covered: covered}
	if s.entry != nil && s.entry.Meta.Group != 0 {
		s.group = entries[catalog.FeatureID(s.entry.Meta.Group)]
	}
	return s
}

// rewriteInput describes the input to package writer: all that becomes segments, the layers of overlays among it, which
// get the stripes of the segments under them.
func (in *input) rewriteInput() writer.RewriteInput {
	out := writer.RewriteInput{Deleted: in.deleted, Stripes: make([]writer.RewriteStripe, len(in.stripes))}
	sum, most := make([]uint64, len(in.stripes)), make([]uint64, len(in.stripes))
	add := func(entries map[catalog.FeatureID]*segment.Entry) {
		for _, e := range entries {
			for i := range e.Meta.Stripes {
				n := decodedBytes(e.Meta.Type, &e.Meta.Stripes[i].Stats, uint64(in.stripes[i]))
				sum[i] += n
				most[i] = max(most[i], n)
			}
		}
	}
	add(in.entries)
	for _, l := range slices.Concat(in.merged, in.separate) {
		if l != nil {
			add(l.entries)
		}
	}
	for i, rows := range in.stripes {
		perRow := func(n uint64) uint32 { return uint32(min(n/max(uint64(rows), 1), math.MaxUint32)) }
		out.Stripes[i] = writer.RewriteStripe{Rows: rows, RowBytes: perRow(sum[i]), MostBytes: perRow(most[i])}
	}
	return out
}

// decodedBytes returns how many bytes so many rows with statistics s take in memory, without deduplication.
func decodedBytes(t vector.Type, s *format.Stats, rows uint64) uint64 {
	unit := uint64(t.ValueBytes())
	if !t.IsList() {
		return unit * uint64(t.Width()) * rows
	}
	return unit*s.Elements + 4*rows
}
