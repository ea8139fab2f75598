package ingest

import (
	"context"
	"errors"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/format/vector"
	"github.com/dsistore/dsistore/storage"
)

// A stripeWriter takes the stripes of one feature of one segment. *format.Writer is one.
type stripeWriter interface {
	WriteStripe(c *vector.Column) error
	// Note records the duplicates of all stripes.
	Note(f format.Found)
	// Settle does what is left to do after the last stripe.
	Settle() error
}

// A segmentWriter is what an ingest needs of a storage.SegmentWriter.
type segmentWriter interface {
	AddFeature(ctx context.Context, order int, f storage.Feature, write func(stripeWriter) error) error
	// AddGroup writes a dedup group: the inverse at order, its features behind it. The first writer takes the inverse.
	AddGroup(ctx context.Context, order int, features []storage.Feature, write func([]stripeWriter) error) error
	Skip(order int)
	Finish(ctx context.Context) (storage.SegmentDescriptor, error)
	Abort()
}

// A target is what an ingest needs of a table.
type target interface {
	// latest returns the table's schema, partition keys and newest snapshot; number 0 when there is none.
	latest(ctx context.Context) (targetState, error)
	newSegment(ctx context.Context, p storage.Partition, stripeRows []uint32, profile format.Profile) (segmentWriter, error)
	// commit returns the number of the snapshot it made.
	commit(ctx context.Context, c storage.Change) (uint64, error)
	// discard deletes the objects of segments that were not committed, as far as it can.
	discard(ctx context.Context, segments []storage.SegmentDescriptor)
}

type targetState struct {
	number   uint64
	features []storage.Feature
	taken    map[storage.FeatureID]bool // ids that no new feature may have
	profile  string                     // a property of the table; empty: none
	// partition is one that the table has; nil: it has none.
	partition storage.Partition
	// hasSource reports whether the fingerprint is of something ingested already.
	hasSource func(ctx context.Context, fingerprint string) (bool, error)
}

// A tableTarget is a table of a store.
type tableTarget struct {
	table   *storage.Table
	segment storage.SegmentOptions
}

func (t tableTarget) latest(ctx context.Context) (targetState, error) {
	snap, err := t.table.Latest(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return targetState{hasSource: func(context.Context, string) (bool, error) { return false, nil }}, nil
	}
	if err != nil {
		return targetState{}, err
	}
	s := targetState{number: snap.Info().Number, hasSource: snap.HasSource}
	if s.features, err = snap.Features(ctx); err != nil {
		return targetState{}, err
	}
	if s.taken, err = snap.FeatureIDs(ctx); err != nil {
		return targetState{}, err
	}
	if s.profile, err = snap.Property(ctx, storage.ProfileProperty); err != nil {
		return targetState{}, err
	}
	parts, err := snap.Partitions(ctx)
	if err != nil {
		return targetState{}, err
	}
	if len(parts) > 0 {
		s.partition = parts[0]
		if s.partition == nil {
			s.partition = storage.Partition{}
		}
	}
	return s, nil
}

func (t tableTarget) newSegment(ctx context.Context, p storage.Partition, stripeRows []uint32, profile format.Profile) (segmentWriter, error) {
	opts := t.segment
	opts.Profile = profile
	w, err := t.table.NewSegment(ctx, p, stripeRows, opts)
	if err != nil {
		return nil, err
	}
	return tableSegment{w}, nil
}

func (t tableTarget) commit(ctx context.Context, c storage.Change) (uint64, error) {
	snap, err := t.table.Commit(ctx, c)
	if err != nil {
		return 0, err
	}
	return snap.Info().Number, nil
}

func (t tableTarget) discard(ctx context.Context, segments []storage.SegmentDescriptor) {
	for _, d := range segments {
		// What stays, gc finds.
		_ = t.table.Store().Discard(ctx, d)
	}
}

type tableSegment struct{ *storage.SegmentWriter }

func (s tableSegment) AddFeature(ctx context.Context, order int, f storage.Feature, write func(stripeWriter) error) error {
	return s.SegmentWriter.AddFeature(ctx, order, f, func(w *format.Writer) error { return write(w) })
}

func (s tableSegment) AddGroup(ctx context.Context, order int, features []storage.Feature, write func([]stripeWriter) error) error {
	return s.SegmentWriter.AddGroup(ctx, order, features, func(inverse *format.Writer, members []*format.Writer) error {
		files := []stripeWriter{inverse}
		for _, w := range members {
			files = append(files, w)
		}
		return write(files)
	})
}
