package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/wire"
)

// namedIDs are ids of segments, runs and sets of rows that snapshots name.
type namedIDs struct {
	staying map[names.ID]bool // by snapshots that stay, with what is theirs
	expired map[names.ID]bool // the data of expired snapshots, for Purge
}

// runs adds the runs of a snapshot's trees.
func (n namedIDs) runs(m manifest) {
	for _, tr := range [...]lsm.Tree{m.listing, m.schema} {
		for _, ref := range tr.Runs {
			n.staying[ref.ID] = true
		}
	}
}

// A tablePlan is what gc does about the snapshots of a table.
type tablePlan struct {
	t       *tableLog
	now     time.Time // by the store's clock, and so is cutoff
	cutoff  int64
	noGrace bool
	purge   bool // the data of expired snapshots goes, and they stay
	dryRun  bool

	there  []snapshotObject // that were listed, the lowest first
	newest uint64           // of the numbers that were listed; 0: the table has only its root
	oldest uint64           // of those that stay; the ones below stay when they are pinned
	whole  uint64           // the first from which on they stay with their data
	pinned map[uint64]bool
	branch map[uint64]string // of pinned: a branch that holds it
	ended  []storedLease     // leases that have run out

	named   namedIDs
	history history // of the snapshots that stay, walked up to newest
}

// look finds out which snapshots stay, and what they name. It removes leases that have run out.
func (p *tablePlan) look(ctx context.Context, r *GCReport) (err error) {
	p.named = namedIDs{staying: map[names.ID]bool{}, expired: map[names.ID]bool{}}
	p.history = history{log: p.t, shown: markData(p.named.staying)}
	p.history.snapshot = func(m manifest) error {
		r.Snapshots++
		p.named.runs(m)
		return nil
	}
	if p.there, err = p.t.snapshots(ctx); err != nil {
		return err
	}
	if len(p.there) == 0 {
		// It has not had a commit yet. What was made for its first is nobody's until then.
		_, err := p.t.readRoot(ctx)
		if err == nil {
			_, err = p.t.s.blobs.Stat(ctx, names.TableBegun(p.t.name))
		}
		if err == nil {
			return wire.Corrupt(names.TableDir(p.t.name)+names.SnapshotsDir, "the table has no snapshot, and had one")
		}
		if errors.Is(err, object.ErrNotFound) && p.t.bound() != (names.TableID{}) {
			return nil
		}
		return err
	}
	p.history.there = p.there
	last := p.there[len(p.there)-1]
	p.newest = last.number
	newest, err := p.t.readNewest(ctx, last)
	if err != nil {
		return err
	}
	// What only a snapshot that is missing names would look like garbage.
	unexpired := max(newest.m.info.Oldest, 1)
	want := unexpired
	for _, s := range p.there {
		if s.number < want {
			continue
		}
		if s.number > want {
			return p.t.gap(want, s.number)
		}
		want++
	}
	if p.oldest, err = p.expired(ctx, newest); err != nil {
		return err
	}
	if p.whole = p.oldest; p.purge {
		p.whole = unexpired
	}
	if err := p.holds(ctx, newest, r); err != nil {
		return err
	}
	return p.mark(ctx, newest, r)
}

// expired returns the first snapshot that stays: those before it expired, by a snapshot that is older than the grace period.
func (p *tablePlan) expired(ctx context.Context, newest *coreSnapshot) (uint64, error) {
	switch {
	case p.purge:
		return p.there[0].number, nil
	case p.noGrace:
		return max(newest.m.info.Oldest, 1), nil
	}
	// Whoever opened one before it expired reads on for so long.
	for _, s := range slices.Backward(p.there) {
		if s.ModTime > p.cutoff {
			continue
		}
		m, err := p.t.header(ctx, s.number)
		return max(m.info.Oldest, 1), wire.Missing(s.Name, err)
	}
	return 1, nil
}

