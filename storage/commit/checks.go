package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/wire"
)

// This file looks, before a commit, whether what it builds on and what it adds is there, and is the table's.

// checkBase makes sure that a snapshot which the handle has read before is still itself: the table may have been
// removed and made anew.
func checkBase(ctx context.Context, t *snapshot.Log, base *snapshot.Snapshot) error {
	m, err := t.Header(ctx, base.Manifest.Info.Number)
	switch {
	case errors.Is(err, object.ErrNotFound):
		return errLostRace // it has expired, and there is a newer one
	case err == nil && m.Commit != base.Manifest.Commit:
		return gone(t, base.Manifest.Info.Number)
	}
	return replaced(err)
}

// gone says that a snapshot which the handle has read is not there, or another of its number.
func gone(t *snapshot.Log, number uint64) error {
	t.Forget()
	return fmt.Errorf("snapshot %d, which was read, is gone: %w: %w", number, snapshot.ErrReplaced,
		catalog.ErrConflict)
}

// checkTable returns an error when the change adds objects that were made for another table.
func (c *Change) checkTable(table names.TableID) error {
	var ids []string
	segments, rows := c.adds()
	for _, d := range segments {
		ids = append(ids, d.ID)
	}
	for _, r := range rows {
		if id, _, ok := r.Object(); ok {
			ids = append(ids, id.String())
		}
	}
	for _, s := range ids {
		i, err := names.ParseID(s)
		if err != nil {
			return err
		}
		if i.Table() != table {
			return fmt.Errorf("%s was written for table %s, and this is table %s: write it for this one: %w", s,
				i.Table(), table, catalog.ErrConflict)
		}
	}
	return nil
}

// checkAdded makes sure that gc has condemned, and a mistake taken away, nothing of what a change adds.
func checkAdded(ctx context.Context, t *snapshot.Log, c Change) error {
	add, sets := c.adds()
	return object.Parallel(ctx, object.RequestsAtOnce, len(add)+len(sets), func(ctx context.Context, i int) error {
		if i >= len(add) {
			return checkRowBitmap(ctx, t.Store.Blobs, sets[i-len(add)])
		}
		if err := checkSegment(ctx, t.Store.Blobs, add[i]); err != nil {
			return fmt.Errorf("segment %s: %w", add[i].ID, err)
		}
		return nil
	})
}

// condemned says that a gc has condemned objects that a change adds.
func condemned(i names.ID) error {
	return fmt.Errorf(
		"%s: gc has condemned it, for it was written longer ago than the grace period and not committed: write "+
			"it anew: %w", i, catalog.ErrConflict)
}

// checkRowBitmap checks that the object of a set, if it has one, is there and that no gc has condemned it.
func checkRowBitmap(ctx context.Context, blobs object.Store, r bitmap.Ref) error {
	id, size, ok := r.Object()
	if !ok {
		return nil
	}
	name := id.RowsName()
	there := false
	for info, err := range blobs.List(ctx, id.Dir(), "") {
		switch {
		case err != nil:
			return err
		case id.IsCondemned(info.Name):
			return condemned(id)
		case info.Name == name && uint64(info.Size) != size:
			return wire.Corrupt(name, fmt.Sprintf("%d bytes: want %d", info.Size, size))
		}
		there = there || info.Name == name
	}
	if !there {
		return fmt.Errorf("%w: %s", object.ErrNotFound, name)
	}
	return nil
}

// checkSegment holds the objects that there are of a segment to its descriptor, in one listing. gc may have condemned
// it, or have taken those that a slow writer made first.
func checkSegment(ctx context.Context, blobs object.Store, d catalog.SegmentDescriptor) error {
	segment, err := names.ParseID(d.ID)
	if err != nil {
		return err
	}
	var objects, sum uint64
	indexed := false
	for info, err := range blobs.List(ctx, segment.Dir(), "") {
		if err != nil {
			return err
		}
		if _, ok := names.ParseDataName(info.Name); !ok {
			continue
		}
		if segment.IsCondemned(info.Name) {
			return condemned(segment)
		}
		objects++
		sum += uint64(info.Size)
		if info.Name == d.Index {
			indexed = true
			if uint64(info.Size) != d.IndexSize {
				return wire.Corrupt(d.Index, fmt.Sprintf("%d bytes: segment says %d", info.Size, d.IndexSize))
			}
		}
	}
	if !indexed {
		return fmt.Errorf("%w: %s", object.ErrNotFound, d.Index)
	}
	want := uint64(d.Objects) + 1
	if d.KeysSize > 0 {
		want++
	}
	if objects != want || sum != d.Bytes {
		return wire.Corrupt(d.Index,
			fmt.Sprintf(
				"%d objects of %d bytes with the index: the segment says %d of %d; gc takes uncommitted ones after "+
					"its grace period",
				objects, sum, want, d.Bytes))
	}
	return nil
}
