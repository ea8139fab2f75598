package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/reader"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
)

// A view is the rows under an overlay: those of the table's newest snapshot, or of a branch.
type view struct {
	newest *storage.Snapshot // that the commit is made against
	snap   *storage.Snapshot // that has the segments
	branch *catalog.Branch   // nil: none
	over   *storage.View     // what is read: snap under the branch's overlays
	named  []string          // overlays to read over those
	// segments are snap's, in the order of the table, with at least a row that is not deleted.
	segments []baseSegment
	batch    uint64 // number of the last that walk has read
	// read are the rows of segments, by id, that walk reads alone; segments that are not in it are read whole.
	read map[string]*roaring.Bitmap
}

// A baseSegment is one segment of a view.
type baseSegment struct {
	catalog.SegmentDescriptor
	dead  vector.Bitmap // rows that are deleted; nil: none
	rows  uint64        // that are not
	first uint64        // of those, the place of the first among the view's
}

// openView opens what a reader of the table, or of the branch, sees now. It reads features under the named overlays.
func openView(ctx context.Context, t *storage.Table, branch string, named []string) (*view, error) {
	newest, err := t.Latest(ctx)
	if err != nil {
		return nil, err
	}
	v := &view{newest: newest, snap: newest, over: &storage.View{Snapshot: newest}, named: named}
	if branch != "" {
		b, err := newest.Branch(ctx, branch)
		if err != nil {
			return nil, err
		}
		v.branch = &b
		if v.over, err = t.OpenBranch(ctx, branch); err != nil {
			return nil, err
		}
		v.over.List, v.over.ListIn = "", nil // all rows get what the overlay has
		v.snap = v.over.Snapshot
		if v.snap.Info().Number != b.Snapshot {
			return nil, fmt.Errorf("branch %s was set anew meanwhile: %w", branch, storage.ErrConflict)
		}
	}
	descriptors, err := v.snap.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	deleted, err := v.snap.DeletionVectors(ctx, descriptors...)
	if err != nil {
		return nil, err
	}
	place := uint64(0)
	for i, d := range descriptors {
		if d.Rows > math.MaxUint32 {
			return nil, fmt.Errorf("segment %s: %d rows are too many to say which are covered", d.ID, d.Rows)
		}
		s := baseSegment{SegmentDescriptor: d, rows: d.Rows - deleted[i].Count, first: place}
		if s.rows == 0 {
			continue
		}
		if !deleted[i].IsEmpty() {
			gone, err := t.Store().Bitmaps().Read(ctx, deleted[i])
			if err != nil {
				return nil, err
			}
			s.dead = bitmapOf(gone, int(d.Rows))
		}
		place += s.rows
		v.segments = append(v.segments, s)
	}
	return v, nil
}

// descriptors returns those of the segments.
func (v *view) descriptors() []catalog.SegmentDescriptor {
	out := make([]catalog.SegmentDescriptor, len(v.segments))
	for i, s := range v.segments {
		out[i] = s.SegmentDescriptor
	}
	return out
}

// rows returns how many rows the view has.
func (v *view) rows() uint64 {
	n := uint64(0)
	for _, s := range v.segments {
		n += s.rows
	}
	return n
}

// within returns the view of the rows that may have one of the keys of a feature, given by their hashes, from the
// segments' key tables; v itself where there are none. It has all segments, also those without such rows.
func (v *view) within(ctx context.Context, key catalog.Feature, hashes []uint64) (*view, error) {
	for _, o := range v.over.Overlays {
		if slices.ContainsFunc(o.Features, func(f catalog.Feature) bool { return f.ID == key.ID }) {
			return v, nil // it has other keys than the segments
		}
	}
	rows, err := v.snap.KeyRows(ctx, key, hashes, v.descriptors())
	if err != nil {
		return nil, err
	}
	out := *v
	out.segments = slices.Clone(v.segments)
	out.read = map[string]*roaring.Bitmap{}
	first := uint64(0)
	for i := range out.segments {
		s := &out.segments[i]
		if rows[i] != nil {
			out.read[s.ID] = rows[i]
			s.rows = uint64(out.live(i).Count())
		}
		s.first = first
		first += s.rows
	}
	if len(out.read) == 0 {
		return v, nil
	}
	return &out, nil
}

// live returns the rows of a segment that walk reads. It is the caller's.
func (v *view) live(i int) vector.Bitmap {
	s := &v.segments[i]
	var out vector.Bitmap
	if rows := v.read[s.ID]; rows != nil {
		out = bitmapOf(rows, int(s.Rows))
	} else {
		out = make(vector.Bitmap, vector.BitmapWords(int(s.Rows)))
		out.SetRange(0, int(s.Rows))
	}
	for w := range s.dead {
		out[w] &^= s.dead[w]
	}
	return out
}

