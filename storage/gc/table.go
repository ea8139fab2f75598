package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dsistore/dsistore/storage/bitmap"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/commit"
	"github.com/dsistore/dsistore/storage/lease"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
	"github.com/dsistore/dsistore/storage/wire"
)

// namedIDs are ids of segments, runs and row bitmaps that snapshots name.
type namedIDs struct {
	staying map[names.ID]bool // by snapshots that stay, with what is theirs
	expired map[names.ID]bool // the data of expired snapshots, for Purge
}

// runs adds the runs of a snapshot's trees.
func (n namedIDs) runs(m snapshot.Manifest) {
	for _, tr := range [...]lsm.Tree{m.Listing, m.Schema} {
		for _, ref := range tr.Runs {
			n.staying[ref.ID] = true
		}
	}
}

// A tablePlan is what gc does about the snapshots of a table.
type tablePlan struct {
	t       *snapshot.Log
	now     time.Time // by the store's clock, and so is cutoff
	cutoff  int64
	noGrace bool
	purge   bool // the data of expired snapshots goes, and they stay
	dryRun  bool

	there  []snapshot.Object // that were listed, the lowest first
	newest uint64            // of the numbers that were listed; 0: the table has only its root
	oldest uint64            // of those that stay; the ones below stay when they are pinned
	whole  uint64            // the first from which on they stay with their data
	held   map[uint64]bool   // by a branch or a lease
	pinned map[uint64]bool   // of held: those below whole
	branch map[uint64]string // of pinned: a branch that holds it
	ended  []lease.Object    // leases that have run out

	named   namedIDs
	history snapshot.History // of the snapshots that stay, walked up to newest
}

