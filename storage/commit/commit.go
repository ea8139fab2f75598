package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsistore/dsistore/format"
	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// Run is Table.Commit of package storage.
func Run(ctx context.Context, t *snapshot.Log, c Change) (*snapshot.Snapshot, error) {
	s, err := commit(ctx, t, c)
	switch table := "table " + t.Table + ": "; {
	case err == nil:
		return s, nil
	case strings.Contains(err.Error(), table): // a snapshot has said so
		return nil, err
	default:
		return nil, fmt.Errorf("%s%w", table, err)
	}
}

func commit(ctx context.Context, t *snapshot.Log, c Change) (*snapshot.Snapshot, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	turns, err := t.Turns(ctx)
	if err != nil {
		return nil, err
	}
	defer turns.End()
	a := &attempts{t: t, turns: turns, c: c}
	s, err := a.run(ctx)
	if errors.Is(err, catalog.ErrConflict) {
		t.Store.Refused.Add(1)
	}
	return s, err
}

// attempts are those of one commit.
type attempts struct {
	t     *snapshot.Log
	turns *snapshot.Turns
	c     Change

	base   *snapshot.Snapshot // nil: it is to be found
	newest bool               // base was the newest snapshot, a round trip ago
	table  names.TableID
	// checked: what the change adds was looked at when base was there, or one before it after which gc has not fenced.
	// PROTOCOL.md says why that is enough.
	checked bool
	lost    int
	list    bool // begin is to list, though several have just committed
	ahead   int  // how many snapshots follow asks for at least: more while all are there
}

func (a *attempts) run(ctx context.Context) (*snapshot.Snapshot, error) {
	if lost := Op[Repair](&a.c).Lost; lost.Last > 0 {
		if err := a.afterLost(ctx, lost); err != nil {
			return nil, err
		}
		s, err := attempt(ctx, a.t, a.base, a.table, a.turns.CommitID(), a.c)
		if errors.Is(err, errLostRace) {
			err = fmt.Errorf("another took number %d: %w", lost.Last+1, catalog.ErrConflict)
		}
		return s, err
	}
	for {
		if err := a.find(ctx); err != nil {
			return nil, err
		}
		if !a.checked {
			if err := checkAdded(ctx, a.t, a.c); err != nil {
				return nil, err
			}
			a.checked = true
		}
		id := a.turns.CommitID()
		s, err := attempt(ctx, a.t, a.base, a.table, id, a.c)
		if err == nil {
			a.turns.See(s)
		}
		if !errors.Is(err, errLostRace) {
			return s, err
		}
		a.t.Store.Retried.Add(1)
		if a.lost++; a.lost == maxLost {
			return nil, fmt.Errorf("%w: others took the next number %d times: they are too fast for a machine "+
				"that is far away", catalog.ErrConflict, a.lost)
		}
		a.turns.Lost(id, a.lost)
		if err := a.follow(ctx, 2); err != nil { // the first of them has been read
			return nil, err
		}
	}
}

// find finds the snapshot to build on, and waits for the handle's turn to do so.
func (a *attempts) find(ctx context.Context) error {
	for {
		if a.base == nil {
			if err := a.begin(ctx); err != nil {
				return err
			}
			continue
		}
		others, err := a.turns.Next(ctx)
		if err != nil || others == 0 && a.newest {
			return err
		}
		if err := a.follow(ctx, min(max((others+1)/2, 1), maxAhead)); err != nil {
			return err
		}
	}
}

// maxLost bounds how often a commit is tried. One whose round trips are as long as those of the others loses few races.
const maxLost = 200

// maxAhead is how many snapshots are asked for at once that may not be there yet.
const maxAhead = 8

// begin finds the newest snapshot, and looks at what the change adds. A snapshot that the handle has read is not read
// again, if it is the newest.
func (a *attempts) begin(ctx context.Context) error {
	t, cached := a.t, a.t.LastRead()
	if cached == nil {
		n, err := t.Newest(ctx)
		if err != nil {
			return err
		}
		return a.read(ctx, n)
	}
	number, list := cached.Manifest.Info.Number, a.list
	a.list = false
	if !list && a.turns.Contended(cached) {
		return a.check(ctx, func() error {
			a.base, a.table = cached, cached.Manifest.Table
			return cmp.Or(a.c.checkTable(a.table), a.follow(ctx, 2))
		})
	}
	var n snapshot.Object
	var damaged error
	err := a.check(ctx, func() error {
		start := time.Now()
		err := object.Parallel(ctx, 2, 2, func(ctx context.Context, i int) (err error) {
			if i == 0 {
				n, err = t.Newest(ctx)
				return err
			}
			switch err = checkBase(ctx, t, cached); {
			case errors.Is(err, errLostRace):
				return nil // it has expired: the listing has a newer one, or the next has
			case errors.Is(err, format.ErrCorrupt):
				damaged = err // unless the table was repaired since, this is what is to be said
				return nil
			}
			a.base = cached
			return err
		})
		if err == nil && damaged != nil && n.Number == number {
			err = damaged
		}
		a.turns.Took(time.Since(start))
		if err == nil && n.Number < number {
			err = gone(t, number)
		}
		return cmp.Or(err, a.c.checkTable(cached.Manifest.Table))
	})
	a.table, a.newest = cached.Manifest.Table, true
	if err != nil || n.Number == number && n.Size > 0 {
		a.turns.See(cached)
		return err
	}
	return a.read(ctx, n)
}