// holds finds out which snapshots below whole are held, after it is known which have expired: see Snapshot.Lease. s is the
// newest snapshot.
func (p *tablePlan) holds(ctx context.Context, s *coreSnapshot, r *GCReport) error {
	p.pinned, p.branch = map[uint64]bool{}, map[uint64]string{}
	branches, err := s.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		for _, n := range b.Pins() {
			if n < p.whole {
				p.pinned[n], p.branch[n] = true, b.Name
				r.Held = append(r.Held, Hold{p.t.name, n, "branch " + b.Name})
			}
		}
	}
	leases, err := leaseObjects(ctx, p.t)
	if err != nil {
		return err
	}
	over := func(l storedLease) bool { return !l.until().After(p.now) }
	for _, l := range leases {
		if over(l) {
			p.ended = append(p.ended, l)
		}
	}
	if len(p.ended) > 0 && !p.dryRun {
		// They go first, and then all are listed again: whoever renews one and finds it gone knows that this may have missed the new one.
		err := object.Parallel(ctx, object.RequestsAtOnce, len(p.ended), func(ctx context.Context, i int) error { return p.t.s.remove(ctx, p.ended[i].object.Name) })
		if err != nil {
			return err
		}
		if leases, err = leaseObjects(ctx, p.t); err != nil {
			return err
		}
	}
	for _, l := range newestLeases(slices.DeleteFunc(leases, over)) {
		if l.snapshot >= p.whole {
			continue
		}
		// One that was refused, because the snapshot was gone, may not have been taken back.
		if _, err := p.t.header(ctx, l.snapshot); errors.Is(err, object.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		p.pinned[l.snapshot] = true
		by := "lease " + l.lease
		if info, err := describe(ctx, p.t, l); err == nil && info.ID != "" { // whose it is, is for the message alone
			by = info.String()
		}
		r.Held = append(r.Held, Hold{p.t.name, l.snapshot, by})
	}
	return nil
}

// mark notes what the snapshots of the table name.
func (p *tablePlan) mark(ctx context.Context, newest *coreSnapshot, r *GCReport) error {
	// Snapshots that expired another gc may be taking, by a clock that was read later.
	p.history.expired = max(newest.m.info.Oldest, 1)
	for _, n := range slices.Sorted(maps.Keys(p.pinned)) {
		walked := p.history.before
		if err := p.history.walk(ctx, n, n); err != nil {
			return err
		}
		// One that a branch holds is missing: what it named would look like garbage.
		if b, ok := p.branch[n]; ok && p.history.before == walked {
			if err := p.dropped(ctx, n, b); err != nil {
				return err
			}
		}
	}
	if err := p.history.walk(ctx, p.whole, p.newest); err != nil {
		return err
	}
	if !p.purge {
		return nil
	}
	h := history{log: p.t, snapshot: p.history.snapshot, shown: markData(p.named.expired), expired: p.history.expired, there: p.there}
	return h.walk(ctx, p.there[0].number, p.whole-1)
}

