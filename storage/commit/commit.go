package commit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsistore/dsistore/storage/catalog"
	"github.com/dsistore/dsistore/storage/lsm"
	"github.com/dsistore/dsistore/storage/names"
	"github.com/dsistore/dsistore/storage/object"
	"github.com/dsistore/dsistore/storage/snapshot"
)

// Run is Table.Commit of package storage.
func Run(ctx context.Context, t *snapshot.Log, c Change) (*snapshot.Snapshot, error) {
	s, err := commit(ctx, t, c)
	if err != nil {
		return nil, fmt.Errorf("commit to table %s: %w", t.Table, err)
	}
	return s, nil
}

func commit(ctx context.Context, t *snapshot.Log, c Change) (*snapshot.Snapshot, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	for {
		// PROTOCOL.md says why in this order: what the commit builds on first, then whether gc has condemned what it
		// adds, then the put.
		cached := t.LastRead()
		base, err := t.LatestOr(ctx, cached)
		if err != nil {
			return nil, replaced(err)
		}
		var table names.TableID
		if base == nil {
			base = t.Empty()
			if table, err = t.Root(ctx); err != nil {
				return nil, replaced(err)
			}
		} else {
			table = base.Manifest.Table
		}
		// What the handle has read must still be there, itself and not another of its number.
		if n := base.Manifest.Info; cached != nil && (n.Number < cached.Manifest.Info.Number ||
			n.Number == cached.Manifest.Info.Number && base.Manifest.Commit != cached.Manifest.Commit) {
			t.Forget()
			return nil, fmt.Errorf("snapshot %d, which was read, is gone: %w: %w", cached.Manifest.Info.Number,
				snapshot.ErrReplaced, catalog.ErrConflict)
		}
		if err := c.checkTable(table); err != nil {
			return nil, err
		}
		err = object.Parallel(ctx, 2, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				return checkAdded(ctx, t, c)
			}
			if base != cached {
				return nil
			}
			return CheckBase(ctx, t, base)
		})
		var s *snapshot.Snapshot
		if err == nil {
			s, err = Attempt(ctx, t, base, table, c)
		}
		if errors.Is(err, ErrLostRace) {
			t.Store.Retried.Add(1)
			continue
		}
		if errors.Is(err, catalog.ErrConflict) {
			t.Store.Refused.Add(1)
		}
		return s, err
	}
}

// replaced makes a conflict of the error that the table is another one than the handle's.
func replaced(err error) error {
	if errors.Is(err, snapshot.ErrReplaced) {
		return fmt.Errorf("%w: %w", catalog.ErrConflict, err)
	}
	return err
}

// ErrLostRace: another commit took the number.
var ErrLostRace = errors.New("lost the race for a snapshot number")

// Attempt tries to make the snapshot after base.
func Attempt(ctx context.Context, t *snapshot.Log, base *snapshot.Snapshot, table names.TableID,
	c Change) (_ *snapshot.Snapshot, err error) {
	e := edit{
		change: &c, base: base, m: base.Manifest, info: base.Manifest.Info,
		removed: map[string]catalog.SegmentDescriptor{},
		vacated: map[string]catalog.Place{}, replaced: map[string]bool{},
		defined: map[string]*catalog.Overlay{}, listed: map[string]*catalog.SampleList{},
	}
	if e.info.Number++; e.info.Number > names.MaxSnapshot {
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
		for _, name := range e.made {
			_ = t.Store.Blobs.Delete(context.WithoutCancel(ctx), name)
		}
	}()
	if err := t.Store.Trees.OpenRuns(ctx, base.Manifest.Listing, base.Manifest.Schema); err != nil {
		return nil, err
	}
	if err := e.apply(ctx); err != nil {
		return nil, err
	}
	m := e.m
	m.Info, m.Commit, m.Parent, m.Table = e.info, names.RandomID(), base.Manifest.Commit, table
	put := func(t0 lsm.Tree, changes []lsm.Entry) (lsm.Tree, error) {
		out, ids, err := t.Store.Trees.Put(ctx, table, t0, lsm.SortEntries(changes))
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
		committed = !errors.Is(err, ErrLostRace)
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
		return ErrLostRace
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
	there, err := t.Header(ctx, m.Info.Number)
	if err == nil {
		return there.Commit == m.Commit, true, nil
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
