package reader

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/storage"
)

// storedSets returns the rows of each of the layout's segments that the plan's sample lists have, without those that are deleted; an entry is
// nil where that is every row, and there are no entries where it is so in each segment.
func (l *Layout) storedSets(ctx context.Context, snap *storage.Snapshot, at snapshots) (sets []*roaring.Bitmap, err error) {
	deleted, err := snap.DeletionVectors(ctx, l.segments...)
	if err != nil {
		return nil, err
	}
	var listed [][]storage.RowBitmap // of each list, by segment
	for _, list := range l.plan.Lists() {
		in, err := at(ctx, list.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("sample list %s: %w", list.Name, err)
		}
		if _, err := in.SampleList(ctx, list.Name); err != nil {
			return nil, err
		}
		rows, err := in.ListedRows(ctx, list.Name, l.segments...)
		if err != nil {
			return nil, err
		}
		listed = append(listed, rows)
	}
	sets = make([]*roaring.Bitmap, len(l.segments))
	store := snap.Table().Store()
	err = ofSegments(len(l.segments), func(i int) (err error) {
		var first *storage.RowBitmap
		if len(listed) > 0 {
			first = &listed[0][i]
		}
		if sets[i], err = storedSet(ctx, store, l.segments[i], first, deleted[i]); err != nil || len(listed) < 2 {
			return err
		}
		second, err := store.ReadRowBitmap(ctx, listed[1][i])
		if err == nil {
			sets[i].And(second)
		}
		return err
	})
	if err != nil || !slices.ContainsFunc(sets, func(b *roaring.Bitmap) bool { return b != nil }) {
		return nil, err
	}
	return sets, nil
}

// storedSet returns the rows of a segment that are listed, nil: all, and not deleted; nil: every row.
func storedSet(ctx context.Context, store *storage.Store, d storage.SegmentDescriptor, listed *storage.RowBitmap, deleted storage.RowBitmap) (
	set *roaring.Bitmap, err error) {
	if listed != nil {
		if set, err = store.ReadRowBitmap(ctx, *listed); err != nil {
			return nil, err
		}
	}
	if deleted.IsEmpty() {
		return set, nil
	}
	gone, err := store.ReadRowBitmap(ctx, deleted)
	if err != nil {
		return nil, err
	}
	if set == nil {
		if err := selectable(d); err != nil {
			return nil, err
		}
		set = roaring.New()
		set.AddRange(0, d.Rows)
	}
	set.AndNot(gone)
	return set, nil
}

// segmentsAtOnce is of how many segments at once it is found out which rows are read.
const segmentsAtOnce = 16

// ofSegments calls do for each of n segments, several at a time, and returns the error of the first in order that has one.
func ofSegments(n int, do func(i int) error) error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(segmentsAtOnce)
	var failed atomic.Bool
	for i := range n {
		if failed.Load() { // those before it go on, so that the error is the first in order
			break
		}
		g.Go(func() error {
			if errs[i] = do(i); errs[i] != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = g.Wait()
	return firstError(errs)
}

// intersect returns the rows that are in both of two entries a segment; nil: every row. Neither is written to.
func intersect(a, b []*roaring.Bitmap) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(a))
	for i := range a {
		switch {
		case a[i] == nil:
			out[i] = b[i]
		case b[i] == nil:
			out[i] = a[i]
		default:
			out[i] = roaring.And(a[i], b[i])
		}
	}
	return out
}