// read reads the newest snapshot, which a listing has shown, and looks meanwhile at what the change adds.
func (a *attempts) read(ctx context.Context, n snapshot.Object) error {
	a.base, a.newest = nil, true
	return a.check(ctx, func() (err error) {
		if n.Number == 0 {
			a.base = a.t.Empty()
			a.table, err = a.t.Root(ctx)
		} else if a.base, err = a.t.ReadNewest(ctx, n); err == nil {
			a.table = a.base.Manifest.Table
			a.turns.See(a.base)
		} else if errors.Is(err, object.ErrNotFound) {
			a.base = nil
			return nil // it has expired since
		}
		return cmp.Or(replaced(err), a.c.checkTable(a.table))
	})
}

// check calls f and looks meanwhile at what the change adds. What f finds comes first.
func (a *attempts) check(ctx context.Context, f func() error) error {
	checked := make(chan error, 1)
	go func() { checked <- checkAdded(ctx, a.t, a.c) }()
	a.checked = true
	err := f()
	return cmp.Or(err, <-checked)
}

// follow asks for the snapshots after the base, of which so many may be there, and makes the last of them the base.
// While all are there it asks for more the next time: others may commit faster than this writer follows one by one.
func (a *attempts) follow(ctx context.Context, ahead int) error {
	ahead = max(ahead, a.ahead)
	n := a.base.Manifest.Info.Number
	next := make([]*snapshot.Snapshot, ahead)
	start := time.Now()
	err := object.Parallel(ctx, ahead+1, ahead+1, func(ctx context.Context, i int) (err error) {
		switch {
		case i < ahead:
			if next[i], err = a.t.Next(ctx, n+1+uint64(i)); errors.Is(err, snapshot.ErrExpired) {
				return errLostRace
			}
			return replaced(err)
		case n > 0:
			return checkBase(ctx, a.t, a.base)
		}
		return nil
	})
	if errors.Is(err, errLostRace) { // all these have expired
		a.base = nil
		a.turns.Forget()
		return nil
	}
	if err != nil {
		return err
	}
	a.turns.Took(time.Since(start))
	a.newest = ahead == 1
	for _, s := range next {
		if a.newest = a.newest || s == nil; s == nil {
			break
		}
		if s.Manifest.Info.Operation == Fence {
			a.checked = false
		}
		a.base, a.table = s, s.Manifest.Table
		a.turns.See(s)
		a.t.Remember(s, object.Info{})
	}
	switch {
	case next[ahead-1] == nil || ahead == 1:
		a.ahead = 0
	case ahead < 2*maxAhead:
		a.ahead = 2 * ahead
	default: // a listing says how many more there are
		a.base, a.ahead, a.list = nil, 0, true
	}
	return nil
}

// replaced makes a conflict of the error that the table is another one than the handle's.
func replaced(err error) error {
	if errors.Is(err, snapshot.ErrReplaced) {
		return fmt.Errorf("%w: %w", catalog.ErrConflict, err)
	}
	return err
}

// Fence is the operation of the commits of gc. A commit that finds one made since it looked at what it adds looks
// again.
const Fence = "gc"

// errLostRace: another commit took the number.
var errLostRace = errors.New("lost the race for a snapshot number")