// plan returns the plan of reading the named features.
func (v *view) plan(ctx context.Context, names []string, batchSize int) (*reader.Plan, error) {
	features := make([]string, len(names))
	for i, n := range names {
		features[i] = reader.Literal(n)
	}
	return reader.NewViewPlan(ctx, v.over, reader.PlanOptions{Features: features, BatchSize: batchSize,
		Overlays: v.named})
}

// feature returns the feature that an overlay of the view replaces under a name: one of the table, or of the branch's
// overlays; nil where there is none, and for a partition key.
func (v *view) feature(ctx context.Context, name string) (*catalog.Feature, error) {
	if len(v.over.Overlays) == 0 {
		found, err := v.snap.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
	plan, err := reader.NewViewPlan(ctx, v.over, reader.PlanOptions{Features: []string{reader.Literal(name)}})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case reader.IsPartitionKey(plan.Features[0]):
		return nil, nil
	}
	return &plan.Features[0], nil
}

// bitmapOf returns the rows of a set, of a segment of so many.
func bitmapOf(set *roaring.Bitmap, rows int) vector.Bitmap {
	out := make(vector.Bitmap, vector.BitmapWords(rows))
	for it := set.Iterator(); it.HasNext(); {
		out.Set(int(it.Next()))
	}
	return out
}

// A piece is rows of a segment, in order, with features of theirs. Its columns are plain and borrowed for the visit.
type piece struct {
	segment int    // in view.segments
	place   int    // of the first row, among the segment's rows that are not deleted
	batch   uint64 // number of what columns are of; 0: of this piece alone
	columns []*vector.Column
	rows    int  // of the columns
	lo, hi  int  // those of the piece
	last    bool // it ends the segment
}

// walk calls visit for all rows of those segments that are wanted, in order, until visit returns an error. the named
// features are as a reader of the view sees them.
func (v *view) walk(ctx context.Context, names []string, opts *Options, want []bool, visit func(piece) error) error {
	// Small segments in small batches: what is visited of a batch is a segment's share.
	size := int(min(max(v.rows()/uint64(max(len(v.segments), 1)), 1024), 16384))
	plan, err := v.plan(ctx, names, size)
	if err != nil {
		return err
	}
	layout, err := reader.NewLayoutWith(ctx, v.snap, plan, reader.LayoutOptions{View: v.over, Within: v.read})
	if err != nil {
		return err
	}
	if layout.Rows() != v.rows() {
		return fmt.Errorf("table %s: %d rows to read, %d in its segments", v.snap.Table().Name(), layout.Rows(),
			v.rows())
	}
	hash := plan.Hash()
	for from := 0; from < len(v.segments); {
		to := from
		for to < len(v.segments) && want[to] {
			to++
		}
		if to > from {
			last := v.segments[to-1]
			split := reader.Split{Plan: hash, FirstRow: v.segments[from].first,
				Rows: last.first + last.rows - v.segments[from].first}
			if err := v.scan(ctx, layout, split, from, opts, visit); err != nil {
				return err
			}
		}
		from = to + 1
	}
	return nil
}

// scan is walk for segments next to each other, from the given one on.
func (v *view) scan(ctx context.Context, layout *reader.Layout, split reader.Split, at int, opts *Options,
	visit func(piece) error) (err error) {
	s, err := layout.Open(reader.Options{
		MemoryBudget: opts.readerShare(), MaxBatches: 3, Workers: opts.Workers, Split: &split,
		Usage: opts.Usage,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	place := uint64(0)
	for {
		b, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		v.batch++
		for lo := 0; lo < b.Rows; {
			g := &v.segments[at]
			n := int(min(uint64(b.Rows-lo), g.rows-place))
			p := piece{segment: at, place: int(place), batch: v.batch, columns: b.Columns, rows: b.Rows, lo: lo,
				hi: lo + n, last: place+uint64(n) == g.rows}
			if err := visit(p); err != nil {
				b.Release()
				return err
			}
			lo += n
			if place += uint64(n); p.last {
				at, place = at+1, 0
			}
		}
		b.Release()
	}
}

// nextLive returns the first row from the given one on that is not deleted.
func (s *baseSegment) nextLive(row int) int {
	if s.dead == nil {
		return row
	}
	for row < int(s.Rows) && s.dead.Get(row) {
		row++
	}
	return row
}
