package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/names"
)

// This file has the operations that only a repair uses: PROTOCOL.md, "Repair".

// A Replaced is a segment that takes the place of another, with the same rows in the same stripes.
type Replaced struct {
	Old string // id
	New catalog.SegmentDescriptor
}

// ReplaceSegments puts segments in place of others, each where the other stood. The change must have been made against
// all that was set for those, as with RemoveSegments, and set it anew for the new ones.
type ReplaceSegments []Replaced

func (ReplaceSegments) phase() phase { return phaseAdd }

func (r ReplaceSegments) adds() (segments []catalog.SegmentDescriptor, _ []bitmap.Ref) {
	for _, x := range r {
		segments = append(segments, x.New)
	}
	return segments, nil
}

func (r ReplaceSegments) validate(c *Change) error {
	var once checkOnce
	for _, x := range r {
		_, err := names.ParseID(x.Old)
		once.check(err, "segment replaced:", x.Old)
		once.check(x.New.Validate(), "segment in place of another:", x.New.ID)
		if slices.Contains(Op[RemoveSegments](c), x.Old) {
			return fmt.Errorf("segment %s replaced and removed", x.Old)
		}
	}
	return cmp.Or(c.needBase(len(r), "segments"), once.err)
}

func (r ReplaceSegments) apply(ctx context.Context, e *edit) error {
	var ids []string
	for _, x := range r {
		ids = append(ids, x.Old)
	}
	keys, err := catalog.SegmentIDKeys(ids...)
	if err != nil {
		return err
	}
	where, err := e.base.GetListing(ctx, keys...)
	if err != nil {
		return err
	}
	before, err := e.base.SegmentsByID(ctx, ids...)
	if err != nil {
		return err
	}
	for i, x := range r {
		if _, gone := e.removed[x.Old]; gone || before[i] == nil {
			return fmt.Errorf("segment %s to replace is gone: %w", x.Old, catalog.ErrConflict)
		}
		old := *before[i]
		if old.Rows != x.New.Rows || !old.Partition.Equal(x.New.Partition) {
			return fmt.Errorf("segment %s has %d rows of partition %q: %s, which replaces it, has %d of %q", x.Old,
				old.Rows, old.Partition, x.New.ID, x.New.Rows, x.New.Partition)
		}
		key := append([]byte{catalog.PartitionSpace}, where[i]...)
		canonical, place, ok := catalog.ParseSegmentKey(key)
		if !ok {
			return e.base.CorruptListing("listing key is malformed")
		}
		if err := e.drop(key, old, true); err != nil {
			return err
		}
		place.Added = e.info.Number
		if err := e.listSegment(catalog.SegmentKey(canonical, place), x.New); err != nil {
			return err
		}
	}
	return nil
}

// RemoveOverlaySegments takes away what overlays that are not part of the table have for segments. From then on such an
// overlay refuses to be read where it has nothing: what it is missing must not look like what it never had.
type RemoveOverlaySegments []catalog.OverlaySegment

func (RemoveOverlaySegments) phase() phase { return phaseRows }

func (r RemoveOverlaySegments) validate(c *Change) error {
	return c.needBase(len(r), "layers of overlays")
}

func (r RemoveOverlaySegments) apply(ctx context.Context, e *edit) error {
	for _, l := range r {
		o, err := e.overlay(ctx, l.Overlay)
		if err != nil {
			return err
		}
		switch {
		case o == nil || o.Merged > e.change.Base:
			return fmt.Errorf("overlay %s is gone, or part of the table: %w", l.Overlay, catalog.ErrConflict)
		case o.Merged != 0:
			return fmt.Errorf("overlay %s is part of the table: what it has for a segment cannot be taken away",
				l.Overlay)
		}
		key, err := overlaySegmentKey(*o, l.Segment)
		if err != nil {
			return err
		}
		values, err := e.base.GetListing(ctx, key)
		if err != nil {
			return err
		}
		if _, gone := e.removed[l.Segment]; !gone {
			there, reason := catalog.OverlaySegment{}, "is not there"
			if values[0] != nil {
				there, reason = catalog.ParseOverlaySegment(key, values[0], e.base.ObjectName())
			}
			if reason != "" || there.Data.ID != l.Data.ID {
				return fmt.Errorf("layer of overlay %s over segment %s is gone: %w", o.Name, l.Segment,
					catalog.ErrConflict)
			}
			e.setListing(key, nil)
		}
		if o.MissingLayers != catalog.Refuse {
			changed := *o
			changed.MissingLayers = catalog.Refuse
			e.setOverlay(changed)
		}
	}
	return nil
}

func overlaySegmentKey(o catalog.Overlay, segment string) ([]byte, error) {
	id, err := names.ParseID(segment)
	return append(catalog.OverlaySegmentPrefix(o.Number), id[:]...), err
}

// A Repair notes what a repair does. Where Lost is set, the newest snapshots are Lost.First to Lost.Last and cannot be
// read: the commit builds on the one before them, and takes the number after them.
type Repair struct {
	Lost  LostSnapshots
	Notes []catalog.Repaired
}

// LostSnapshots are those that a repair goes back behind; zero: none.
type LostSnapshots struct{ First, Last uint64 }

func (Repair) phase() phase { return phaseBranches }

func (r Repair) validate(c *Change) error {
	for _, n := range r.Notes {
		if err := n.Validate(); err != nil {
			return err
		}
	}
	if l := r.Lost; l.Last > 0 && (l.First > l.Last || c.Base == 0 || c.Base+1 != l.First) {
		return fmt.Errorf("repair: base %d, lost snapshots %d to %d: want those after the base", c.Base, l.First,
			l.Last)
	}
	return nil
}

func (r Repair) apply(_ context.Context, e *edit) error {
	if r.Lost.Last > 0 {
		e.info.Oldest = e.info.Number
	}
	for i, n := range r.Notes {
		e.setListing(catalog.RepairedKey(e.info.Number, uint32(i)), catalog.AppendRepaired(nil, n))
	}
	return nil
}

// ErrLost is matched, besides ErrConflict, when a change was made against a snapshot that a repair went back behind.
var ErrLost = errors.New("was lost, and the table was repaired without it")

// checkLost returns an error when a repair has gone back behind the base of the change. It costs nothing where the base
// has not expired: such a one is not lost.
func (e *edit) checkLost(ctx context.Context) error {
	base := e.change.Base
	if base == 0 || base >= e.base.Manifest.Info.Oldest {
		return nil
	}
	repaired, err := e.base.Repaired(ctx)
	if err != nil {
		return err
	}
	for _, r := range repaired {
		if r.First > 0 && r.First <= base && base <= r.Last {
			return fmt.Errorf("snapshot %d, against which the change was made, %w in snapshot %d: make it anew: %w",
				base, ErrLost, r.Snapshot, catalog.ErrConflict)
		}
	}
	return nil
}

// afterLost commits a change that goes back behind snapshots which cannot be read. It is tried once: who else took the
// number has read what this could not, or has repaired it.
func (a *attempts) afterLost(ctx context.Context, lost LostSnapshots) error {
	n, err := a.t.Newest(ctx)
	if err != nil {
		return err
	}
	if n.Number != lost.Last {
		return fmt.Errorf("snapshot %d is the newest, and snapshot %d was: %w", n.Number, lost.Last,
			catalog.ErrConflict)
	}
	a.base, err = a.t.Read(ctx, lost.First-1)
	if err != nil {
		return err
	}
	a.table = a.base.Manifest.Table
	return cmp.Or(a.c.checkTable(a.table), checkAdded(ctx, a.t, a.c))
}
