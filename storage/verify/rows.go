package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/segment"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/wire"
)

// This file checks what lies over segments: deletes, layers, sample lists, branches, leases.

// A notedLayer is a layer that some snapshot shows.
type notedOverlaySegment struct {
	catalog.OverlaySegment
	over  notedOverlay
	base  names.ID
	place string
}

// A notedOverlay is an overlay of a table, by its number.
type notedOverlay struct {
	table  string
	number uint32
}

// A notedBitmap is a row bitmap that some snapshot shows, of a segment or, covered ones, of a layer's.
type notedBitmap struct {
	bitmap.Ref
	segment names.ID
	place   string
	rows    uint64 // of the segment; 0: those of the descriptor noted
}

// shown notes what an entry that a snapshot of a table shows names, each once. entry has found the entry to be right.
func (v *verifier) shown(table, place string, kind lsm.Kind, key, value []byte) error {
	if kind != lsm.Listing || len(key) == 0 {
		return nil
	}
	switch key[0] {
	case catalog.PartitionSpace:
		if _, d, reason := catalog.ParseSegment(key, value); reason == "" {
			v.note(d)
		}
		return nil
	case catalog.OverlaySpace:
		if o, reason := catalog.DecodeOverlay(string(key[1:]), value); reason == "" && o.Branch != "" {
			v.onBranch[notedOverlay{table, o.Number}] = true
		}
		return nil
	case catalog.DeletesSpace, catalog.OverlaySegmentSpace, catalog.ListRowsSpace:
	default:
		return nil
	}
	if reason := checkEntry(place, lsm.Listing, key, value); reason != "" {
		return nil
	}
	once := string(key) + string(value)
	if v.noted[once] {
		return nil
	}
	v.noted[once] = true
	segment := names.ID(key[len(key)-16:])
	value = slices.Clone(value)
	if key[0] != catalog.OverlaySegmentSpace {
		set, _ := bitmap.DecodeEntry(value, bitmap.MaxRows, place)
		v.sets = append(v.sets, notedBitmap{Ref: set, segment: segment, place: place})
		return nil
	}
	l, _ := catalog.ParseOverlaySegment(key, value, place)
	v.note(l.Data)
	over := notedOverlay{table, binary.BigEndian.Uint32(key[1:])}
	v.layers = append(v.layers, notedOverlaySegment{l, over, segment, place})
	if !l.Covered.IsEmpty() {
		v.sets = append(v.sets, notedBitmap{Ref: l.Covered, segment: segment, place: place, rows: l.Data.Rows})
	}
	return nil
}

// span returns which snapshots must be whole. What of it cannot be read is damage.
func (v *verifier) span(ctx context.Context, t *snapshot.Log, there []snapshot.Object) span {
	s, err := t.Read(ctx, there[len(there)-1].Number)
	if err != nil {
		return span{first: unexpired(ctx, t, there)} // the walk reports it
	}
	var held []uint64
	first := max(s.Manifest.Info.Oldest, 1)
	repaired, err := s.Repaired(ctx)
	if err != nil {
		v.damage(err)
	}
	for _, r := range repaired {
		if id, err := names.ParseID(r.ID); err == nil {
			v.known[id] = true
		}
	}
	branches, err := s.Branches(ctx)
	if err != nil {
		v.damage(err)
	}
	for _, b := range branches {
		held = append(held, b.Pins()...)
	}
	leases, err := lease.Objects(ctx, t)
	if err != nil {
		v.damage(err)
	}
	for _, l := range leases {
		if _, err := lease.Describe(ctx, t, l); err != nil {
			v.damage(err)
		}
		if l.Snapshot >= first {
			continue
		}
		// One that was refused may not have been taken back, and one that has run out keeps nothing: which is which the
		// store's clock tells, and what is there is checked.
		if _, err := t.Header(ctx, l.Snapshot); !errors.Is(err, object.ErrNotFound) {
			held = append(held, l.Snapshot)
		}
	}
	slices.Sort(held)
	held = slices.Compact(held)
	return span{first, slices.DeleteFunc(held, func(n uint64) bool { return n >= first })}
}

