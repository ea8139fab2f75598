package storage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage/object"
)

// namedIDs are ids of segments, runs and sets of rows that snapshots name.
type namedIDs struct {
	staying map[id]bool // by snapshots that stay, with what is theirs
	expired map[id]bool // the data of expired snapshots, for Purge
}

// referenced returns the ids that snapshots which stay name, and what is to be done about each table.
func (s *Store) referenced(ctx context.Context, now time.Time, cutoff int64, noGrace bool, r *GCReport) (map[id]bool, []*tablePlan, error) {
	out := map[id]bool{}
	tables, err := s.Tables(ctx)
	if err != nil {
		return out, nil, err
	}
	var plans []*tablePlan
	for _, name := range tables {
		// A table of its own, so that nothing known from before is trusted.
		p := &tablePlan{t: &Table{s: s, name: name}, cutoff: cutoff, noGrace: noGrace}
		if err := p.look(ctx, now, r); err != nil {
			return out, nil, err
		}
		r.Tables++
		if err := p.mark(ctx, namedIDs{staying: out}, r); err != nil {
			return out, nil, err
		}
		plans = append(plans, p)
	}
	return out, plans, nil
}

// A tablePlan is what gc does about the snapshots of a table.
type tablePlan struct {
	t       *Table
	cutoff  int64
	noGrace bool
	purge   bool // the data of expired snapshots goes, and they stay

	first, newest uint64 // of the numbers that were listed
	oldest        uint64 // of those that stay; the ones below stay when they are pinned
	whole         uint64 // the first from which on they stay with their data
	pinned        map[uint64]bool
	leases        []storedLease // that have run out
}

// look finds out which snapshots stay.
func (p *tablePlan) look(ctx context.Context, now time.Time, r *GCReport) error {
	numbers, err := p.t.numbers(ctx)
	if err != nil {
		return err
	}
	if len(numbers) == 0 {
		return corrupt(snapshotName(p.t.name, 1), "object is missing: the table has no snapshot")
	}
	p.newest = numbers[len(numbers)-1]
	newest, err := p.t.read(ctx, p.newest)
	if err != nil {
		return missing(snapshotName(p.t.name, p.newest), err)
	}
	p.first = numbers[0]
	// What only a snapshot that is missing names would look like garbage. Of the expired ones some may be missing: while they were
	// listed another gc has taken them away.
	p.oldest = max(newest.m.info.Oldest, 1)
	unexpired, want := p.oldest, p.oldest
	for _, number := range numbers {
		if number < want {
			continue
		}
		if number > want {
			return p.t.gap(want, number)
		}
		want++
	}
	switch {
	case p.purge:
		if p.oldest, err = p.there(ctx, p.oldest); err != nil {
			return err
		}
	case !p.noGrace: // snapshots that expired within the grace period stay: whoever has just opened one reads on
		first, err := p.there(ctx, p.oldest)
		if err != nil {
			return err
		}
		at, _, err := p.t.asOf(ctx, time.Unix(0, p.cutoff), first, p.newest)
		if err != nil {
			return err
		}
		p.oldest = first
		if at > 0 {
			m, err := p.t.header(ctx, at)
			if err != nil {
				return err
			}
			p.oldest = max(m.info.Oldest, first)
		}
	}
	if p.whole = p.oldest; p.purge {
		p.whole = unexpired
	}
	return p.holds(ctx, newest, now, r)
}

