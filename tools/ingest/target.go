package ingest

import (
	"context"
	"errors"
	"slices"

	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/writer"
)

// A target is what an ingest needs of a table.
type target interface {
	writer.Target
	// latest returns the table's schema, partition keys and newest snapshot; number 0 when there is none.
	latest(ctx context.Context) (targetState, error)
	// replaced says what of the table's newest snapshot an overwrite of partitions replaces.
	replaced(ctx context.Context, partitions []catalog.Partition) (Replaced, error)
	// commit returns the number of the snapshot it made.
	commit(ctx context.Context, c commit.Change) (uint64, error)
}

type targetState struct {
	number   uint64
	rows     uint64 // that readers see
	features []catalog.Feature
	taken    map[catalog.FeatureID]bool // ids that no new feature may have
	profile  string                     // a property of the table; empty: none
	// partition is one that the table has; nil: it has none.
	partition catalog.Partition
	// hasSource reports whether the fingerprint is of something ingested already.
	hasSource func(ctx context.Context, fingerprint string) (bool, error)
	// eachSource visits the names of what was ingested already; nil: nothing was.
	eachSource func(ctx context.Context, visit func(name string)) error
}

// A tableTarget is a table of a store.
type tableTarget struct {
	writer.Target
	table *storage.Table
}

func (t tableTarget) latest(ctx context.Context) (targetState, error) {
	snap, err := t.table.Latest(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return targetState{hasSource: func(context.Context, string) (bool, error) { return false, nil }}, nil
	}
	if err != nil {
		return targetState{}, err
	}
	s := targetState{number: snap.Info().Number, rows: snap.Info().LiveRows(), hasSource: snap.HasSource,
		eachSource: snap.EachSource}
	if s.features, err = snap.Features(ctx); err != nil {
		return targetState{}, err
	}
	if s.taken, err = snap.FeatureIDs(ctx); err != nil {
		return targetState{}, err
	}
	if s.profile, err = snap.Property(ctx, snapshot.ProfileProperty); err != nil {
		return targetState{}, err
	}
	parts, err := snap.Partitions(ctx)
	if err != nil {
		return targetState{}, err
	}
	if len(parts) > 0 {
		s.partition = parts[0]
		if s.partition == nil {
			s.partition = catalog.Partition{}
		}
	}
	return s, nil
}

func (t tableTarget) replaced(ctx context.Context, partitions []catalog.Partition) (r Replaced, err error) {
	snap, err := t.table.Latest(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	var segments []catalog.SegmentDescriptor
	for _, p := range partitions {
		some, err := snap.Partition(ctx, p)
		if err != nil {
			return r, err
		}
		if len(some) > 0 {
			r.Partitions++
			r.Table = len(p) == 0
		}
		segments = append(segments, some...)
	}
	deleted, err := snap.DeletionVectors(ctx, segments...)
	if err != nil {
		return r, err
	}
	for i, s := range segments {
		r.Rows += s.Rows - deleted[i].Count
		r.DeletedRows += deleted[i].Count
	}
	overlays, err := snap.Overlays(ctx)
	if err != nil {
		return r, err
	}
	layers, err := snap.OverlaySegments(ctx, overlays, segments...)
	if err != nil {
		return r, err
	}
	for j, o := range overlays {
		if slices.ContainsFunc(layers, func(of []*catalog.OverlaySegment) bool { return of[j] != nil }) {
			r.Overlays = append(r.Overlays, o.Name)
		}
	}
	lists, err := snap.SampleLists(ctx)
	if err != nil {
		return r, err
	}
	for _, l := range lists {
		listed, err := snap.ListedRows(ctx, l.Name, segments...)
		if err != nil {
			return r, err
		}
		for _, rows := range listed {
			if rows.Count > 0 {
				r.SampleLists = append(r.SampleLists, l.Name)
				break
			}
		}
	}
	return r, nil
}

func (t tableTarget) commit(ctx context.Context, c commit.Change) (uint64, error) {
	snap, err := t.table.Commit(ctx, c)
	if err != nil {
		return 0, err
	}
	return snap.Info().Number, nil
}