// unexpired returns the first snapshot that has not expired, as far as is known where the newest cannot be read: the
// newest that can be read says which had expired before it, and gc has truncated those that have since.
func unexpired(ctx context.Context, t *snapshot.Log, there []snapshot.Object) uint64 {
	first := uint64(1)
	for _, o := range slices.Backward(there) {
		if s, err := t.Read(ctx, o.Number); err == nil {
			first = max(s.Manifest.Info.Oldest, 1)
			break
		}
	}
	if lowest := there[0].Number; lowest > first {
		info, err := t.Store.Blobs.Stat(ctx, names.SnapshotName(t.Table, lowest-1))
		if err == nil && info.Size == 0 {
			return lowest
		}
	}
	return first
}

// overTable holds what lies over the segments of a snapshot to them, and to the snapshot's totals.
func (v *verifier) overTable(ctx context.Context, s *snapshot.Snapshot) error {
	place := s.TreeName(s.Manifest.Listing)
	listed := map[names.ID]uint64{} // rows
	if err := s.WalkSegments(ctx, func(string, catalog.Partition) bool { return true },
		func(d catalog.SegmentDescriptor) {
			if segment, err := names.ParseID(d.ID); err == nil {
				listed[segment] = d.Rows
			}
		}); err != nil {
		return err
	}
	overlays, err := v.all(ctx, s)
	if err != nil {
		return err
	}
	lists, err := s.SampleLists(ctx)
	if err != nil {
		return err
	}
	branches, err := s.Branches(ctx)
	if err != nil {
		return err
	}
	byNumber := map[uint32]catalog.Overlay{}
	for _, o := range overlays {
		if other, ok := byNumber[o.Number]; ok || uint64(o.Number) >= s.Manifest.NextOverlay {
			v.damage(wire.Corrupt(place, fmt.Sprintf("overlay %s has number %d, as has %q; the next is %d", o.Name,
				o.Number, other.Name, s.Manifest.NextOverlay)))
		}
		byNumber[o.Number] = o
	}
	known := map[string]bool{}
	for _, l := range lists {
		known[l.Name] = true
	}
	deleted := uint64(0)
	for _, space := range [...]byte{catalog.DeletesSpace, catalog.OverlaySegmentSpace, catalog.ListRowsSpace} {
		err := s.EachIn(ctx, space, func(key, value []byte) string {
			if checkEntry(place, lsm.Listing, key, value) != "" {
				return "" // reported by the walk
			}
			segment := names.ID(key[len(key)-16:])
			_, ok := listed[segment]
			switch space {
			case catalog.DeletesSpace:
				r, _ := bitmap.DecodeEntry(value, bitmap.MaxRows, place)
				deleted += r.Count
			case catalog.OverlaySegmentSpace:
				l, _ := catalog.ParseOverlaySegment(key, value, place)
				o, known := byNumber[binary.BigEndian.Uint32(key[1:])]
				if !known {
					return fmt.Sprintf("layer %s is of no overlay", l.Data.ID)
				}
				ok = ok || o.Branch != ""
			case catalog.ListRowsSpace:
				name, _, _ := parseListRowsKey(key)
				if !known[name] {
					return fmt.Sprintf("rows of sample list %q, which there is not", name)
				}
			}
			if !ok {
				return fmt.Sprintf("entry %.40q is of segment %s, which is not listed", key, segment)
			}
			return ""
		})
		if err != nil {
			return err
		}
	}
	if m := s.Manifest; m.Info.DeletedRows != deleted || m.Overlays != uint64(len(overlays)) ||
		m.Lists != uint64(len(lists)) || m.Branches != uint64(len(branches)) {
		v.damage(wire.Corrupt(s.ObjectName(),
			fmt.Sprintf(
				"says %d deleted rows, %d overlays, %d sample lists, %d branches: its parts have %d, %d, %d, %d",
				m.Info.DeletedRows, m.Overlays, m.Lists, m.Branches, deleted, len(overlays), len(lists),
				len(branches))))
	}
	// What a branch pins must have what it names.
	for _, b := range branches {
		if _, err := s.Log.View(ctx, b); err != nil {
			if ctx.Err() != nil {
				return err
			}
			v.damage(brokenBranch(s, b.Name, err))
		}
	}
	return nil
}