// dropped returns an error where a branch still holds a snapshot that is missing: it may have been dropped meanwhile, and another gc have taken it.
func (p *tablePlan) dropped(ctx context.Context, n uint64, branch string) error {
	newest, err := p.t.Latest(ctx)
	if err != nil {
		return err
	}
	branches, err := newest.Branches(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(branches, func(b catalog.Branch) bool { return slices.Contains(b.Pins(), n) }) {
		return wire.Corrupt(names.PinnedName(p.t.name, n), fmt.Sprintf("object is missing, and branch %s reads it: drop the branch to collect what it had", branch))
	}
	return nil
}

// fence takes the next number of the table, unless another commit takes it: who has read the newest snapshot before finds it taken. Then it
// notes what the snapshots since name.
func (p *tablePlan) fence(ctx context.Context) error {
	seen := p.t.newestRead()
	base, err := p.t.latestOr(ctx, seen)
	if err == nil && base != nil && base == seen {
		if err = checkBase(ctx, p.t, base); errors.Is(err, errLostRace) {
			base, err = p.t.latest(ctx)
		}
	}
	if err != nil {
		return err
	}
	if base == nil {
		// Who removes a table does not expect another of its name.
		if _, err := p.t.readRoot(ctx); p.newest > 0 || errors.Is(err, object.ErrNotFound) {
			return fmt.Errorf("table %s: it was removed while gc looked at it: %w", p.t.name, ErrNotFound)
		} else if err != nil {
			return err
		}
		base = p.t.empty()
	}
	if _, err := attempt(ctx, p.t, base, p.t.bound(), Change{Operation: gcOperation}); err != nil && !errors.Is(err, errLostRace) {
		return err
	}
	n, err := p.t.newest(ctx)
	if err != nil {
		return err
	}
	if n.number <= base.m.info.Number {
		return fmt.Errorf("snapshot %d was made, and %d is the newest", base.m.info.Number+1, n.number)
	}
	err = p.history.walk(ctx, p.newest+1, n.number)
	p.newest = n.number
	return err
}

// markData returns what adds the segments, and sets of rows, that entries of a listing name.
func markData(out map[names.ID]bool) func(obj string, kind lsm.Kind, key, value []byte) error {
	set := func(rows bitmap.Ref) {
		if id, _, ok := rows.Object(); ok {
			out[id] = true
		}
	}
	return func(obj string, kind lsm.Kind, key, value []byte) error {
		if kind != lsm.Listing || len(key) == 0 {
			return nil
		}
		switch key[0] {
		case catalog.SegmentSpace:
			if len(key) != 17 {
				return wire.Corrupt(obj, "segment key is malformed")
			}
			out[names.ID(key[1:])] = true
		case catalog.OverlaySegmentSpace:
			l, reason := catalog.ParseOverlaySegment(key, value, obj)
			if reason != "" {
				return wire.Corrupt(obj, reason)
			}
			data, err := names.ParseID(l.Data.ID)
			if err != nil {
				return wire.Corrupt(obj, err.Error())
			}
			out[data] = true
			set(l.Covered)
		case catalog.DeletesSpace, catalog.ListRowsSpace:
			rows, reason := bitmap.DecodeEntry(value, bitmap.MaxRows, obj)
			if reason != "" {
				return wire.Corrupt(obj, reason)
			}
			set(rows)
		}
		return nil
	}
}

// run removes the snapshots that do not stay, and what was kept for those that nobody holds any more.
func (p *tablePlan) run(ctx context.Context, r *GCReport) error {
	for _, l := range p.ended {
		r.removed(l.object)
	}
	var gone []snapshotObject
	for _, s := range p.there {
		if s.number < p.oldest {
			gone = append(gone, s)
		}
	}
	r.Expired += uint64(len(gone))
	for _, s := range gone {
		r.removed(s.Info)
	}
	var copies []object.Info
	for info, err := range p.t.s.blobs.List(ctx, names.TableDir(p.t.name)+names.PinnedDir, "") {
		if err != nil {
			return err
		}
		// Those from oldest on another gc has made meanwhile, of what expired and is held since this one looked.
		if n, ok := names.ParsePinned(p.t.name, info.Name); ok && n < p.oldest && !p.pinned[n] {
			copies = append(copies, info)
			r.removed(info)
		}
	}
	if p.dryRun {
		return nil
	}
	// Lowest first, and no more at a time than snapshots allows for.
	for some := range slices.Chunk(gone, object.RequestsAtOnce) {
		if err := object.Parallel(ctx, object.RequestsAtOnce, len(some), func(ctx context.Context, i int) error { return p.truncate(ctx, some[i]) }); err != nil {
			return err
		}
	}
	return object.Parallel(ctx, object.RequestsAtOnce, len(copies), func(ctx context.Context, i int) error { return p.t.s.remove(ctx, copies[i].Name) })
}

// truncate removes an expired snapshot, and copies it before where it is held. Its number stays taken, so that a commit which was built on the
// one before, and comes only now, does not succeed.
func (p *tablePlan) truncate(ctx context.Context, s snapshotObject) error {
	if p.pinned[s.number] {
		b := make([]byte, s.Size)
		err := p.t.s.blobs.ReadAt(ctx, s.Name, b, 0)
		if err == nil {
			err = p.t.s.blobs.PutIfAbsent(ctx, names.PinnedName(p.t.name, s.number), b)
		}
		if errors.Is(err, object.ErrExists) {
			err = nil
		}
		if err != nil {
			// Another gc has copied and truncated it meanwhile?
			if info, serr := p.t.s.blobs.Stat(ctx, s.Name); serr != nil || info.Size > 0 {
				return errors.Join(err, serr)
			}
			return nil
		}
	}
	return p.t.s.blobs.Truncate(ctx, s.Name)
}
