package compaction

import (
	"context"
	"errors"
	"path"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/object"
)

// This file has what an erasure knows of snapshots other than the newest. They may have the rows where the newest has
// none any more: a compaction wrote no deleted rows, or a partition was overwritten.

// A taint says what is known of a segment.
type taint uint8

const (
	isClean   taint = iota // it has none of the rows
	isTainted              // it has some, or may have
	isGone                 // an erasure before has purged it
)

// clean notes that segments have none of the rows, but those that are to be rewritten.
func (e *eraser) clean(segments []storage.SegmentDescriptor) {
	if e.taints == nil {
		e.taints = map[string]taint{}
	}
	for _, d := range segments {
		e.taints[d.ID] = isClean
		if e.had[d.ID] {
			e.taints[d.ID] = isTainted
		}
	}
	e.dirtied = map[uint64]bool{}
}

// dirty reports whether a snapshot has the rows, or may have: what a filter would select in it is not known.
func (e *eraser) dirty(ctx context.Context, number uint64) (bool, error) {
	dirty, ok := e.dirtied[number]
	if ok {
		return dirty, nil
	}
	s, err := e.table.At(ctx, number)
	if err != nil {
		return false, err
	}
	if dirty, err = e.looksDirty(ctx, s); err == nil {
		e.dirtied[number] = dirty
	}
	return dirty, err
}

func (e *eraser) looksDirty(ctx context.Context, s *storage.Snapshot) (bool, error) {
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return false, err
	}
	gone := map[string]bool{}
	for _, d := range segments {
		t, err := e.taintOf(ctx, d)
		if err != nil || t == isTainted {
			return true, err
		}
		gone[d.ID] = t == isGone
	}
	overlays, err := s.Overlays(ctx)
	if err != nil {
		return false, err
	}
	left := errors.New("the data of a layer is left")
	for _, o := range overlays {
		if e.what.Keys != nil && hasFeature(o, e.what.Keys.feature.ID) {
			return true, nil // the key had other values than the segments say
		}
		err := s.EachOverlaySegment(ctx, o, func(l storage.OverlaySegment) error {
			if !gone[l.Segment] {
				return nil
			}
			there, err := e.isThere(ctx, l.Data)
			if err == nil && there {
				err = left
			}
			return err
		})
		if errors.Is(err, left) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// taintOf returns what is known of a segment.
func (e *eraser) taintOf(ctx context.Context, d storage.SegmentDescriptor) (taint, error) {
	t, ok := e.taints[d.ID]
	if ok {
		return t, nil
	}
	t, err := e.looksTainted(ctx, d)
	if err == nil {
		e.taints[d.ID] = t
	}
	return t, err
}

// looksTainted looks at a segment that the newest snapshot lacks.
func (e *eraser) looksTainted(ctx context.Context, d storage.SegmentDescriptor) (taint, error) {
	switch there, err := e.isThere(ctx, d); {
	case err != nil:
		return isTainted, err
	case !there:
		return isGone, nil
	case e.what.Keys == nil:
		return isTainted, nil
	}
	t := isClean
	err := e.eachCandidate(ctx, []storage.SegmentDescriptor{d}, func(_ context.Context, _ int, c *column) error {
		rows, err := e.keys.rows(c)
		if err == nil && !rows.IsEmpty() {
			t = isTainted
		}
		return err
	})
	if errors.Is(err, format.ErrCorrupt) || errors.Is(err, object.ErrNotFound) {
		return isTainted, nil // a purge that was interrupted has left a part of it
	}
	return t, err
}

// isThere reports whether an object of a segment is left: a purge that was interrupted may have taken some.
func (e *eraser) isThere(ctx context.Context, d storage.SegmentDescriptor) (bool, error) {
	for info, err := range e.store.Blobs().List(ctx, path.Dir(d.Index)+"/", "") {
		if err != nil || info.Size > 0 { // markers of gc are empty
			return true, err
		}
	}
	return false, nil
}

// missesInARow is how many snapshots that are gone, one after the other, say that those before them are gone too: gc
// takes the lowest first, some at a time.
const missesInARow = 64

// past finds out whether snapshots before the newest have the rows: those that have not expired, and those whose data
// nobody has collected yet.
func (e *eraser) past(ctx context.Context) error {
	if len(e.had) > 0 || e.unfinished {
		return nil // all before the newest goes anyhow
	}
	info, misses := e.snap.Info(), 0
	for n := info.Number - 1; n > 0 && misses < missesInARow; n-- {
		expired := n < info.Oldest
		if expired && e.uncollected {
			return nil
		}
		switch dirty, err := e.dirty(ctx, n); {
		case errors.Is(err, storage.ErrNotFound):
			misses++
		case err != nil:
			return err
		case dirty && expired:
			e.uncollected = true
		case dirty:
			e.history = true
			return nil
		default:
			misses = 0
		}
	}
	return nil
}
