package compaction

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/object"
)

// This file finds out which snapshots other than the newest may have the rows. They may have rows that the newest
// lacks: compactions write no deleted rows, and partitions are overwritten.

// A segmentContents says whether a segment may have rows to erase.
type segmentContents uint8

const (
	hasNone  segmentContents = iota // it has none of the rows
	mayHave                         // it has some, or may have
	isPurged                        // an earlier Erase deleted its objects
)

// noteContents records that affected segments may have the rows and that the other segments have none.
func (e *eraser) noteContents(segments []catalog.SegmentDescriptor) {
	if e.contents == nil {
		e.contents = map[string]segmentContents{}
	}
	for _, d := range segments {
		e.contents[d.ID] = hasNone
		if e.affected[d.ID] {
			e.contents[d.ID] = mayHave
		}
	}
	e.snapshotHas = map[uint64]bool{}
}

// mayHaveRows reports whether a snapshot may have the rows.
func (e *eraser) mayHaveRows(ctx context.Context, number uint64) (bool, error) {
	may, ok := e.snapshotHas[number]
	if ok {
		return may, nil
	}
	s, err := e.table.At(ctx, number)
	if err != nil {
		return false, err
	}
	if may, err = e.lookAtSnapshot(ctx, s); err == nil {
		e.snapshotHas[number] = may
	}
	return may, err
}

func (e *eraser) lookAtSnapshot(ctx context.Context, s *storage.Snapshot) (bool, error) {
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return false, err
	}
	may := false
	for _, d := range segments { // all of them: mayHaveLayers asks for them
		t, err := e.contentsOf(ctx, d)
		if err != nil {
			return true, err
		}
		may = may || t == mayHave
	}
	if may {
		return true, nil
	}
	if e.what.Keys != nil { // who opens the snapshot reads the definitions of its sample lists
		lists, err := s.SampleLists(ctx)
		if err != nil || slices.ContainsFunc(lists, func(l catalog.SampleList) bool {
			return e.named(l.Definition)
		}) {
			return true, err
		}
	}
	return e.mayHaveLayers(ctx, s)
}

// mayHaveLayers reports whether layers that a snapshot names may have values of the rows, which the segments that it
// names need not have.
func (e *eraser) mayHaveLayers(ctx context.Context, s *storage.Snapshot) (bool, error) {
	overlays, err := s.Overlays(ctx)
	if err != nil {
		return false, err
	}
	left := errors.New("the data of a layer is left")
	for _, o := range overlays {
		if e.what.Keys != nil && hasFeature(o, e.what.Keys.feature.ID) {
			return true, nil // the key had other values than the segments say
		}
		err := s.EachOverlaySegment(ctx, o, func(l catalog.OverlaySegment) error {
			// A layer of a branch may be of a segment that this snapshot does not list, and that is gone.
			if t, known := e.contents[l.Segment]; known && t == hasNone {
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

// contentsOf returns the contents of a segment, from e.contents if they are known.
func (e *eraser) contentsOf(ctx context.Context, d catalog.SegmentDescriptor) (segmentContents, error) {
	t, ok := e.contents[d.ID]
	if ok {
		return t, nil
	}
	t, err := e.lookAt(ctx, d)
	if err == nil {
		e.contents[d.ID] = t
	}
	return t, err
}

// lookAt examines a segment that the newest snapshot lacks.
func (e *eraser) lookAt(ctx context.Context, d catalog.SegmentDescriptor) (segmentContents, error) {
	switch there, err := e.isThere(ctx, d); {
	case err != nil:
		return mayHave, err
	case !there:
		return isPurged, nil
	case e.what.Keys == nil:
		return mayHave, nil
	}
	t := hasNone
	err := e.eachCandidate(ctx, []catalog.SegmentDescriptor{d}, func(_ context.Context, _ int, c *column) error {
		rows, err := e.keys.rows(c, nil)
		if err == nil && !rows.IsEmpty() {
			t = mayHave
		}
		return err
	})
	if errors.Is(err, format.ErrCorrupt) || errors.Is(err, object.ErrNotFound) {
		return mayHave, nil // a purge that was interrupted has left a part of it
	}
	return t, err
}

// isThere reports whether any object of a segment is left. A purge that was interrupted may have deleted only some.
func (e *eraser) isThere(ctx context.Context, d catalog.SegmentDescriptor) (bool, error) {
	for info, err := range e.store.Blobs().List(ctx, path.Dir(d.Index)+"/", "") {
		if err != nil || info.Size > 0 { // markers of gc are empty
			return true, err
		}
	}
	return false, nil
}

// lookBack sets history and uncollected: whether snapshots before the newest may have the rows.
func (e *eraser) lookBack(ctx context.Context) error {
	if len(e.affected) > 0 || e.unfinished {
		return nil // all snapshots before the newest will expire anyway
	}
	info := e.snap.Info()
	numbers, err := e.table.Readable(ctx)
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(numbers) {
		if n >= info.Number {
			continue
		}
		expired := n < info.Oldest
		if expired && e.uncollected {
			return nil
		}
		switch may, err := e.mayHaveRows(ctx, n); {
		case errors.Is(err, storage.ErrNotFound): // gc has taken it since
		case err != nil:
			return err
		case may && expired:
			e.uncollected = true
		case may:
			e.history = true
			return nil
		}
	}
	return nil
}