// A BrokenBranch is the damage of a branch that cannot be opened.
type BrokenBranch struct {
	Branch string
	err    error
}

func (b *BrokenBranch) Error() string { return b.err.Error() }
func (b *BrokenBranch) Unwrap() error { return b.err }

// brokenBranch makes damage of the error of opening a branch of a snapshot: what it names must be there.
func brokenBranch(s *snapshot.Snapshot, branch string, err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		err = wire.Corrupt(s.ObjectName(), fmt.Sprintf("branch %s: %v", branch, err))
	} else {
		err = fmt.Errorf("branch %s: %w", branch, err)
	}
	return &BrokenBranch{branch, err}
}

// all returns the overlays that the listing has, whatever its count says.
func (v *verifier) all(ctx context.Context, s *snapshot.Snapshot) ([]catalog.Overlay, error) {
	var out []catalog.Overlay
	err := s.EachIn(ctx, catalog.OverlaySpace, func(key, value []byte) string {
		o, reason := catalog.DecodeOverlay(string(key[1:]), value)
		out = append(out, o)
		return reason
	})
	return out, err
}

// overSegments checks the layers and sets that were noted.
func (v *verifier) overSegments(ctx context.Context, g *errgroup.Group) {
	byID := make(map[names.ID]catalog.SegmentDescriptor, len(v.todo))
	for _, d := range v.todo {
		if segment, err := names.ParseID(d.ID); err == nil {
			byID[segment] = d
		}
	}
	report := func(place string, err error) error {
		return v.found(ctx, wire.Missing(place, err))
	}
	for _, l := range v.layers {
		g.Go(func() error { return report(l.Data.Index, v.layer(ctx, l, byID)) })
	}
	for _, set := range v.sets {
		g.Go(func() error { return report(set.place, v.set(ctx, set, byID)) })
	}
}

// layer holds a layer to the segment under it.
func (v *verifier) layer(ctx context.Context, l notedOverlaySegment,
	byID map[names.ID]catalog.SegmentDescriptor) error {
	base, ok := byID[l.base]
	if !ok {
		if v.onBranch[l.over] {
			return nil // of a branch that is gone, with the snapshot that had the segment; the overlay's own go after
		}
		return wire.Corrupt(l.place, fmt.Sprintf("layer %s lies over segment %s, which no snapshot lists",
			l.Data.ID, l.base))
	}
	if reason := l.Mismatch(base); reason != "" {
		return wire.Corrupt(l.place, reason)
	}
	if !v.report.Deep {
		return nil
	}
	var stripes [2][]uint32
	for i, d := range [...]catalog.SegmentDescriptor{base, l.Data} {
		g, err := v.s.Segments.Open(ctx, d)
		if err != nil {
			return nil // the segment's own check reports it
		}
		stripes[i] = g.StripeRows()
	}
	if !slices.Equal(stripes[0], stripes[1]) {
		return wire.Corrupt(l.Data.Index, fmt.Sprintf("its stripes are not those of segment %s, which it lies over",
			base.ID))
	}
	return nil
}

// set checks a row bitmap: that its object is there, that it decodes.
func (v *verifier) set(ctx context.Context, set notedBitmap, byID map[names.ID]catalog.SegmentDescriptor) error {
	v.mu.Lock()
	v.report.RowBitmaps++
	v.mu.Unlock()
	rows := set.rows
	if rows == 0 {
		d, ok := byID[set.segment]
		if !ok {
			return wire.Corrupt(set.place, fmt.Sprintf("set of rows of segment %s, which no snapshot lists",
				set.segment))
		}
		rows = d.Rows
	}
	if set.Count > rows || set.Count > 0 && rows > bitmap.MaxRows {
		return wire.Corrupt(set.place, fmt.Sprintf("set of %d rows of segment %s, which has %d", set.Count,
			set.segment, rows))
	}
	if id, size, ok := set.Object(); ok {
		if v.passes(id) {
			return nil
		}
		if err := v.object(ctx, segment.Object{Name: id.RowsName(), Size: size}); err != nil {
			return err
		}
		if !v.report.Deep {
			return nil
		}
	}
	_, err := v.s.Bitmaps.Read(ctx, set.WithRows(rows))
	return err
}