// attempt tries to make the snapshot after base, whose commit id is to be id.
func attempt(ctx context.Context, t *snapshot.Log, base *snapshot.Snapshot, table names.TableID, id names.ID,
	c Change) (_ *snapshot.Snapshot, err error) {
	e := edit{
		change: &c, base: base, m: base.Manifest, info: base.Manifest.Info,
		removed: map[string]catalog.SegmentDescriptor{},
		vacated: map[string]catalog.Place{}, replaced: map[string]bool{},
		defined: map[string]*catalog.Overlay{}, listed: map[string]*catalog.SampleList{},
	}
	e.info.Number = max(e.info.Number, Op[Repair](&c).Lost.Last) + 1
	if e.info.Number > names.MaxSnapshot {
		return nil, fmt.Errorf("the table has %d snapshots: no more are possible", uint64(names.MaxSnapshot))
	}
	e.info.Operation = c.Operation
	e.info.AddedRows, e.info.RemovedRows = 0, 0
	e.info.Time = t.Store.CommitTime()
	if e.info.Time.Before(base.Manifest.Info.Time) {
		e.info.Time = base.Manifest.Info.Time
	}
	// As it is stored: without what a clock adds to tell times apart.
	e.info.Time = time.Unix(0, e.info.Time.UnixNano()).UTC()
	committed := false
	defer func() {
		if committed {
			return
		}
		// Nobody names these yet. What a failed delete leaves, gc finds.
		ctx, cancel := object.Cleanup(ctx)
		defer cancel()
		_ = object.DeleteAll(ctx, t.Store.Blobs, e.made)
	}()
	if err := t.Store.Trees.OpenRuns(ctx, base.Manifest.Listing, base.Manifest.Schema); err != nil {
		return nil, err
	}
	if err := e.checkLost(ctx); err != nil {
		return nil, err
	}
	if err := e.apply(ctx); err != nil {
		return nil, err
	}
	m := e.m
	m.Info, m.Commit, m.Parent, m.Table = e.info, id, base.Manifest.Commit, table
	put := func(t0 lsm.Tree, changes []lsm.Entry) (lsm.Tree, error) {
		out, ids, err := t.Store.Trees.Put(ctx, table, t0, lsm.SortEntries(changes), bool(Op[Forget](&c)))
		for _, i := range ids {
			e.made = append(e.made, t0.Kind.ObjectName(i))
		}
		return out, err
	}
	if m.Listing, err = put(base.Manifest.Listing, e.listing); err != nil {
		return nil, err
	}
	if m.Schema, err = put(base.Manifest.Schema, e.schema); err != nil {
		return nil, err
	}
	b := snapshot.AppendManifest(nil, m)
	if len(b) > snapshot.MaxBody {
		return nil, fmt.Errorf("snapshot of %d bytes: want at most %d", len(b), snapshot.MaxBody)
	}
	name := names.SnapshotName(t.Table, m.Info.Number)
	if err := t.SyncBefore(ctx, m.Info.Number); err != nil {
		return nil, err
	}
	if err := putSnapshot(ctx, t, name, b, m); err != nil {
		// What lost a race is nobody's. After any other error the put may be carried out yet: the runs are gc's.
		committed = !errors.Is(err, errLostRace)
		return nil, err
	}
	committed = true
	if m.Info.Number == 1 {
		// Where it is missing, a table that loses all its snapshots looks like one that is about to be made.
		_ = t.Store.Blobs.PutIfAbsent(context.WithoutCancel(ctx), names.TableBegun(t.Table), nil)
	}
	s := &snapshot.Snapshot{Log: t, Manifest: m}
	t.Remember(s, object.Info{})
	return s, nil
}

// putSnapshot puts a snapshot in its place, durably; errLostRace when another has it.
func putSnapshot(ctx context.Context, t *snapshot.Log, name string, b []byte, m snapshot.Manifest) error {
	err := t.Store.Blobs.PutIfAbsent(ctx, name, b)
	if err == nil {
		return nil
	}
	// The put may have been made all the same, also where it is answered that the name is taken: by a try that got no
	// answer. Whose the snapshot is, its commit id says.
	ctx = context.WithoutCancel(ctx)
	ours, known, rerr := isMade(ctx, t, m)
	switch {
	case rerr != nil:
		return errors.Join(err, rerr)
	case !known && errors.Is(err, object.ErrExists):
		return fmt.Errorf("snapshot %d was made and has expired meanwhile: whether by this commit is not known",
			m.Info.Number)
	case !known:
		return err
	case !ours:
		return errLostRace
	}
	// It is ours. That it can be seen does not say that it is durable; the answer that it exists does.
	if !errors.Is(err, object.ErrExists) {
		if err := t.Store.Blobs.PutIfAbsent(ctx, name, b); err != nil && !errors.Is(err, object.ErrExists) {
			return fmt.Errorf("snapshot %d is made, but a crash may take it back: %w", m.Info.Number, err)
		}
	}
	return nil
}

// isMade reports whether the snapshot with the number of m is m, and whether there is one or was, as far as can be
// known.
func isMade(ctx context.Context, t *snapshot.Log, m snapshot.Manifest) (ours, known bool, err error) {
	there, err := t.Read(ctx, m.Info.Number)
	if err == nil {
		t.Remember(there, object.Info{}) // it is what the next attempt builds on
		return there.Manifest.Commit == m.Commit, true, nil
	}
	if !errors.Is(err, object.ErrNotFound) {
		return false, false, err
	}
	// It may have expired. The one after it says which one it was.
	next, err := t.Header(ctx, m.Info.Number+1)
	if errors.Is(err, object.ErrNotFound) {
		return false, false, nil
	}
	return next.Parent == m.Commit, err == nil, err
}
