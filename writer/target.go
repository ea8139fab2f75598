package writer

import (
	"context"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
)

// A StripeWriter takes the stripes of one feature of one segment. *format.Writer is one.
type StripeWriter interface {
	WriteStripe(c *vector.Column) error
	// Note records the duplicates found in all stripes.
	Note(f format.Found)
	// Finalize writes the rest of the file, after the last stripe.
	Finalize() error
}

// A SegmentWriter writes one segment. *segment.Writer documents the methods.
type SegmentWriter interface {
	AddFeature(ctx context.Context, order int, f catalog.Feature, write func(StripeWriter) error) error
	// AddGroup writes a dedup group: the inverse at position order, its features after it. The first StripeWriter takes
	// the inverse.
	AddGroup(ctx context.Context, order int, features []catalog.Feature, write func([]StripeWriter) error) error
	Skip(order int)
	Finish(ctx context.Context) (catalog.SegmentDescriptor, error)
	Abort()
}

// A Target is where segments are written to.
type Target interface {
	NewSegment(ctx context.Context, p catalog.Partition, stripeRows []uint32, profile format.Profile) (SegmentWriter,
		error)
	// Discard deletes the objects of segments that were not committed, as far as it can, even when ctx has ended.
	Discard(ctx context.Context, segments []catalog.SegmentDescriptor)
}

// standAloneBytes is the size from which a feature file is an object of its own. A smaller one stays in memory until it
// is complete.
func standAloneBytes(memory int64) int64 { return min(max(memory/64, 1<<20), 16<<20) }

// ToTable returns the target that writes segments of a table. Feature files that wait for their turn in a pack take at
// most an eighth of memory, in bytes, and 1 to 128 MiB.
func ToTable(t *storage.Table, memory int64) Target {
	return tableTarget{t, segment.Options{
		HoldBytes:       min(max(memory/8, 1<<20), 128<<20),
		StandAloneBytes: standAloneBytes(memory),
	}}
}

type tableTarget struct {
	table   *storage.Table
	segment segment.Options
}

func (t tableTarget) NewSegment(ctx context.Context, p catalog.Partition, stripeRows []uint32,
	profile format.Profile) (SegmentWriter, error) {
	opts := t.segment
	opts.Profile = profile
	w, err := t.table.NewSegment(ctx, p, stripeRows, opts)
	if err != nil {
		return nil, err
	}
	return tableSegment{w}, nil
}

func (t tableTarget) Discard(ctx context.Context, segments []catalog.SegmentDescriptor) {
	ctx, cancel := object.Cleanup(ctx)
	defer cancel()
	for _, d := range segments {
		// gc deletes objects that this could not delete.
		_ = t.table.Store().Segments().Discard(ctx, d)
	}
}

type tableSegment struct{ *segment.Writer }

func (s tableSegment) AddFeature(ctx context.Context, order int, f catalog.Feature,
	write func(StripeWriter) error) error {
	return s.Writer.AddFeature(ctx, order, f, func(w *format.Writer) error { return write(w) })
}

func (s tableSegment) AddGroup(ctx context.Context, order int, features []catalog.Feature,
	write func([]StripeWriter) error) error {
	return s.Writer.AddGroup(ctx, order, features, func(inverse *format.Writer, members []*format.Writer) error {
		files := []StripeWriter{inverse}
		for _, w := range members {
			files = append(files, w)
		}
		return write(files)
	})
}