// look finds out which snapshots stay, and what they name. It removes leases that have run out.
func (p *tablePlan) look(ctx context.Context, r *Report) (err error) {
	p.named = namedIDs{staying: map[names.ID]bool{}, expired: map[names.ID]bool{}}
	p.history = snapshot.History{Log: p.t, Shown: markData(p.named.staying)}
	p.history.Snapshot = func(m snapshot.Manifest) error {
		r.Snapshots++
		p.named.runs(m)
		return nil
	}
	if p.there, err = p.t.List(ctx); err != nil {
		return err
	}
	if len(p.there) == 0 {
		// It has not had a commit yet. What was made for its first is nobody's until then.
		_, err := p.t.ReadRoot(ctx)
		if err == nil {
			_, err = p.t.Store.Blobs.Stat(ctx, names.TableBegun(p.t.Table))
		}
		if err == nil {
			return wire.Corrupt(names.TableDir(p.t.Table)+names.SnapshotsDir, "the table has no snapshot, and had one")
		}
		if errors.Is(err, object.ErrNotFound) && p.t.ID() != (names.TableID{}) {
			return nil
		}
		return err
	}
	p.history.There = p.there
	last := p.there[len(p.there)-1]
	p.newest = last.Number
	newest, err := p.t.ReadNewest(ctx, last)
	if err != nil {
		return err
	}
	// What only a snapshot that is missing names would look like garbage.
	unexpired := max(newest.Manifest.Info.Oldest, 1)
	want := unexpired
	for _, s := range p.there {
		if s.Number < want {
			continue
		}
		if s.Number > want {
			return p.t.Gap(want, s.Number)
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
	for _, s := range p.there {
		if n := s.Number; n >= p.whole && n < unexpired && !p.held[n] {
			r.Waiting++
		}
	}
	return p.mark(ctx, newest, r)
}

// expired returns the first snapshot that stays: those before it expired, by a snapshot that is older than the grace
// period.
func (p *tablePlan) expired(ctx context.Context, newest *snapshot.Snapshot) (uint64, error) {
	switch {
	case p.purge:
		return p.there[0].Number, nil
	case p.noGrace:
		return max(newest.Manifest.Info.Oldest, 1), nil
	}
	// A reader that opened one before it expired reads on for so long.
	for _, s := range slices.Backward(p.there) {
		if s.ModTime > p.cutoff {
			continue
		}
		m, err := p.t.Header(ctx, s.Number)
		return max(m.Info.Oldest, 1), wire.Missing(s.Name, err)
	}
	return 1, nil
}

// holds finds out which snapshots are held, and reports those below whole, after it is known which have expired: see
// Snapshot.Lease. s is the newest snapshot.
func (p *tablePlan) holds(ctx context.Context, s *snapshot.Snapshot, r *Report) error {
	p.held, p.pinned, p.branch = map[uint64]bool{}, map[uint64]bool{}, map[uint64]string{}
	branches, err := s.Branches(ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		for _, n := range b.Pins() {
			p.held[n] = true
			if n < p.whole {
				p.pinned[n], p.branch[n] = true, b.Name
				r.Held = append(r.Held, Hold{p.t.Table, n, "branch " + b.Name})
			}
		}
	}
	leases, err := lease.Objects(ctx, p.t)
	if err != nil {
		return err
	}
	margin := object.Margin(p.t.Store.Blobs)
	over := func(l lease.Object) bool { return l.Over(p.now, margin) }
	for _, l := range leases {
		if over(l) {
			p.ended = append(p.ended, l)
		}
	}
	if len(p.ended) > 0 && !p.dryRun {
		// They go first, and then all are listed again: an owner that renews one and finds it gone knows that this may
		// have missed the new one.
		ended := make([]string, len(p.ended))
		for i, l := range p.ended {
			ended[i] = l.Info.Name
		}
		if err := object.DeleteAll(ctx, p.t.Store.Blobs, ended); err != nil {
			return err
		}
		if leases, err = lease.Objects(ctx, p.t); err != nil {
			return err
		}
	}
	for _, l := range lease.Newest(slices.DeleteFunc(leases, over)) {
		p.held[l.Snapshot] = true
		if l.Snapshot >= p.whole {
			continue
		}
		// One that was refused, because the snapshot was gone, may not have been taken back.
		if _, err := p.t.Header(ctx, l.Snapshot); errors.Is(err, object.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		p.pinned[l.Snapshot] = true
		by := "lease " + l.ID
		// whose it is, is for the message alone
		if info, err := lease.Describe(ctx, p.t, l); err == nil && info.ID != "" {
			by = info.String()
		}
		r.Held = append(r.Held, Hold{p.t.Table, l.Snapshot, by})
	}
	return nil
}

// mark notes what the snapshots of the table name.
func (p *tablePlan) mark(ctx context.Context, newest *snapshot.Snapshot, r *Report) error {
	// Snapshots that expired another gc may be taking, by a clock that was read later.
	p.history.Expired = max(newest.Manifest.Info.Oldest, 1)
	for _, n := range slices.Sorted(maps.Keys(p.pinned)) {
		walked := p.history.Before
		if err := p.history.Walk(ctx, n, n); err != nil {
			return err
		}
		// One that a branch holds is missing: what it named would look like garbage.
		if b, ok := p.branch[n]; ok && p.history.Before == walked {
			if err := p.dropped(ctx, n, b); err != nil {
				return err
			}
		}
	}
	if err := p.history.Walk(ctx, p.whole, p.newest); err != nil {
		return err
	}
	if !p.purge {
		return nil
	}
	h := snapshot.History{Log: p.t, Snapshot: p.history.Snapshot, Shown: markData(p.named.expired),
		Expired: p.history.Expired, There: p.there}
	// The copies are listed after the snapshots: what another gc has truncated before that listing has its copy by now.
	copies, err := p.t.Copies(ctx)
	if err != nil {
		return err
	}
	for _, c := range copies {
		if c.Number >= p.there[0].Number {
			break // the walk below finds it
		}
		if err := h.Walk(ctx, c.Number, c.Number); err != nil {
			if !p.held[c.Number] {
				err = fmt.Errorf("%s, the copy of an expired snapshot that nobody holds: %w; gc removes the copy: run "+
					"it, then try again", c.Name, err)
			}
			return err
		}
	}
	return h.Walk(ctx, p.there[0].Number, p.whole-1)
}

// dropped returns an error where a branch still holds a snapshot that is missing: it may have been dropped meanwhile,
// and another gc have taken it.
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
		return wire.Corrupt(names.PinnedName(p.t.Table, n),
			fmt.Sprintf("object is missing, and branch %s reads it: drop the branch to collect what it had", branch))
	}
	return nil
}

// fence commits a snapshot of its own: a commit that has looked at what it adds before finds its number taken, or finds
// the fence. Then it notes what the snapshots since name.
func (p *tablePlan) fence(ctx context.Context) error {
	s, err := commit.Run(ctx, p.t, commit.Change{Operation: Operation})
	if err != nil {
		return err
	}
	n := s.Manifest.Info.Number
	err = p.history.Walk(ctx, p.newest+1, n)
	p.newest = n
	return err
}

// markData returns what adds the segments, and row bitmaps, that entries of a listing name.
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
func (p *tablePlan) run(ctx context.Context, r *Report) error {
	for _, l := range p.ended {
		r.removed(l.Info)
	}
	var gone []snapshot.Object
	for _, s := range p.there {
		if s.Number < p.oldest {
			gone = append(gone, s)
		}
	}
	r.Expired += uint64(len(gone))
	for _, s := range gone {
		r.removed(s.Info)
	}
	all, err := p.t.Copies(ctx)
	if err != nil {
		return err
	}
	var copies []string
	for _, c := range all {
		// Those from oldest on another gc has made meanwhile, of what expired and is held since this one looked.
		if c.Number < p.oldest && !p.pinned[c.Number] {
			copies = append(copies, c.Name)
			r.removed(c.Info)
		}
	}
	if p.dryRun {
		return nil
	}
	// Lowest first, and no more at a time than snapshots allows for.
	for some := range slices.Chunk(gone, object.RequestsAtOnce) {
		if err := object.Parallel(ctx, object.RequestsAtOnce, len(some),
			func(ctx context.Context, i int) error {
				return p.truncate(ctx, some[i])
			}); err != nil {
			return err
		}
	}
	return object.DeleteAll(ctx, p.t.Store.Blobs, copies)
}

// truncate removes an expired snapshot, and copies it before where it is held. Its number stays taken, so that a commit
// which was built on the one before, and comes only now, does not succeed.
func (p *tablePlan) truncate(ctx context.Context, s snapshot.Object) error {
	if p.pinned[s.Number] {
		b := make([]byte, s.Size)
		err := p.t.Store.Blobs.ReadAt(ctx, s.Name, b, 0)
		if err == nil {
			err = p.t.Store.Blobs.PutIfAbsent(ctx, names.PinnedName(p.t.Table, s.Number), b)
		}
		if errors.Is(err, object.ErrExists) {
			err = nil
		}
		if err != nil {
			// Another gc has copied and truncated it meanwhile?
			if info, serr := p.t.Store.Blobs.Stat(ctx, s.Name); serr != nil || info.Size > 0 {
				return errors.Join(err, serr)
			}
			return nil
		}
	}
	return p.t.Store.Blobs.Truncate(ctx, s.Info)
}