// there returns the first snapshot that is there yet, at most the given one, which is: those before it go lowest first.
func (p *tablePlan) there(ctx context.Context, high uint64) (uint64, error) {
	for low := p.first; low < high; {
		mid := low + (high-low)/2
		ok, err := p.t.exists(ctx, mid)
		if err != nil {
			return 0, err
		}
		if ok {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high, nil
}

// holds finds out which snapshots below whole are held, after it is known which have expired: see Snapshot.Lease. s is the
// newest snapshot.
func (p *tablePlan) holds(ctx context.Context, s *Snapshot, now time.Time, r *GCReport) error {
	p.pinned = map[uint64]bool{}
	branches, err := s.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		for _, n := range b.Pins() {
			if n < p.whole {
				p.pinned[n] = true
				r.Held = append(r.Held, Hold{p.t.name, n, "branch " + b.Name})
			}
		}
	}
	leases, err := p.t.leases(ctx)
	if err != nil {
		return err
	}
	newest := newestLeases(leases)
	for _, l := range leases {
		if !l.Until.After(now) {
			p.leases = append(p.leases, l)
			continue
		}
		if l.Snapshot >= p.whole {
			continue
		}
		// One that was refused, because the snapshot was gone, may not have been taken back.
		if _, err := p.t.header(ctx, l.Snapshot); errors.Is(err, object.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		p.pinned[l.Snapshot] = true
		if !slices.ContainsFunc(newest, func(n storedLease) bool { return n.id == l.id }) {
			continue // renewed since
		}
		r.Held = append(r.Held, Hold{p.t.name, l.Snapshot, l.String()})
	}
	return nil
}

// mark adds the ids that the snapshots of the table name.
func (p *tablePlan) mark(ctx context.Context, out namedIDs, r *GCReport) error {
	runs := func(m manifest) error {
		r.Snapshots++
		for _, tr := range [...]tree{m.listing, m.schema} {
			for _, ref := range tr.runs {
				out.staying[ref.id] = true
			}
		}
		return nil
	}
	h := history{t: p.t, snapshot: runs, shown: markData(out.staying)}
	for _, n := range slices.Sorted(maps.Keys(p.pinned)) {
		if err := h.walk(ctx, n, n); err != nil {
			return err
		}
	}
	if err := h.walk(ctx, p.whole, p.newest); err != nil {
		return err
	}
	if p.whole == p.oldest {
		return nil
	}
	h = history{t: p.t, snapshot: runs, shown: markData(out.expired)}
	return h.walk(ctx, p.oldest, p.whole-1)
}

// markData returns what adds the segments, and sets of rows, that entries of a listing name.
func markData(out map[id]bool) func(obj string, kind treeKind, key, value []byte) error {
	set := func(rows RowSet) {
		if rows.size > 0 {
			out[rows.object] = true
		}
	}
	return func(obj string, kind treeKind, key, value []byte) error {
		if kind != listingTree || len(key) == 0 {
			return nil
		}
		switch key[0] {
		case segmentSpace:
			if len(key) != 17 {
				return corrupt(obj, "segment key is malformed")
			}
			out[id(key[1:])] = true
		case layerSpace:
			l, reason := parseLayer(key, value, obj)
			if reason != "" {
				return corrupt(obj, reason)
			}
			data, err := parseID(l.Data.ID)
			if err != nil {
				return corrupt(obj, err.Error())
			}
			out[data] = true
			set(l.Covered)
		case deletesSpace, listRowsSpace:
			rows, reason := decodeSet(value, maxBitmapRows, obj)
			if reason != "" {
				return corrupt(obj, reason)
			}
			set(rows)
		}
		return nil
	}
}

// run removes the snapshots that do not stay, lowest first, so that the numbers that there are have no gaps at any time.
func (p *tablePlan) run(ctx context.Context, r *GCReport) error {
	if p.oldest > p.first {
		if err := p.expire(ctx, r); err != nil {
			return err
		}
	}
	// Copies of expired ones that nobody holds any more. Those from oldest on another gc has made meanwhile, of what expired and
	// is held since this one looked.
	for info, err := range p.t.s.blobs.List(ctx, tableDir(p.t.name)+pinnedDir, "") {
		if err != nil {
			return err
		}
		if n, ok := parseSnapshot(info.Name); ok && info.Name == pinnedName(p.t.name, n) && n < p.oldest && !p.pinned[n] {
			if err := p.remove(ctx, info, r); err != nil {
				return err
			}
		}
	}
	for _, l := range p.leases {
		if err := p.remove(ctx, l.object, r); err != nil {
			return err
		}
	}
	return nil
}

func (p *tablePlan) expire(ctx context.Context, r *GCReport) error {
	s := p.t.s
	if !r.DryRun {
		// With the hints of those removed the newest would be looked for from the start.
		if err := s.blobs.PutIfAbsent(ctx, newestName(p.t.name, p.newest), nil); err != nil && !errors.Is(err, object.ErrExists) {
			return err
		}
	}
	for n := p.first; n < p.oldest; n++ {
		name := snapshotName(p.t.name, n)
		info, err := s.blobs.Stat(ctx, name)
		if errors.Is(err, object.ErrNotFound) {
			continue // another gc was quicker
		}
		if err != nil {
			return err
		}
		// A writer that has not heard of it might make it anew.
		if info.ModTime > p.cutoff {
			return nil
		}
		if p.pinned[n] && !r.DryRun {
			b := make([]byte, info.Size)
			if err := s.blobs.ReadAt(ctx, name, b, 0); err != nil {
				return err
			}
			if err := s.blobs.PutIfAbsent(ctx, pinnedName(p.t.name, n), b); err != nil && !errors.Is(err, object.ErrExists) {
				return err
			}
		}
		if err := p.remove(ctx, info, r); err != nil {
			return err
		}
		r.Expired++
		if (n-1)%newestEvery == 0 && !r.DryRun {
			if err := p.t.remove(ctx, newestName(p.t.name, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *tablePlan) remove(ctx context.Context, info object.Info, r *GCReport) error {
	if !r.DryRun {
		if err := p.t.remove(ctx, info.Name); err != nil {
			return err
		}
	}
	r.removed(info)
	return nil
}
