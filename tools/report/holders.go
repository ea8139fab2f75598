package report

import (
	"context"
	"errors"
	"slices"

	"github.com/dsistore/dsistore/compaction"
	"github.com/dsistore/dsistore/storage"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/gc"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// maxOpened bounds how many snapshots of a history are opened to see what they hold.
const maxOpened = 256

// keepsAll are the operations that remove no segment and no layer.
var keepsAll = map[string]bool{"ingest": true, "delete": true, "samples": true, "features": true, gc.Expired: true,
	gc.Erased: true, compaction.ForgetOperation: true}

// holders finds out which segments and layers the newest snapshot, older ones, branches and leases have.
type holders struct {
	t      *storage.Table
	newest *storage.Snapshot
	held   map[string]*held // by segment id
	opened map[uint64][]string
	// leased are the snapshots that leases hold, each once: leases of the same snapshot share its bytes.
	leased []uint64
}

// A held is a segment of the table or of a layer, and what has it.
type held struct {
	bytes  uint64
	newest bool   // the newest snapshot has it
	last   uint64 // the last older snapshot, not expired, that was seen to have it; 0: none
	by     int    // the first branch, or snapshot that leases hold, that has it, from 1; 0: none
	shared bool   // by several of them
}

// snapshot returns the ids of a snapshot's segments and layers, and notes their bytes.
func (h *holders) snapshot(ctx context.Context, number uint64) ([]string, error) {
	if ids, ok := h.opened[number]; ok {
		return ids, nil
	}
	s := h.newest
	if number != s.Info().Number {
		var err error
		if s, err = h.t.At(ctx, number); err != nil {
			return nil, err
		}
	}
	var ids []string
	add := func(d catalog.SegmentDescriptor) {
		ids = append(ids, d.ID)
		if h.held[d.ID] == nil {
			h.held[d.ID] = &held{bytes: d.Bytes}
		}
	}
	segments, err := s.Segments(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range segments {
		add(d)
	}
	overlays, err := s.Overlays(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range overlays {
		if err := s.EachOverlaySegment(ctx, o,
			func(l catalog.OverlaySegment) error { add(l.Data); return nil }); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// holdings returns the history, branches and leases of a table, and the bytes that are stored for each of them alone.
// infos are the snapshots up to snap that have not expired.
func holdings(ctx context.Context, snap *storage.Snapshot,
	infos []snapshot.Info) (SnapshotHealth, []BranchHealth, []LeaseHealth, error) {
	h := &holders{t: snap.Table(), newest: snap, held: map[string]*held{}, opened: map[uint64][]string{}}
	out := SnapshotHealth{Newest: snap.Info().Number, Holding: []SnapshotHolder{}}
	if len(infos) > 0 {
		out.First, out.Count = infos[0].Number, uint64(len(infos))
	}
	ids, err := h.snapshot(ctx, out.Newest)
	if err != nil {
		return out, nil, nil, err
	}
	for _, i := range ids {
		h.held[i].newest = true
	}
	if err := h.history(ctx, infos, &out); err != nil {
		return out, nil, nil, err
	}
	branches, leases, err := h.named(ctx)
	if err != nil {
		return out, nil, nil, err
	}
	at := map[uint64]int{}
	for i := range out.Holding {
		at[out.Holding[i].Snapshot] = i
	}
	for _, x := range h.held {
		switch {
		case x.newest:
		case x.last != 0 && x.by == 0:
			out.AloneBytes += x.bytes
			out.Holding[at[x.last]].Bytes += x.bytes
		case x.last == 0 && x.by > 0 && !x.shared:
			if b := x.by - 1; b < len(branches) {
				branches[b].AloneBytes += x.bytes
				continue
			}
			for i := range leases {
				if leases[i].Snapshot == h.leased[x.by-1-len(branches)] {
					leases[i].AloneBytes += x.bytes
				}
			}
		}
	}
	out.Holding = slices.DeleteFunc(out.Holding, func(x SnapshotHolder) bool { return x.Bytes == 0 })
	return out, branches, leases, nil
}

// history opens the snapshots after which data was removed, the newest first, at most maxOpened of them.
func (h *holders) history(ctx context.Context, infos []snapshot.Info, out *SnapshotHealth) error {
	looked := 0
	for i := len(infos) - 2; i >= 0; i-- {
		n, next := infos[i], infos[i+1]
		if next.RemovedRows == 0 && keepsAll[next.Operation] {
			continue
		}
		if looked == maxOpened {
			out.Skipped++
			continue
		}
		looked++
		ids, err := h.snapshot(ctx, n.Number)
		if errors.Is(err, storage.ErrNotFound) {
			break // expired, and gone, meanwhile
		}
		if err != nil {
			return err
		}
		for _, i := range ids {
			if x := h.held[i]; !x.newest && x.last == 0 {
				x.last = n.Number
			}
		}
		out.Holding = append(out.Holding, SnapshotHolder{Snapshot: n.Number, Time: timeText(n.Time),
			Operation: n.Operation, Next: next.Operation})
	}
	return nil
}

// named opens the snapshots of branches and leases.
func (h *holders) named(ctx context.Context) ([]BranchHealth, []LeaseHealth, error) {
	branches, leases := []BranchHealth{}, []LeaseHealth{}
	hold := func(by int, numbers ...uint64) error {
		for _, n := range numbers {
			ids, err := h.snapshot(ctx, n)
			if errors.Is(err, storage.ErrNotFound) {
				continue // a lease that was refused, because the snapshot was gone
			}
			if err != nil {
				return err
			}
			h.opened[n] = ids
			for _, i := range ids {
				switch x := h.held[i]; x.by {
				case by:
				case 0:
					x.by = by
				default:
					x.shared = true
				}
			}
		}
		return nil
	}
	all, err := h.newest.Branches(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, b := range all {
		health := BranchHealth{Branch: b.Name, Owner: b.Owner, Created: timeText(b.Created), Snapshots: b.Pins(),
			Overlays: []string{}, List: b.List.Name}
		for _, o := range b.Overlays {
			health.Overlays = append(health.Overlays, o.Name)
		}
		branches = append(branches, health)
		if err := hold(len(branches), b.Pins()...); err != nil {
			return nil, nil, err
		}
	}
	taken, err := h.t.Leases(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range taken {
		leases = append(leases, LeaseHealth{Owner: l.Owner, Snapshot: l.Snapshot, Until: timeText(l.Until)})
		if slices.Contains(h.leased, l.Snapshot) {
			continue
		}
		h.leased = append(h.leased, l.Snapshot)
		if err := hold(len(branches)+len(h.leased), l.Snapshot); err != nil {
			return nil, nil, err
		}
	}
	return branches, leases, nil
}
