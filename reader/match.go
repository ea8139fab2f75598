package reader

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/reader/plan"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A Match is the rows of a snapshot that a plan selects, for deleting, listing and counting them.
type Match struct {
	// Segments are those that have such rows, in the table's order.
	Segments []SegmentRows
	Rows     uint64 // of all segments
	// Pruning counts what evaluating the filter took; nil: there is no filter.
	Pruning *Pruning
}

// SegmentRows are rows of a segment, at least one, numbered from 0 as in bitmap.Ref.
type SegmentRows struct {
	Segment catalog.SegmentDescriptor
	Rows    *roaring.Bitmap // nil: every row. Borrowed: do not write.
}

// Count returns how many rows they are.
func (r SegmentRows) Count() uint64 {
	if r.Rows == nil {
		return r.Segment.Rows
	}
	return r.Rows.GetCardinality()
}

// Matching returns the rows that a plan with these options would read: rows of the partitions that are in the sample
// list, for which the filter is true with the overlays applied, and that are not deleted. Other options are ignored. It
// reads only the filter's features, where statistics do not decide, and records this as usage
// (LayoutOptions.Read.Usage).
func Matching(ctx context.Context, snap *storage.Snapshot, opts plan.Options, how LayoutOptions) (*Match, error) {
	p := &plan.Plan{
		Table: snap.Table().Name(), Snapshot: snap.Info().Number, Partition: opts.Partition, Filter: opts.Filter,
		SampleList: opts.SampleList,
		BatchSize:  plan.DefaultBatchSize, Output: plan.OutputColumns,
	}
	if err := p.ValidateSelection(); err != nil {
		return nil, err
	}
	v := how.View
	if v == nil {
		v = &storage.View{Snapshot: snap}
	}
	overlays, err := plan.NamedOverlays(ctx, v, opts.Overlays)
	if err != nil {
		return nil, err
	}
	p.Pin(v, overlays)
	l, err := layoutOf(ctx, snap, p, how)
	if err != nil {
		return nil, err
	}
	l.recordFilters(how.Read.Usage)
	return &Match{Segments: l.Matched(), Rows: l.Rows(), Pruning: l.pruning}, nil
}

// Matched returns the rows that the layout reads, by segment. Row i of the layout's own order is the i-th of them.
func (l *Layout) Matched() []SegmentRows {
	out := make([]SegmentRows, 0, len(l.segments))
	for i, d := range l.segments {
		if d.Rows > 0 {
			out = append(out, SegmentRows{d, l.selectionOf(i)})
		}
	}
	return out
}
